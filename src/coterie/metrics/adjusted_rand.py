"""Pairs of rows on which two labellings agree, beyond chance."""

from __future__ import annotations

from typing import Any

from coterie.metrics.contingency import contingency, pairs


def adjusted_rand_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Rand index less what labels of the same sizes give by chance, on a scale to 1.

    .. math:: \frac{S - AB / \binom{n}{2}}{\tfrac12 (A + B) - AB / \binom{n}{2}}

    S pairs of rows are together in both labellings, A and B in each. 1 for equal divisions, 0 on average for labels
    drawn at random, at least -1/2. Where classes differ much in size, large ones decide it: then look at
    `adjusted_mutual_info_score` too [2]_.

    Parameters
    ----------
    labels_true, labels_pred : labels (n,)
        Two labellings of the same rows, of any kind; which is which makes no difference.
    sample_weight : array (n,) of whole numbers, optional
        How many rows each row stands for.

    Notes
    -----
    Costs O(n). Pairs are counted in whole numbers of any size, so no number of rows overflows or rounds.

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
    table = contingency(labels_true, labels_pred, sample_weight, whole=True)
    if table.identical:
        return 1.0
    n = int(table.total)
    both, true, pred, all_ = pairs(table.cells), pairs(table.rows), pairs(table.columns), n * (n - 1) // 2
    return 2 * (both * all_ - true * pred) / ((true + pred) * all_ - 2 * true * pred)
