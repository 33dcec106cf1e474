"""Which algorithms are compared by default, and which one of several is recommended."""

from collections.abc import Sequence

import numpy as np

from coterie.algorithms import algorithm_of
from coterie.core.formatting import join_words
from coterie.report.formatting import two_places
from coterie.report.results import Contestant, Recommendation
from coterie.selection.votes import RATIO, SILHOUETTE, relative_support

MEDOID_ROWS = 5_000  # rows up to which all pairs of rows are compared repeatedly
TREE_ROWS = 20_000  # rows up to which a tree of all rows is computed
MIXTURE_VALUES = 20_000_000  # rows times squares of columns up to which covariances of clusters are estimated
VECTOR_COLUMNS = 16  # columns of one unit from which the direction of a row is compared as well

CRITERIA = {  # by field of a run: title, weight, scale of the support, and whether higher values are better
    "silhouette": ("silhouette", 1.0, SILHOUETTE, True),
    "stability": ("stability under resampling", 1.0, SILHOUETTE, True),
    "davies_bouldin": ("Davies–Bouldin", 0.25, RATIO, False),
    "calinski_harabasz": ("Calinski–Harabasz", 0.25, RATIO, True),
}
LOGARITHMIC = ("davies_bouldin", "calinski_harabasz")  # criteria that are ratios
SAME, EQUAL = 0.9, 0.9999  # adjusted Rand index from which clusters of two algorithms are nearly, or exactly, the same
CLEAR_SUPPORT, CLEAR_MARGIN, WEAK_MARGIN = 0.85, 0.15, 0.05
TINY = 0.01  # share of the rows below which a cluster is a few outliers
SEPARATED = 0.25  # silhouette below which clusters overlap so much that no algorithm is clear
STABLE = 0.6  # stability under resampling below which no algorithm is clear


def default_algorithms(n: int, d: int, *, is_one_unit: bool) -> tuple[str, ...]:
    """Algorithms of different kinds that are fast enough for a table of this size."""
    names = ["kmeans"]
    names += ["gmm"] if n * d * d <= MIXTURE_VALUES else []
    names += ["ward"] if n <= TREE_ROWS else ["bisecting"]
    names += ["kmedoids"] if n <= MEDOID_ROWS else []
    names += ["spherical"] if is_one_unit and d >= VECTOR_COLUMNS else []
    return tuple(names)


def recommend(runs: Sequence[Contestant], agreement: Sequence[Sequence[float]], n: int) -> Recommendation | None:
    """The best of the runs, one for each algorithm, how clear it is, and why; None if there are fewer than two."""
    if len(runs) < 2:
        return None
    is_usable = np.array([run.smallest >= TINY * n for run in runs])
    support = np.where(is_usable | ~is_usable.any(), _support(runs), 0.0)
    ranked = np.argsort(-support, kind="stable")
    best, second = int(ranked[0]), int(ranked[1])
    margin = float(support[best] - support[second])
    lowest = min(agreement[best])
    is_same = lowest >= SAME
    silhouette = runs[best].silhouette
    reasons = [] if lowest >= EQUAL else [_wins(runs, best)]
    if is_same:
        same = (
            "the same clusters" if lowest >= EQUAL else f"nearly the same clusters (adjusted Rand index ≥ {lowest:.2f})"
        )
        reasons.append(f"All algorithms find {same}, so that the choice hardly matters.")
    elif margin < CLEAR_MARGIN:
        reasons.append(
            f"{_title(runs[second])} is close (support {support[second]:.2f}, and {support[best]:.2f} for the best)."
        )
    left_out = [_title(run) for run, usable in zip(runs, is_usable, strict=True) if not usable]
    if left_out and is_usable.any():
        reasons.append(f"{_capitalize(join_words(left_out))}: the smallest cluster has less than 1 % of the rows.")
    is_overlapping = silhouette is not None and silhouette < SEPARATED
    if is_overlapping:
        reasons.append(f"The clusters overlap (silhouette {two_places(silhouette)}): look at more than one.")
    stability = runs[best].stability
    is_unstable = stability is not None and stability < STABLE
    if is_unstable:
        reasons.append(f"Its clusters are not stable under resampling ({two_places(stability)}): try another K.")
    strength = "none" if margin < WEAK_MARGIN and not is_same else "weak"
    if not (is_overlapping or is_unstable) and (is_same or (support[best] >= CLEAR_SUPPORT and margin >= CLEAR_MARGIN)):
        strength = "clear"
    return Recommendation(runs[best].method, runs[best].k, strength, " ".join(reasons))


def _support(runs: Sequence[Contestant]) -> np.ndarray:
    """Weighted mean of the supports by the criteria, from 0 to 1, for each run."""
    total, weights = np.zeros(len(runs)), 0.0
    for name, (_, weight, scale, higher) in CRITERIA.items():
        values = _values(runs, name)
        if np.isnan(values).all():
            continue
        scores = (1.0 if higher else -1.0) * (np.log(np.maximum(values, 1e-12)) if name in LOGARITHMIC else values)
        total += weight * relative_support(scores / scale)
        weights += weight
    return np.round(total / max(weights, 1e-12), 6)  # rounding errors do not decide


def _wins(runs: Sequence[Contestant], best: int) -> str:
    """The criteria by which a run is the best, with its values, and those by which others are."""
    wins, losses = [], []
    for name, (title, _, _, higher) in CRITERIA.items():
        values = _values(runs, name)
        if np.isnan(values).all():
            continue
        first = int(np.nanargmax(values) if higher else np.nanargmin(values))
        if np.isclose(values[best], values[first]):
            wins.append(f"{title} {two_places(float(values[best]))}")
        else:
            losses.append(f"{title} prefers {_title(runs[first])}")
    if not wins:
        return f"No criterion is best for {_title(runs[best])}, but all are good: {'; '.join(losses)}."
    others = f"; {join_words(losses)}" if losses else ""
    return f"{_capitalize(_title(runs[best]))} is best by {join_words(wins)}{others}."


def _values(runs: Sequence[Contestant], name: str) -> np.ndarray:
    return np.array([np.nan if getattr(run, name) is None else getattr(run, name) for run in runs], np.float64)


def _title(run: Contestant) -> str:
    return algorithm_of(run.method).title


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
