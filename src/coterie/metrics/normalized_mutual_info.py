"""Normalised mutual information."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

from coterie.core.arguments import one_of
from coterie.metrics.contingency import contingency_table, entropy, mutual_information

AVERAGES: dict[str, Callable[[float, float], float]] = {
    "min": min,
    "geometric": lambda a, b: sqrt(a * b),
    "arithmetic": lambda a, b: (a + b) / 2,
    "max": max,
}


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
