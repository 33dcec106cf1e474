"""Adjusted Rand index."""

from __future__ import annotations

from typing import Any

from coterie.metrics.contingency import contingency_table, pairs


def adjusted_rand_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Compute the Rand index of two labellings, adjusted for chance.

    .. math:: \frac{S - AB / \binom{n}{2}}{\tfrac12 (A + B) - AB / \binom{n}{2}}

    S is the number of pairs of rows in the same cluster in both labellings; A and B are the numbers in each labelling.
    The score is 1 for equal partitions, 0 on average for random labels, and at least -1/2. If class sizes differ
    widely, the large classes dominate it: then also use `adjusted_mutual_info_score` [2]_.

    Parameters
    ----------
    labels_true, labels_pred : array (n,)
        Two labellings of the same rows: integers, strings or other hashable values. Their order does not matter.
    sample_weight : array (n,) of integers, optional
        Number of times that each row is counted.

    Returns
    -------
    float

    Notes
    -----
    Takes O(n) operations. Pairs are counted with Python integers, so that no number of rows overflows or is rounded.

    References
    ----------
    .. [1] Hubert & Arabie (1985), Comparing partitions, J. Classif. 2. https://doi.org/10.1007/BF01908075
    .. [2] Romano, Vinh, Bailey & Verspoor (2016), Adjusting for chance clustering comparison measures, J. Mach. Learn.
       Res. 17.

    Examples
    --------
    >>> from coterie.metrics import adjusted_rand_score
    >>> round(adjusted_rand_score([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]), 4)
    0.2424
    """
    table = contingency_table(labels_true, labels_pred, sample_weight, whole=True)
    if table.identical:
        return 1.0
    n = int(table.total)
    both, true, pred, all_ = pairs(table.cells), pairs(table.rows), pairs(table.columns), n * (n - 1) // 2
    return 2 * (both * all_ - true * pred) / ((true + pred) * all_ - 2 * true * pred)
