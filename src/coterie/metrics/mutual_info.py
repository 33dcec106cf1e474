"""Mutual information of two labellings: plain, normalised, and adjusted for chance; and V-measure."""

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from coterie.core.arguments import not_negative, one_of
from coterie.core.arrays import Array
from coterie.metrics.contingency import Contingency, contingency_table, table_of_matrix

TAIL = 26.0  # exp(-2 TAIL) is 1e-22: less likely overlaps do not change the result
AVERAGES: dict[str, Callable[[float, float], float]] = {
    "min": min,
    "geometric": lambda a, b: sqrt(a * b),
    "arithmetic": lambda a, b: (a + b) / 2,
    "max": max,
}


def mutual_info_score(
    labels_true: Any, labels_pred: Any, *, contingency: Any = None, sample_weight: Any = None
) -> float:
    r"""Compute the mutual information of two labellings, in nats.

    .. math:: I = \sum_{ij} p_{ij} \log \frac{p_{ij}}{p_i p_j}

    The score is from 0, for independent labellings, to the smaller of their entropies. It increases with the number of
    clusters, even for random labels: use `adjusted_mutual_info_score` for comparisons.

    Parameters
    ----------
    labels_true, labels_pred : array (n,)
        Two labellings of the same rows: integers, strings or other hashable values. Their order does not matter.
    contingency : array or sparse matrix (classes, clusters), optional
        Result of `contingency_matrix`. The labels and `sample_weight` are then ignored.
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
    .. [1] Shannon (1948), A mathematical theory of communication, Bell Syst. Tech. J. 27.

    Examples
    --------
    >>> from coterie.metrics import mutual_info_score
    >>> round(mutual_info_score([0, 0, 1, 1], ["a", "a", "b", "b"]), 4)
    0.6931
    """
    if contingency is not None:
        return mutual_information(table_of_matrix(contingency))
    return mutual_information(contingency_table(labels_true, labels_pred, sample_weight))


def normalized_mutual_info_score(
    labels_true: Any, labels_pred: Any, *, average_method: str = "arithmetic", sample_weight: Any = None
) -> float:
    r"""Compute the mutual information of two labellings divided by an average of their entropies.

    .. math:: \frac{I}{\operatorname{avg}(H_{true}, H_{pred})}

    The score is from 0 to 1, and 1 for equal partitions; with `average_method` 'min' also if one partition refines the
    other. Many small clusters have a high score by chance: use `adjusted_mutual_info_score` to compare labellings with
    different numbers of clusters.

    Parameters
    ----------
    labels_true, labels_pred, sample_weight
        As in `mutual_info_score`.
    average_method : {'arithmetic', 'geometric', 'min', 'max'}, default='arithmetic'
        Average of the two entropies. With 'arithmetic' the score is the V-measure.

    Returns
    -------
    float

    Notes
    -----
    Takes O(n) operations. The score is 1 if both labellings have one cluster, and 0 if only one of them has.

    References
    ----------
    .. [1] Vinh, Epps & Bailey (2010), Information theoretic measures for clusterings comparison, J. Mach. Learn. Res.
       11.

    Examples
    --------
    >>> from coterie.metrics import normalized_mutual_info_score
    >>> round(normalized_mutual_info_score([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]), 4)
    0.5158
    """
    average = AVERAGES[one_of("average_method", average_method, tuple(AVERAGES))]
    table = contingency_table(labels_true, labels_pred, sample_weight)
    if table.identical:
        return 1.0
    normalizer = average(entropy(table.rows), entropy(table.columns))
    return min(1.0, mutual_information(table) / normalizer) if normalizer > 0 else 0.0


def adjusted_mutual_info_score(
    labels_true: Any, labels_pred: Any, *, average_method: str = "arithmetic", sample_weight: Any = None
) -> float:
    r"""Compute the mutual information of two labellings, adjusted for chance.

    .. math:: \frac{I - E[I]}{\operatorname{avg}(H_{true}, H_{pred}) - E[I]}

    The expectation is over all labellings with the same cluster sizes. The score is 1 for equal partitions, and about 0
    (sometimes slightly negative) for independent labels, whatever the number of clusters. If clusters are large and of
    similar sizes, `adjusted_rand_score` is the more usual choice [2]_.

    Parameters
    ----------
    labels_true, labels_pred, sample_weight
        As in `adjusted_rand_score`.
    average_method : {'arithmetic', 'geometric', 'min', 'max'}, default='arithmetic'
        Average of the two entropies in the denominator.

    Returns
    -------
    float

    Notes
    -----
    Takes O(n + r c √m) operations for r and c different cluster sizes, of clusters of m rows. Probabilities of overlaps
    are computed from their ratios, without factorials, so that no precision is lost for many rows.

    References
    ----------
    .. [1] Vinh, Epps & Bailey (2010), Information theoretic measures for clusterings comparison, J. Mach. Learn. Res.
       11.
    .. [2] Romano, Vinh, Bailey & Verspoor (2016), Adjusting for chance clustering comparison measures, J. Mach. Learn.
       Res. 17.

    Examples
    --------
    >>> from coterie.metrics import adjusted_mutual_info_score
    >>> round(adjusted_mutual_info_score([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]), 4)
    0.2988
    """
    average = AVERAGES[one_of("average_method", average_method, tuple(AVERAGES))]
    table = contingency_table(labels_true, labels_pred, sample_weight, whole=True)
    if table.identical:
        return 1.0
    expected = expected_mutual_information(table)
    maximum = average(entropy(table.rows), entropy(table.columns)) - expected
    excess = mutual_information(table) - expected
    rounding = 16 * np.finfo(np.float64).eps * max(1.0, expected)
    if abs(excess) <= rounding:
        return 0.0
    return excess / (maximum if abs(maximum) > rounding else np.copysign(rounding, maximum))


def expected_mutual_information(table: Contingency) -> float:
    """The expected mutual information of random labellings with these cluster sizes, in nats."""
    n = int(table.total)
    rows, row_counts = np.unique(table.rows[table.rows > 0], return_counts=True)
    columns, column_counts = np.unique(table.columns[table.columns > 0], return_counts=True)
    terms = (t * (column_counts @ _expected_cell(int(a), columns, n)) for a, t in zip(rows, row_counts, strict=True))
    return float(sum(terms))


def _expected_cell(a: int, b: np.ndarray, n: int) -> np.ndarray:
    """The expected contribution (m,) to the mutual information of clusters of sizes `a` and `b` (m,) among n rows.

    Their overlap x has a hypergeometric distribution. Its probabilities follow from the ratios ``p(x + 1) / p(x)``, and
    sum to 1.
    """
    b = b.astype(np.float64)
    minimum, maximum = np.maximum(0, a + b - n), np.minimum(a, b)
    radius = np.ceil(np.sqrt(TAIL * maximum)) + 1  # Hoeffding's bound
    first = np.maximum(minimum, np.floor(a * b / n) - radius)[:, None]
    last = np.minimum(maximum, np.ceil(a * b / n) + radius)[:, None]
    x = first + np.arange(int((last - first).max()) + 1)
    in_range, b = x <= last, b[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        step = (np.log(a - x) + np.log(b - x) - np.log(x + 1) - np.log(n - a - b + x + 1))[:, :-1]
        log_p = np.where(in_range, np.cumsum(np.hstack([np.zeros(b.shape), step]), axis=1), -np.inf)
        value = np.where(in_range & (x > 0), x / n * (np.log(x) + np.log(n) - np.log(a) - np.log(b)), 0.0)
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    return (p * value).sum(axis=1) / p.sum(axis=1)


def entropy(counts: Array) -> float:
    """The entropy of the distribution proportional to these counts, in nats."""
    share = counts[counts > 0] / counts.sum()
    return max(0.0, -float(share @ np.log(share)))


def mutual_information(table: Contingency) -> float:
    """The mutual information of the two labellings, in nats; from 0 to the smaller of their entropies."""
    share, rows, columns = (sums / table.total for sums in (table.cells, table.rows, table.columns))
    information = share @ np.log(share / (rows[table.row] * columns[table.column]))
    return float(np.clip(information, 0.0, min(entropy(table.rows), entropy(table.columns))))


# Homogeneity, completeness and V-measure.


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
