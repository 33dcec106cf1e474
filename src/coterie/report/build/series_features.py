"""Features of the shape of series: level, trend, amplitude, extremes and steps, and how clusters differ in them."""

import numpy as np
from numpy.typing import NDArray

from coterie.report.build.cluster_moments import moments
from coterie.report.formatting import compact
from coterie.report.results import Trait

ROWS = 4_096  # series whose features are computed at once
ROUNDING = 1e-9  # standard deviations below this share of the largest value are rounding errors


FEATURES = (  # words for clusters with a low and a high mean, and the text before that mean
    ("low level", "high level", ""),
    ("falling", "rising", "change "),
    ("small range", "large range", ""),
    ("early maximum", "late maximum", "step "),
    ("early minimum", "late minimum", "step "),
    ("small steps", "large steps", ""),
)


def features(X: NDArray[np.floating]) -> NDArray[np.floating]:
    """Features (n, 6) of series (n, t), which end with missing values if they are shorter.

    Mean; change along the regression line, from the first to the last step; range; steps of the maximum and of the
    minimum, from 1; mean absolute difference of consecutive values.
    """
    blocks = [_features(np.asarray(X[i : i + ROWS], dtype=np.float64)) for i in range(0, len(X), ROWS)]
    return np.concatenate(blocks)


def _features(X: NDArray[np.floating]) -> NDArray[np.floating]:
    present = ~np.isnan(X)
    counts = np.maximum(present.sum(axis=1), 1)
    level = np.where(present, X, 0.0).sum(axis=1) / counts
    centered = np.where(present, X - level[:, None], 0.0)
    steps = np.where(present, np.arange(X.shape[1], dtype=np.float64), 0.0)
    steps = np.where(present, steps - (steps.sum(axis=1) / counts)[:, None], 0.0)
    slope = (steps * centered).sum(axis=1) / np.maximum((steps**2).sum(axis=1), 0.5)
    highest, lowest = np.where(present, X, -np.inf), np.where(present, X, np.inf)
    differences = np.abs(np.diff(X, axis=1))
    has_next = ~np.isnan(differences)
    step = np.where(has_next, differences, 0.0).sum(axis=1) / np.maximum(has_next.sum(axis=1), 1)
    extremes = highest.argmax(axis=1) + 1.0, lowest.argmin(axis=1) + 1.0
    return np.stack([level, slope * (counts - 1), highest.max(axis=1) - lowest.min(axis=1), *extremes, step], axis=1)


def series_traits(
    X: NDArray[np.floating], labels: NDArray[np.integer], k: int, weight: NDArray[np.floating] | None
) -> list[list[Trait]]:
    """The features of each of k clusters of series, the largest difference from all series first."""
    values = features(X)
    summary = moments(values, labels, k, weight=weight)
    deviation = summary.deviation
    is_constant = deviation <= ROUNDING * np.abs(values).max(axis=0)
    scores = np.where(is_constant, 0.0, (summary.means - summary.mean) / np.where(is_constant, 1.0, deviation))
    result = []
    for cluster_scores, cluster_means in zip(np.nan_to_num(scores), summary.means, strict=True):
        order = np.argsort(-np.abs(np.round(cluster_scores, 9)), kind="stable")
        traits = []
        for j in order.tolist():
            low, high, prefix = FEATURES[j]
            name, score = high if cluster_scores[j] > 0 else low, float(cluster_scores[j])
            traits.append(Trait(name, score, value=f"{prefix}{compact(cluster_means[j])}"))
        result.append(traits)
    return result
