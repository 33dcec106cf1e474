"""Rand index."""

from __future__ import annotations

from typing import Any

from coterie.metrics.contingency import contingency_table, pairs


def rand_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Compute the share of pairs of rows on which two labellings agree.

    .. math:: R = \frac{N_{11} + N_{00}}{\binom{n}{2}}

    Two labellings agree on a pair if both put it in the same cluster, or both in different clusters. The score is from
    0 to 1, and 1 for equal partitions. With many clusters most pairs are in different clusters, and the score is near 1
    for any labels: use `adjusted_rand_score` for comparisons.

    Parameters
    ----------
    labels_true, labels_pred, sample_weight
        As in `adjusted_rand_score`.

    Returns
    -------
    float

    Notes
    -----
    Takes O(n) operations. Pairs are counted exactly for any number of rows. The score of a single row is 1.

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
    table = contingency_table(labels_true, labels_pred, sample_weight, whole=True)
    n = int(table.total)
    both, true, pred, all_ = pairs(table.cells), pairs(table.rows), pairs(table.columns), n * (n - 1) // 2
    return (all_ + 2 * both - true - pred) / all_ if all_ else 1.0
