"""Purity."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.metrics.contingency import contingency_table


def purity_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Compute the share of rows that belong to the most frequent class of their cluster.

    .. math:: \frac1n \sum_k \max_j n_{jk}

    The score is above 0 and at most 1. It is the accuracy of predicting the most frequent class of each cluster.
    Several clusters can have the same class, so that the score increases with the number of clusters, up to 1 for
    clusters of one row. Do not use it to compare different numbers of clusters; `matched_confusion` uses each class
    once.

    Parameters
    ----------
    labels_true, labels_pred : array (n,)
        Classes and clusters of the same rows: integers, strings or other hashable values.
    sample_weight : array (n,), optional
        Sample weights.

    Returns
    -------
    float

    Notes
    -----
    Takes O(n) operations.

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
    table = contingency_table(labels_true, labels_pred, sample_weight)
    largest = np.zeros(len(table.columns), table.cells.dtype)
    np.maximum.at(largest, table.column, table.cells)
    return float(min(1.0, largest.sum() / table.total))
