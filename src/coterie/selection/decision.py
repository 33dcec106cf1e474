"""The decision of `choose_k`: the recommended number of clusters, how clear it is, and the runner-up."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.metrics import adjusted_rand_score
from coterie.selection.perfect_fit import is_grid

CLEAR_SUPPORT, CLEAR_MARGIN = 0.85, 0.3  # of a clear K, at least: its support, and the distance to the next largest
SOME_SUPPORT = 0.5  # below this, no number is clear
TINY = 0.01  # share of all rows below which a cluster is a few outliers
STABLE = 0.6  # prediction strength of the recommended K, at least
APART = 0.7  # share of the clusters with density valleys around them, at least
EXCESS = 0.2  # of the best silhouette over that of data without clusters, as a share of the largest possible excess
SAME = 0.9  # adjusted Rand index of the clusters and groups of the values of a column, from which they are the same
MODELS = ("gap", "icl", "bic")  # criteria that compare K with a model of the rows, and not clusters with each other


@dataclass(frozen=True)
class Decision:
    """The recommended K, how clear it is, the runner-up, and the names of the reasons for doubt."""

    recommended: int
    strength: str  # 'clear', 'weak' or 'none'
    runner_up: int | None
    doubts: tuple[str, ...] = ()  # about `recommended`; about the runner-up if no number is clear and 1 is recommended


def decide(choice: Any) -> Decision:
    """Weigh the votes of a `ChooseK`."""
    ks, support = choice.ks, choice.support
    k, runner_up = _two_best(choice, support)
    if k == 1:
        return Decision(1, "none", runner_up)
    doubts, best = _doubts(choice, k, runner_up), float(support.max())
    valleys = choice.results.get("valleys")
    has_no_valleys = valleys is not None and valleys.best is None and "support" in doubts
    is_forced = "tendency" in doubts and ("valleys" in doubts or not (ks == 1).any())
    if best >= SOME_SUPPORT and not has_no_valleys and not is_forced:
        return Decision(k, "weak" if doubts else "clear", runner_up, doubts)
    is_usable = np.array([not {"stability", "tiny"} & set(_doubts(choice, each, None)) for each in ks.tolist()])
    is_usable &= (ks > 1) & (support > 0)
    if is_usable.any():
        k, runner_up = _two_best(choice, np.where(is_usable, support, 0.0))
    doubts = _doubts(choice, k, runner_up)
    return Decision(1, "none", k, doubts) if (ks == 1).any() else Decision(k, "none", runner_up, doubts)


def _two_best(choice: Any, support: Array) -> tuple[int, int | None]:
    """The K with the largest support, and the next one; None if that has no support.

    Of K with equal support, the first is one that a criterion prefers.
    """
    ks, preferred = choice.ks, [vote.k for vote in choice.votes if vote.weight > 0]
    order = np.lexsort((~np.isin(ks, preferred), -support))
    return int(ks[order[0]]), int(ks[order[1]]) if len(ks) > 1 and support[order[1]] > 0 else None


def _doubts(choice: Any, k: int, runner_up: int | None) -> tuple[str, ...]:
    """Names of the reasons why K is not clear; empty if it is."""
    results, ks, supports = choice.results, choice.ks, choice.support
    test, strength, valleys = (results.get(name) for name in ("tendency", "prediction_strength", "valleys"))
    support = value_at(ks, supports, k)
    model_ks = Counter(vote.k for vote in choice.votes if vote.criterion in MODELS and vote.k and vote.weight > 0)
    checks = {
        "support": support < CLEAR_SUPPORT,
        "margin": runner_up is not None and support - value_at(ks, supports, runner_up) < CLEAR_MARGIN,
        "edge": k == int(ks.max()) and k != choice.perfect_k,
        "grid": k == choice.perfect_k and is_grid(choice.sweep.X),
        "tiny": smallest_share(choice.sweep, k) < TINY,
        "tendency": test is not None and not test.clustered,
        "untested": all(vote.criterion != "tendency" for vote in choice.votes),
        "column": k > 1 and column_of_clusters(choice, k) is not None,
        "models": sum(model_ks.values()) > 1 and model_ks[k] == 0,
        "overlap": test is not None and test.excess < EXCESS and preferred_by(choice, "icl") not in (None, k),
        "stability": strength is not None and value_at(strength.ks, strength.mean, k) < STABLE,
        "valleys": valleys is not None and value_at(valleys.ks, valleys.apart, k) < APART * k,
    }
    return tuple(name for name, is_doubt in checks.items() if is_doubt)


def preferred_by(choice: Any, criterion: str) -> int | None:
    """The K that a criterion with a weight prefers."""
    return next((vote.k for vote in choice.votes if vote.criterion == criterion and vote.weight > 0), None)


def column_of_clusters(choice: Any, k: int) -> tuple[str, int] | None:
    """The column that contributes most to the k clusters, and its number of values, if these divide the rows likewise.

    Columns such as ``colour=red`` and ``colour=blue`` are one column. None if there is no such column beside others.
    """
    labels, X = labels_at(choice.sweep, k), np.asarray(choice.sweep.X)
    names = np.array([name.partition("=")[0] for name in choice.columns])
    if labels is None or k == choice.perfect_k or len(set(names)) < 2:
        return None
    means = np.array([X[labels == j].mean(axis=0) for j in range(k)])
    between = np.bincount(labels, minlength=k) @ (means - X.mean(axis=0)) ** 2
    largest = max(names, key=lambda name: between[names == name].sum())
    is_largest = names == largest
    values, codes = np.unique(X[:, is_largest], axis=0, return_inverse=True)
    if len(values) > 2 * k or not between[is_largest].sum() >= between.sum() / 2:
        return None
    counts = np.zeros((len(values), k))
    np.add.at(counts, (codes.ravel(), labels), 1)
    is_same = adjusted_rand_score(counts.argmax(axis=1)[codes.ravel()], labels) >= SAME
    name = largest if is_largest.sum() > 1 else choice.columns[is_largest.argmax()]
    return (name, len(values)) if is_same else None


def value_at(ks: Array, values: Array, k: int) -> float:
    """Value at k; NaN if there is none."""
    return float(values[ks == k].sum()) if (ks == k).any() else np.nan


def smallest_share(sweep: Any, k: int) -> float:
    """Share of the rows in the smallest of k clusters; 1 if k was not fitted."""
    if (labels := labels_at(sweep, k)) is None:
        return 1.0
    weight = np.bincount(labels, sweep.sample_weight)
    return float(weight.min() / weight.sum())


def labels_at(sweep: Any, k: int) -> Array | None:
    """The clusters of the fit with k clusters; None if k was not fitted."""
    return next((np.asarray(labels) for each, labels in zip(sweep.ks, sweep.labels, strict=True) if each == k), None)
