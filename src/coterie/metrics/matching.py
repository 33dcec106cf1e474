"""Clusters matched to classes: purity, and the confusion matrix under the best one-to-one matching."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from coterie import machine
from coterie.metrics.contingency import contingency_table, labels_of_both


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


@dataclass(frozen=True)
class MatchedConfusion:
    """A confusion matrix of classes (rows) and clusters (columns), and the matching of clusters to classes.

    Attributes
    ----------
    table : array (classes, clusters)
        Number of rows, or their weight, of each class in each cluster.
    classes : array (classes,)
        Labels of the rows of `table`.
    clusters : array (clusters,)
        Labels of the columns of `table`: matched clusters in the order of their classes, then the others.
    matching : dict
        The class of each matched cluster.
    accuracy : float
        Share of the rows whose cluster is matched to their class.
    """

    table: np.ndarray
    classes: np.ndarray
    clusters: np.ndarray
    matching: dict[Any, Any]
    accuracy: float


def matched_confusion(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> MatchedConfusion:
    r"""Compute the confusion matrix of classes and clusters under the best one-to-one matching.

    .. math:: \max_\pi \frac1n \sum_j n_{j \pi(j)}

    The accuracy is from 1 / max(K, classes) to 1. If there are more clusters than classes, some clusters have no class,
    and all their rows are counted as wrong: use `purity_score` if several clusters may represent one class.

    Parameters
    ----------
    labels_true, labels_pred, sample_weight
        As in `purity_score`.

    Returns
    -------
    MatchedConfusion
        `table`, `classes`, `clusters`, `matching`, `accuracy`.

    Notes
    -----
    Takes O(n) operations, and at most O(K³) for the assignment problem.

    References
    ----------
    .. [1] Kuhn (1955), The Hungarian method for the assignment problem, Nav. Res. Logist. Q. 2.

    Examples
    --------
    >>> from coterie.metrics import matched_confusion
    >>> confusion = matched_confusion(["x", "x", "y", "y", "y"], [1, 1, 0, 0, 1])
    >>> confusion.table
    array([[2, 0],
           [1, 2]])
    >>> confusion.matching == {1: "x", 0: "y"}, confusion.accuracy
    (True, 0.8)
    """
    true, pred = labels_of_both(labels_true, labels_pred)
    nonzero = contingency_table(true.codes, pred.codes, sample_weight)
    machine.check_memory(true.k * pred.k * 8, f"a table of {true.k} x {pred.k} labels", "pass fewer different labels")
    table = np.zeros((true.k, pred.k), nonzero.cells.dtype)
    table[nonzero.row, nonzero.column] = nonzero.cells
    rows, columns = linear_sum_assignment(table, maximize=True)
    order = np.concatenate([columns, np.setdiff1d(np.arange(pred.k), columns)])
    matching = dict(zip(pred.names[columns].tolist(), true.names[rows].tolist(), strict=True))
    accuracy = float(min(1.0, table[rows, columns].sum() / nonzero.total))
    return MatchedConfusion(table[:, order], true.names, pred.names[order], matching, accuracy)
