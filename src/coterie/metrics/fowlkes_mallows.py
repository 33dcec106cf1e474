"""Precision and recall of pairs, as one number."""

from __future__ import annotations

from math import sqrt
from typing import Any

from coterie.metrics.contingency import contingency, pairs


def fowlkes_mallows_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Geometric mean of the shares of pairs together in one labelling that are together in the other.

    .. math:: \frac{S}{\sqrt{A B}}

    S pairs of rows are together in both labellings, A and B in each. From 0 to 1, for equal divisions. It is not
    adjusted for chance: a few large clusters score high whatever they are.

    Parameters
    ----------
    labels_true, labels_pred : labels (n,)
        Two labellings of the same rows, of any kind; which is which makes no difference.
    sample_weight : array (n,) of whole numbers, optional
        How many rows each row stands for.

    Notes
    -----
    Costs O(n); pairs are counted exactly. Where no pair is together in either it is 1, for the divisions are equal;
    scikit-learn gives 0.

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
    table = contingency(labels_true, labels_pred, sample_weight, whole=True)
    if table.identical:
        return 1.0
    both, true, pred = pairs(table.cells), pairs(table.rows), pairs(table.columns)
    return sqrt(both / true) * sqrt(both / pred) if both else 0.0
