"""Classes beside clusters, once each cluster has got the name of at most one class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from coterie import machine
from coterie.metrics.contingency import contingency, labels_of_both
from coterie.metrics.labels import Array


@dataclass(frozen=True)
class MatchedConfusion:
    """How much of each class (row) lies in each cluster (column), the columns in the order of their classes."""

    table: Array  # (classes, clusters)
    classes: Array  # (classes,) labels of the rows
    clusters: Array  # (clusters,) labels of the columns: those with a class in the order of classes, then the others
    matching: dict[Any, Any]  # cluster -> class
    accuracy: float  # share of the rows whose cluster has the name of their class


def matched_confusion(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> MatchedConfusion:
    r"""Confusion table of classes and clusters under the best one-to-one matching.

    .. math:: \max_\pi \frac1n \sum_j n_{j \pi(j)}

    The accuracy is that of labels that are renamed in the best way, from 1 / max(K, classes) up to 1. Where there are
    more clusters than classes some have no name, and all their rows count as wrong: use `purity_score` if several
    clusters may stand for one class.

    Parameters
    ----------
    labels_true, labels_pred : labels (n,)
        Classes and clusters of the same rows, of any kind.
    sample_weight : array (n,), optional

    Returns
    -------
    MatchedConfusion
        `table`, `classes`, `clusters`, `matching`, `accuracy`.

    Notes
    -----
    Costs O(n) and the assignment, O(K³) at worst.

    References
    ----------
    .. [1] Kuhn (1955), The Hungarian method for the assignment problem, Nav. Res. Logist. Q. 2.

    Examples
    --------
    >>> from coterie.metrics import matched_confusion
    >>> found = matched_confusion(["x", "x", "y", "y", "y"], [1, 1, 0, 0, 1])
    >>> found.table
    array([[2, 0],
           [1, 2]])
    >>> found.matching == {1: "x", 0: "y"}, found.accuracy
    (True, 0.8)
    """
    true, pred = labels_of_both(labels_true, labels_pred)
    counted = contingency(true.codes, pred.codes, sample_weight)
    machine.check_room(true.k * pred.k * 8, f"a table of {true.k} x {pred.k} labels", "pass fewer different labels")
    table = np.zeros((true.k, pred.k), counted.cells.dtype)
    table[counted.row, counted.column] = counted.cells
    rows, columns = linear_sum_assignment(table, maximize=True)
    order = np.concatenate([columns, np.setdiff1d(np.arange(pred.k), columns)])
    matching = dict(zip(pred.names[columns].tolist(), true.names[rows].tolist(), strict=True))
    accuracy = float(min(1.0, table[rows, columns].sum() / counted.total))
    return MatchedConfusion(table[:, order], true.names, pred.names[order], matching, accuracy)
