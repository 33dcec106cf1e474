"""Fowlkes–Mallows index."""

from __future__ import annotations

from math import sqrt
from typing import Any

from coterie.metrics.contingency import contingency_table, pairs


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
    table = contingency_table(labels_true, labels_pred, sample_weight, whole=True)
    if table.identical:
        return 1.0
    both, true, pred = pairs(table.cells), pairs(table.rows), pairs(table.columns)
    return sqrt(both / true) * sqrt(both / pred) if both else 0.0
