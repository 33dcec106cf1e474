"""Pairs of rows on which two labellings agree."""

from __future__ import annotations

from typing import Any

from coterie.metrics.contingency import contingency, pairs


def rand_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Share of the pairs of rows that are together in both labellings, or apart in both.

    .. math:: R = \frac{N_{11} + N_{00}}{\binom{n}{2}}

    From 0 to 1, for equal divisions. With many clusters most pairs are apart in both, and it is near 1 for any labels:
    use `adjusted_rand_score` to compare.

    Parameters
    ----------
    labels_true, labels_pred : labels (n,)
        Two labellings of the same rows, of any kind; which is which makes no difference.
    sample_weight : array (n,) of whole numbers, optional
        How many rows each row stands for.

    Notes
    -----
    Costs O(n); pairs are counted exactly, however many rows there are. A single row agrees with itself: 1.

    References
    ----------
    .. [1] Rand (1971), Objective criteria for the evaluation of clustering methods, J. Am. Stat. Assoc. 66.
       https://doi.org/10.1080/01621459.1971.10482356

    Examples
    --------
    >>> from coterie.metrics import rand_score
    >>> round(rand_score([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]), 4)
    0.6667
    """
    table = contingency(labels_true, labels_pred, sample_weight, whole=True)
    n = int(table.total)
    both, true, pred, all_ = pairs(table.cells), pairs(table.rows), pairs(table.columns), n * (n - 1) // 2
    return (all_ + 2 * both - true - pred) / all_ if all_ else 1.0
