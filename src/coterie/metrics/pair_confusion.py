"""Confusion matrix of pairs of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.metrics.contingency import contingency_table, pairs


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
    table = contingency_table(labels_true, labels_pred, sample_weight, whole=True)
    both, true, pred = pairs(table.cells), pairs(table.rows), pairs(table.columns)
    n = int(table.total)
    neither = n * (n - 1) // 2 - true - pred + both
    return 2 * np.array([[neither, pred - both], [true - both, both]], dtype=np.int64)
