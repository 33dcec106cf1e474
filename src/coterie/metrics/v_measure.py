"""Homogeneity, completeness and V-measure."""

from __future__ import annotations

from typing import Any

from coterie.core.arguments import not_negative
from coterie.metrics.contingency import contingency, entropy, mutual_information


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
    table = contingency(labels_true, labels_pred, sample_weight)
    if table.identical:
        return 1.0, 1.0, 1.0
    information, classes, clusters = mutual_information(table), entropy(table.rows), entropy(table.columns)
    h = min(1.0, information / classes) if classes > 0 else 1.0
    c = min(1.0, information / clusters) if clusters > 0 else 1.0
    return h, c, (1 + beta) * h * c / (beta * h + c) if h > 0 and c > 0 else 0.0
