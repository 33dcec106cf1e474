"""Votes: the support that each criterion gives to every number of clusters, and their weighted sum."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from coterie.core.arrays import Array
from coterie.selection.criteria import Curve
from coterie.selection.gap import Gap
from coterie.selection.mixture_table import MixtureTable
from coterie.selection.stability import Stability
from coterie.selection.valleys import Valleys

# Scales of the supports: a K whose value is worse than the best by one scale has the support 1 / e.
SILHOUETTE = 0.1
RATIO = 0.3  # difference of logarithms, for indices that are ratios
NATS = 0.05  # per row, for information criteria
GAP = 0.1
FEWER = 0.3  # support of a K below the largest K with stable clusters: it is stable as well, but too small
APART = 2.0  # separate clusters fewer than the maximum, from which a K has no support
WEAK, STRONG = 0.5, 0.8  # prediction strengths at which a K has no support, and full support

# By criterion: title, weight if the clusters are those of centers or distances, and if they are those of a mixture
TITLES_AND_WEIGHTS = {
    "tendency": ("test for clusters", 1.5, 1.5),
    "silhouette": ("silhouette", 1.0, 0.5),
    "calinski_harabasz": ("Calinski–Harabasz", 0.25, 0.25),
    "davies_bouldin": ("Davies–Bouldin", 0.25, 0.25),
    "dunn": ("Dunn", 0.1, 0.1),
    "elbow": ("elbow", 0.0, 0.0),
    "gap": ("gap", 0.5, 0.25),
    "bic": ("BIC", 0.1, 0.5),
    "icl": ("ICL", 0.4, 1.5),
    "prediction_strength": ("prediction strength", 1.0, 1.0),
    "valleys": ("density valleys", 1.0, 1.0),
    "dirichlet": ("Dirichlet process", 0.2, 1.0),
    "stability": ("stability", 0.25, 0.25),
    "dendrogram": ("dendrogram", 0.1, 0.1),
    "x_means": ("X-means", 0.1, 0.1),
    "g_means": ("G-means", 0.1, 0.1),
}
NAMES = {name: title for name, (title, _, _) in TITLES_AND_WEIGHTS.items()}
WEIGHTS = {name: weight for name, (_, weight, _) in TITLES_AND_WEIGHTS.items()}
MODEL_WEIGHTS = {name: weight for name, (_, _, weight) in TITLES_AND_WEIGHTS.items()}
ADVICE = ("icl", "bic", "dirichlet")  # criteria of Gaussian mixtures: advice about the clusters of other estimators
BY_SPLITS = ("silhouette", "calinski_harabasz", "davies_bouldin", "dunn", "dendrogram")  # these cannot choose K = 1


@dataclass(frozen=True)
class Vote:
    """Vote of one criterion in `choose_k`."""

    criterion: str
    k: int | None  # preferred number of clusters; None if the criterion has no result
    confidence: float  # from 0 to 1: margin between the support of k and that of the next best K
    weight: float  # in the sum of all votes; 0 if the vote is not counted
    support: Array  # (m,) of each K that was compared, from 0 to 1
    note: str | None = None  # details, or why the vote is not counted

    def without(self, note: str) -> "Vote":
        """Return the same vote with weight 0 and this note."""
        return replace(self, weight=0.0, note=note)

    def among(self, allowed: Array, ks: Array) -> "Vote":
        """Return the vote restricted to the K for which `allowed` is true."""
        if self.k is None or allowed[ks == self.k].all():
            return replace(self, support=np.where(allowed, self.support, 0.0))
        return vote(self.criterion, ks, np.where(allowed, self.support, 0.0), self.note)


def vote(criterion: str, ks: Array, support: Array, note: str | None = None, k: int | None = None) -> Vote:
    """Build the vote for `k`, by default the K with the largest support."""
    if not support.any():
        return Vote(criterion, None, 0.0, 0.0, support, note or "no result for these data")
    preferred = int(ks[support.argmax()]) if k is None else k
    margin = float(support[ks == preferred].sum() - support[ks != preferred].max(initial=0.0))
    return Vote(criterion, preferred, max(0.0, margin), WEIGHTS[criterion], support, note)


def by_curve(curve: Curve, ks: Array) -> Vote:
    """Vote of an index: the support falls with the distance from the best value."""
    values = _values_at(ks, curve.ks, curve.values)
    if curve.name == "silhouette":
        score = values / SILHOUETTE
    else:
        with np.errstate(divide="ignore"):
            score = (1.0 if curve.higher_is_better else -1.0) * np.log(values) / RATIO
    return vote(curve.name, ks, relative_support(score), curve.note)


def by_gap(gap: Gap, ks: Array) -> Vote:
    return vote("gap", ks, relative_support(_values_at(ks, gap.ks, gap.gap / GAP)))


def by_mixtures(table: MixtureTable, criterion: str, ks: Array, weight: float) -> Vote:
    """Vote of an information criterion, with the best covariance structure for each K."""
    values = getattr(table, criterion)
    best = values.min(axis=1)
    structure = table.structures[int(np.unravel_index(values.argmin(), values.shape)[1])]
    score = np.where(np.isfinite(best), -best / (2 * weight * NATS), np.nan)
    return vote(
        criterion, ks, relative_support(_values_at(ks, table.ks, score)), f"best covariance structure: {structure}"
    )


def by_strength(result: Stability, ks: Array) -> Vote:
    """Vote of the prediction strength.

    The largest K with strong prediction has full support. Smaller K have a fixed support, larger K less than that.
    """
    strength = np.nan_to_num(_values_at(ks, result.ks, result.mean), nan=0.0)
    strength[ks == 1] = 1.0
    last = int(ks[strength >= STRONG].max(initial=0))
    above = np.clip((strength - WEAK) / (STRONG - WEAK), 0.0, 1.0)
    return vote("prediction_strength", ks, np.where(ks == last, 1.0, np.where(ks < last, FEWER, above * FEWER)))


def by_valleys(result: Valleys, ks: Array) -> Vote:
    """Vote of the valleys: the support falls with the number of separate clusters that are missing."""
    apart = _values_at(ks, result.ks, np.where(result.is_possible, result.apart, np.nan))
    apart[ks == 1] = 1.0
    missing = np.nanmax(apart, initial=1.0) - apart
    return vote("valleys", ks, np.nan_to_num(np.clip(1 - missing / APART, 0.0, 1.0), nan=0.0))


def by_stability(result: Stability, ks: Array) -> Vote:
    score = _values_at(ks, result.ks, result.mean / SILHOUETTE)
    support = relative_support(score) if result.best is not None else np.zeros(len(ks))
    return vote("stability", ks, support, None if result.best else "no number of clusters is stable", result.best)


def single_choice(criterion: str, ks: Array, k: int | None, note: str | None = None) -> Vote:
    """Vote of a criterion that gives one K and no values for others."""
    return vote(criterion, ks, (ks == k).astype(np.float64), note)


def relative_support(score: Array) -> Array:
    """exp(score - maximum), and 0 for NaN. If some scores are infinite, these have 1 and all others 0."""
    highest = np.nanmax(score, initial=-np.inf)
    if np.isinf(highest):  # perfect clusters, or no usable value
        return (score == np.inf).astype(np.float64)
    return np.nan_to_num(np.exp(score - highest), nan=0.0)


def total_support(votes: Iterable[Vote], ks: Array) -> Array:
    """Weighted mean of the supports of all votes for every K (m,), from 0 to 1."""
    counted = [vote for vote in votes if vote.weight > 0]
    total = sum(vote.weight for vote in counted)
    if total == 0:
        return np.zeros(len(ks))
    return np.sum([vote.weight * vote.support for vote in counted], axis=0) / total


def _values_at(ks: Array, known_ks: Array, values: Array) -> Array:
    """Values at `ks`; NaN for K without a value."""
    by_k = dict(zip(known_ks.tolist(), values.tolist(), strict=True))
    return np.array([by_k.get(k, np.nan) for k in ks.tolist()])
