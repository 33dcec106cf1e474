"""What each criterion says of every number of clusters, and what all of them say together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.selection.criteria import Curve
from coterie.selection.gap import Gap
from coterie.selection.mixture_table import MixtureTable
from coterie.selection.stability import Stability

Array = np.ndarray[Any, Any]

# How much worse than the best makes a number of clusters e times less likely, in each criterion's own terms.
SILHOUETTE = 0.1
RATIO = 0.3  # of logarithms: of indices that are ratios
NATS = 0.05  # a row: of information criteria
GAP = 0.1
FEWER = 0.3  # what is left for a K below the largest at which clusters come back: they do so, but there are more
WEAKEST, STRONG = 0.5, 0.8  # prediction strengths at which nothing, and all, speaks for a K

WEIGHTS = {
    "silhouette": 1.0,
    "calinski_harabasz": 0.5,
    "davies_bouldin": 0.5,
    "dunn": 0.25,
    "gap": 0.5,
    "bic": 0.5,
    "icl": 1.5,
    "prediction_strength": 1.0,
    "dirichlet": 1.0,
    "stability": 0.25,
    "dendrogram": 0.25,
    "x_means": 0.25,
    "g_means": 0.25,
    "elbow": 0.0,
    "tendency": 2.0,
}
BY_SPLITS = ("silhouette", "calinski_harabasz", "davies_bouldin", "dunn", "dendrogram")  # these cannot answer 1


@dataclass(frozen=True)
class Vote:
    """One criterion's answer."""

    criterion: str
    k: int | None  # the number of clusters it favours; None: it has no answer
    confidence: float  # from 0 to 1: how far that K is ahead of the next
    weight: float  # how much it counts
    support: Array  # (m,) for each K that was asked about, from 0 to 1
    note: str | None = None

    def without(self, note: str) -> Vote:
        """The same vote, that does not count."""
        return replace(self, weight=0.0, note=note)

    def among(self, allowed: Array, ks: Array) -> Vote:
        """The vote if only these K can be had."""
        if self.k is None or allowed[ks == self.k].all():
            return replace(self, support=np.where(allowed, self.support, 0.0))
        return vote(self.criterion, ks, np.where(allowed, self.support, 0.0), self.note)


def vote(criterion: str, ks: Array, support: Array, note: str | None = None, k: int | None = None) -> Vote:
    """The vote that goes with this support; for its K unless that is given."""
    if not support.any():
        return Vote(criterion, None, 0.0, 0.0, support, note or "it has no answer here")
    chosen = int(ks[support.argmax()]) if k is None else k
    ahead = float(support[ks == chosen].sum() - support[ks != chosen].max(initial=0.0))
    return Vote(criterion, chosen, max(0.0, ahead), WEIGHTS[criterion], support, note)


def by_curve(curve: Curve, ks: Array) -> Vote:
    """Of an index over K: how near each is to the best."""
    values = _at(ks, curve.ks, curve.values)
    if curve.name == "silhouette":
        height = values / SILHOUETTE
    else:
        with np.errstate(divide="ignore"):
            height = (1.0 if curve.higher_is_better else -1.0) * np.log(values) / RATIO
    return vote(curve.name, ks, nearness(height), curve.note)


def by_gap(gap: Gap, ks: Array) -> Vote:
    return vote("gap", ks, nearness(_at(ks, gap.ks, gap.gap / GAP)))


def by_mixtures(table: MixtureTable, criterion: str, ks: Array, weight: float) -> Vote:
    """Of the best structure for each K."""
    values = getattr(table, criterion)
    best = values.min(axis=1)
    structure = table.structures[int(np.unravel_index(values.argmin(), values.shape)[1])]
    height = np.where(np.isfinite(best), -best / (2 * weight * NATS), np.nan)
    return vote(criterion, ks, nearness(_at(ks, table.ks, height)), f"best covariance structure: {structure}")


def by_strength(found: Stability, ks: Array) -> Vote:
    """Of prediction strength: all for the largest K whose clusters come back; below it some, above it by strength."""
    strength = np.nan_to_num(_at(ks, found.ks, found.mean), nan=0.0)
    strength[ks == 1] = 1.0
    last = int(ks[strength >= STRONG].max(initial=0))
    above = np.clip((strength - WEAKEST) / (STRONG - WEAKEST), 0.0, 1.0)
    return vote("prediction_strength", ks, np.where(ks == last, 1.0, np.where(ks < last, FEWER, above * FEWER)))


def by_stability(found: Stability, ks: Array) -> Vote:
    height = _at(ks, found.ks, found.mean / SILHOUETTE)
    support = nearness(height) if found.best is not None else np.zeros(len(ks))
    return vote("stability", ks, support, None if found.best else "no number of clusters comes back", found.best)


def for_one(criterion: str, ks: Array, k: int | None, note: str | None = None) -> Vote:
    """Of a criterion that names a K and says nothing of others."""
    return vote(criterion, ks, (ks == k).astype(np.float64), note)


def nearness(height: Array) -> Array:
    """exp(height - the highest), and 0 where there is none; where some are infinite, 1 for these and 0 for others."""
    highest = np.nanmax(height, initial=-np.inf)
    if np.isinf(highest):  # of perfect clusters, or of no usable value at all
        return (height == np.inf).astype(np.float64)
    return np.nan_to_num(np.exp(height - highest), nan=0.0)


def together(votes: Iterable[Vote], ks: Array) -> Array:
    """The support of every K by all votes (m,), from 0 to 1."""
    counted = [each for each in votes if each.weight > 0]
    total = sum(each.weight for each in counted)
    if total == 0:
        return np.zeros(len(ks))
    return np.sum([each.weight * each.support for each in counted], axis=0) / total


def _at(ks: Array, known: Array, values: Array) -> Array:
    """Values known for some K, for all of `ks`; NaN where there is none."""
    of = dict(zip(known.tolist(), values.tolist(), strict=True))
    return np.array([of.get(k, np.nan) for k in ks.tolist()])
