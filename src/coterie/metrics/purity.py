"""How much of the clusters is of their most frequent class."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.metrics.contingency import contingency


def purity_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Share of the rows that are of the most frequent class of their cluster.

    .. math:: \frac1n \sum_k \max_j n_{jk}

    Above 0, up to 1. It is the accuracy of naming each cluster after its most frequent class, and several clusters may
    bear the same name: so it grows with the number of clusters, to 1 for clusters of one row. Do not compare different
    numbers of clusters by it; `matched_confusion` uses each name once.

    Parameters
    ----------
    labels_true, labels_pred : labels (n,)
        Classes and clusters of the same rows, of any kind.
    sample_weight : array (n,), optional

    Notes
    -----
    Costs O(n).

    References
    ----------
    .. [1] Zhao & Karypis (2004), Empirical and theoretical comparisons of selected criterion functions for document
       clustering, Mach. Learn. 55.

    Examples
    --------
    >>> from coterie.metrics import purity_score
    >>> purity_score(["x", "x", "o", "o"], [0, 0, 0, 1])
    0.75
    """
    table = contingency(labels_true, labels_pred, sample_weight)
    most = np.zeros(len(table.columns), table.cells.dtype)
    np.maximum.at(most, table.column, table.cells)
    return float(min(1.0, most.sum() / table.total))
