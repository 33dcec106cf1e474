"""Whether clusters hold one class each, and whether classes lie in one cluster each."""

from __future__ import annotations

from typing import Any

from coterie.core.arguments import not_negative
from coterie.metrics.contingency import contingency, entropy, mutual_information


def homogeneity_completeness_v_measure(
    labels_true: Any, labels_pred: Any, *, beta: float = 1.0, sample_weight: Any = None
) -> tuple[float, float, float]:
    r"""Homogeneity, completeness, and their weighted harmonic mean, the V-measure.

    .. math:: h = \frac{I}{H_{true}}, \quad c = \frac{I}{H_{pred}}, \quad V = \frac{(1 + \beta) h c}{\beta h + c}

    Each from 0 to 1. h is 1 if every cluster holds rows of one class only, c if all rows of a class lie in one
    cluster. None is adjusted for chance: many small clusters are homogeneous whatever they are.

    Parameters
    ----------
    labels_true, labels_pred : labels (n,)
        Classes and clusters of the same rows, of any kind; the other way round h and c change places.
    beta : float, default=1.0
        How many times as much completeness counts.
    sample_weight : array (n,), optional

    Returns
    -------
    homogeneity, completeness, v_measure : float

    Notes
    -----
    Costs O(n). With one class only h is 1, with one cluster only c is 1.

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
    shared, classes, clusters = mutual_information(table), entropy(table.rows), entropy(table.columns)
    h = min(1.0, shared / classes) if classes > 0 else 1.0
    c = min(1.0, shared / clusters) if clusters > 0 else 1.0
    return h, c, (1 + beta) * h * c / (beta * h + c) if h > 0 and c > 0 else 0.0
