"""Mutual information on a scale from 0 to 1."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

from coterie.core.arguments import one_of
from coterie.metrics.contingency import contingency, entropy, mutual_information

AVERAGES: dict[str, Callable[[float, float], float]] = {
    "min": min,
    "geometric": lambda a, b: sqrt(a * b),
    "arithmetic": lambda a, b: (a + b) / 2,
    "max": max,
}


def normalized_mutual_info_score(
    labels_true: Any, labels_pred: Any, *, average_method: str = "arithmetic", sample_weight: Any = None
) -> float:
    r"""Mutual information by an average of the two entropies.

    .. math:: \frac{I}{\operatorname{avg}(H_{true}, H_{pred})}

    From 0 to 1, which is for equal divisions; with `average_method` 'min' also for one that refines the other. Many
    small clusters score high by chance: where numbers of clusters differ, use `adjusted_mutual_info_score`.

    Parameters
    ----------
    labels_true, labels_pred : labels (n,)
        Two labellings of the same rows, of any kind; which is which makes no difference.
    average_method : 'arithmetic' (default), 'geometric', 'min' or 'max'
        With 'arithmetic' it is the V-measure.
    sample_weight : array (n,), optional

    Notes
    -----
    Costs O(n). It is 1 if both put all rows into one cluster, 0 if one does and the other does not.

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
    table = contingency(labels_true, labels_pred, sample_weight)
    if table.identical:
        return 1.0
    whole = average(entropy(table.rows), entropy(table.columns))
    return min(1.0, mutual_information(table) / whole) if whole > 0 else 0.0
