"""Mutual information beyond what chance would give."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.core.arguments import one_of
from coterie.metrics.contingency import Contingency, contingency, entropy, mutual_information
from coterie.metrics.labels import Array
from coterie.metrics.normalized_mutual_info import AVERAGES

TAIL = 26.0  # exp(-2 TAIL) is 1e-22: overlaps less likely than that change no digit


def adjusted_mutual_info_score(
    labels_true: Any, labels_pred: Any, *, average_method: str = "arithmetic", sample_weight: Any = None
) -> float:
    r"""Mutual information less what labels of the same sizes share by chance, on a scale to 1.

    .. math:: \frac{I - E[I]}{\operatorname{avg}(H_{true}, H_{pred}) - E[I]}

    The expectation is over all labellings with the same sizes of clusters. 1 for equal divisions, about 0 (also a
    little below) for labels that have nothing to do with each other, however many clusters there are. Where clusters
    are large and of like sizes, `adjusted_rand_score` is the more usual choice [2]_.

    Parameters
    ----------
    labels_true, labels_pred : labels (n,)
        Two labellings of the same rows, of any kind; which is which makes no difference.
    average_method : 'arithmetic' (default), 'geometric', 'min' or 'max'
    sample_weight : array (n,) of whole numbers, optional
        How many rows each row stands for.

    Notes
    -----
    Costs O(n + r c √m) for r and c different sizes of clusters, of m rows: the probabilities of all overlaps of two
    clusters come from their ratios, so that no factorial is taken and no digit lost for many rows.

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
    table = contingency(labels_true, labels_pred, sample_weight, whole=True)
    if table.identical:
        return 1.0
    chance = expected_mutual_information(table)
    room = average(entropy(table.rows), entropy(table.columns)) - chance
    gain = mutual_information(table) - chance
    rounding = 16 * np.finfo(np.float64).eps * max(1.0, chance)
    if abs(gain) <= rounding:
        return 0.0
    return gain / (room if abs(room) > rounding else np.copysign(rounding, room))


def expected_mutual_information(table: Contingency) -> float:
    """Of labellings with these sizes of clusters, in nats."""
    n = int(table.total)
    sizes, times = np.unique(table.rows[table.rows > 0], return_counts=True)
    others, other_times = np.unique(table.columns[table.columns > 0], return_counts=True)
    return float(sum(t * (other_times @ _expected_cell(int(a), others, n)) for a, t in zip(sizes, times, strict=True)))


def _expected_cell(a: int, b: Array, n: int) -> Array:
    """Expected share in the mutual information of clusters of `a` and of `b` (m,) of n rows, (m,).

    Their overlap x is hypergeometric. Its probabilities follow from ``p(x + 1) / p(x)``, and add up to 1.
    """
    b = b.astype(np.float64)
    least, most = np.maximum(0, a + b - n), np.minimum(a, b)
    reach = np.ceil(np.sqrt(TAIL * most)) + 1  # Hoeffding's bound
    first = np.maximum(least, np.floor(a * b / n) - reach)[:, None]
    last = np.minimum(most, np.ceil(a * b / n) + reach)[:, None]
    x = first + np.arange(int((last - first).max()) + 1)
    inside, b = x <= last, b[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        step = (np.log(a - x) + np.log(b - x) - np.log(x + 1) - np.log(n - a - b + x + 1))[:, :-1]
        log_p = np.where(inside, np.cumsum(np.hstack([np.zeros(b.shape), step]), axis=1), -np.inf)
        worth = np.where(inside & (x > 0), x / n * (np.log(x) + np.log(n) - np.log(a) - np.log(b)), 0.0)
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    shares: Array = (p * worth).sum(axis=1) / p.sum(axis=1)
    return shares
