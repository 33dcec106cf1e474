"""Homogeneity, completeness and V-measure."""

from typing import Any

from coterie.core.arguments import not_negative
from coterie.metrics.contingency import contingency_table
from coterie.metrics.mutual_info import entropy, mutual_information


def homogeneity_completeness_v_measure(
    labels_true: Any, labels_pred: Any, *, beta: float = 1.0, sample_weight: Any = None
) -> tuple[float, float, float]:
    r"""Compute homogeneity, completeness, and their weighted harmonic mean, the V-measure.

    .. math:: h = \frac{I}{H_{true}}, \quad c = \frac{I}{H_{pred}}, \quad V = \frac{(1 + \beta) h c}{\beta h + c}

    Each is from 0 to 1. The homogeneity h is 1 if each cluster contains rows of one class only. The completeness c is 1
    if all rows of each class are in one cluster. None is adjusted for chance: many small clusters are always
    homogeneous.

    Parameters
    ----------
    labels_true, labels_pred : array (n,)
        Classes and clusters of the same rows: integers, strings or other hashable values. Exchanging them exchanges h
        and c.
    beta : float, default=1.0
        Weight of completeness relative to homogeneity.
    sample_weight : array (n,), optional
        Sample weights.

    Returns
    -------
    homogeneity, completeness, v_measure : float

    Notes
    -----
    Takes O(n) operations. h is 1 if there is only one class, and c is 1 if there is only one cluster.

    References
    ----------
    .. [1] Rosenberg & Hirschberg (2007), V-Measure: a conditional entropy-based external cluster evaluation measure,
       EMNLP-CoNLL.

    Examples
    --------
    >>> from coterie.metrics import homogeneity_completeness_v_measure
    >>> [round(x, 3) for x in homogeneity_completeness_v_measure([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2])]
    [0.667, 0.421, 0.516]
    """
    beta = not_negative("beta", beta)
    table = contingency_table(labels_true, labels_pred, sample_weight)
    if table.identical:
        return 1.0, 1.0, 1.0
    information, classes, clusters = mutual_information(table), entropy(table.rows), entropy(table.columns)
    h = min(1.0, information / classes) if classes > 0 else 1.0
    c = min(1.0, information / clusters) if clusters > 0 else 1.0
    return h, c, (1 + beta) * h * c / (beta * h + c) if h > 0 and c > 0 else 0.0


def homogeneity_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    """Compute the homogeneity: 1 if each cluster contains rows of one class only.

    It increases with the number of clusters.

    Parameters
    ----------
    labels_true, labels_pred, sample_weight
        As in `homogeneity_completeness_v_measure`.

    Returns
    -------
    float
        From 0 to 1. See `homogeneity_completeness_v_measure` for the formula.

    Examples
    --------
    >>> from coterie.metrics import homogeneity_score
    >>> round(homogeneity_score([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]), 3)
    0.667
    """
    return homogeneity_completeness_v_measure(labels_true, labels_pred, sample_weight=sample_weight)[0]


def completeness_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    """Compute the completeness: 1 if all rows of each class are in one cluster.

    It decreases with the number of clusters.

    Parameters
    ----------
    labels_true, labels_pred, sample_weight
        As in `homogeneity_completeness_v_measure`.

    Returns
    -------
    float
        From 0 to 1. See `homogeneity_completeness_v_measure` for the formula.

    Examples
    --------
    >>> from coterie.metrics import completeness_score
    >>> round(completeness_score([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]), 3)
    0.421
    """
    return homogeneity_completeness_v_measure(labels_true, labels_pred, sample_weight=sample_weight)[1]


def v_measure_score(labels_true: Any, labels_pred: Any, *, beta: float = 1.0, sample_weight: Any = None) -> float:
    """Compute the V-measure: the weighted harmonic mean of homogeneity and completeness.

    With `beta=1` it is the normalised mutual information with the arithmetic mean.

    Parameters
    ----------
    labels_true, labels_pred, beta, sample_weight
        As in `homogeneity_completeness_v_measure`.

    Returns
    -------
    float
        From 0 to 1. See `homogeneity_completeness_v_measure` for the formula.

    Examples
    --------
    >>> from coterie.metrics import v_measure_score
    >>> round(v_measure_score([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]), 3)
    0.516
    """
    return homogeneity_completeness_v_measure(labels_true, labels_pred, beta=beta, sample_weight=sample_weight)[2]
