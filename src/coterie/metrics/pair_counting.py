"""Indices that count pairs of rows: the Rand index, plain and adjusted, and the Fowlkes–Mallows index."""

from math import sqrt
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.metrics.contingency import contingency_table

EXACT = 1 << 31  # if the sum of counts is below this, sums of their squares fit into int64


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
    both, true, pred, all_ = _pair_counts(labels_true, labels_pred, sample_weight)
    if both == true == pred:  # the same partition
        return 1.0
    return 2 * (both * all_ - true * pred) / ((true + pred) * all_ - 2 * true * pred)


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
    both, true, pred, all_ = _pair_counts(labels_true, labels_pred, sample_weight)
    return (all_ + 2 * both - true - pred) / all_ if all_ else 1.0


def fowlkes_mallows_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Compute the geometric mean of precision and recall over pairs of rows.

    .. math:: \frac{S}{\sqrt{A B}}

    S is the number of pairs of rows in the same cluster in both labellings; A and B are the numbers in each labelling.
    The score is from 0 to 1, and 1 for equal partitions. It is not adjusted for chance: a few large clusters always
    have a high score.

    Parameters
    ----------
    labels_true, labels_pred, sample_weight
        As in `adjusted_rand_score`.

    Returns
    -------
    float

    Notes
    -----
    Takes O(n) operations. Pairs are counted exactly. If all clusters have one row in both labellings, the partitions
    are equal and the score is 1; scikit-learn returns 0.

    References
    ----------
    .. [1] Fowlkes & Mallows (1983), A method for comparing two hierarchical clusterings, J. Am. Stat. Assoc. 78.
       https://doi.org/10.1080/01621459.1983.10478008

    Examples
    --------
    >>> from coterie.metrics import fowlkes_mallows_score
    >>> round(fowlkes_mallows_score([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]), 4)
    0.4714
    """
    both, true, pred, _ = _pair_counts(labels_true, labels_pred, sample_weight)
    if both == true == pred:  # the same partition
        return 1.0
    return sqrt(both / true) * sqrt(both / pred) if both else 0.0


def pair_confusion_matrix(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> np.ndarray:
    """Count the pairs of rows that are in one cluster, or in different ones, in each of two labellings.

    Parameters
    ----------
    labels_true, labels_pred, sample_weight
        As in `adjusted_rand_score`.

    Returns
    -------
    array (2, 2) of int64
        Entry [i, j] is a number of ordered pairs of different rows. i is 1 for pairs with equal labels in
        `labels_true`, and j is 1 for pairs with equal labels in `labels_pred`.

    Examples
    --------
    >>> from coterie.metrics import pair_confusion_matrix
    >>> pair_confusion_matrix([0, 0, 1, 1], [0, 0, 1, 2])
    array([[8, 0],
           [2, 2]])
    """
    both, true, pred, all_ = _pair_counts(labels_true, labels_pred, sample_weight)
    neither = all_ - true - pred + both
    return 2 * np.array([[neither, pred - both], [true - both, both]], dtype=np.int64)


def _pair_counts(labels_true: Any, labels_pred: Any, sample_weight: Any) -> tuple[int, int, int, int]:
    """Numbers of pairs of rows: in one cluster in both labellings, in the first, in the second, and of all rows."""
    table = contingency_table(labels_true, labels_pred, sample_weight, whole=True)
    n = int(table.total)
    return pairs(table.cells), pairs(table.rows), pairs(table.columns), n * (n - 1) // 2


def pairs(counts: Array) -> int:
    """The exact number of pairs of rows in the same cell: the sum of n (n - 1) / 2."""
    if int(counts.sum()) < EXACT:
        return (int(counts @ counts) - int(counts.sum())) // 2
    return sum(n * (n - 1) // 2 for n in map(int, counts))
