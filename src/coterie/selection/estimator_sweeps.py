"""How each kind of estimator is fitted for one number of clusters after another, sharing what can be shared."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from coterie.core import online
from coterie.core.arguments import as_rng
from coterie.core.errors import ParameterError
from coterie.data.memory import as_weights
from coterie.families import forms
from coterie.hierarchy import assign
from coterie.hierarchy.agglomerative import AgglomerativeClustering
from coterie.hierarchy.cut import clusters_below
from coterie.hierarchy.tree import as_tree
from coterie.kmeans.bisecting import BisectingKMeans, Tree
from coterie.kmeans.exact import Exact, exact_if_possible
from coterie.kmeans.fuzzy import FuzzyCMeans
from coterie.kmeans.given import as_roots, scaled
from coterie.kmeans.kmeans import KMeans, check_enough_rows
from coterie.kmeans.lloyd import Lloyd
from coterie.kmeans.medians import KMedians
from coterie.kmeans.minibatch import MiniBatchKMeans
from coterie.kmeans.spherical import SphericalKMeans
from coterie.medoids.kmedoids import KMedoids
from coterie.medoids.objects import as_objects
from coterie.mixture.mixture import GaussianMixture
from coterie.selection.kmeans_path import Array, KMeansPath, too_few_distinct_rows

STARTS = 2  # sequences of starts at least, where chance makes them differ
MEDOIDS = 32  # rows, drawn by their distances, of which the best becomes a medoid


class Fitted(NamedTuple):
    """One number of clusters, the estimator fitted for it, and what that minimises."""

    k: int
    model: Any
    objective: float


class FixedStart:
    """A start that is known already, as a function that finds it."""

    def __init__(self, centers: Array):
        self.centers = centers

    def __call__(self, X: Any, k: int, random_state: Any) -> Array:
        return self.centers


def by_centers(estimator: Any, ks: list[int], X: Any, w: Any, told: Callable[[str], bool]) -> Iterator[Fitted]:
    """Centers found for all K on one source, then an estimator that starts, and all but ends, at those of each."""
    if not isinstance(estimator.init, str) and not callable(estimator.init):
        raise ParameterError(
            "init must be the name of a method or a callable, for every K starts anew; "
            f"got {type(estimator.init).__name__}"
        )
    n_init, max_iter, _ = estimator._check_options()
    source, engine, summary = estimator._open(X, w, first=True)
    check_enough_rows(ks[-1], summary)
    models = {k: clone(estimator).set_params(n_clusters=k)._model(summary) for k in ks}
    if isinstance(estimator, KMeans):
        roots = as_roots(estimator.metric_weights, source.shape[1])
        models = {
            k: exact_if_possible(estimator.algorithm, scaled(model, roots), source) for k, model in models.items()
        }
    if isinstance(models[ks[0]], Exact):
        yield from one_by_one(estimator, ks, X, w, told)
        return
    ladder = KMeansPath(models, source, engine, as_rng(estimator.random_state), max_iter)
    starts = n_init if estimator.init == "farthest" else max(STARTS, n_init)
    ladder.climb(starts, lambda k: told(f"K = {k}: centers"))
    ladder.refine()
    for k, rung in sorted(ladder.rungs.items()):
        start = {"init": FixedStart(rung.centers[ladder.held :]), "n_init": 1}
        model = fitted_with(estimator, {"n_clusters": k}, start, X, w)
        yield Fitted(k, model, objective_of(model))


def one_by_one(estimator: Any, ks: list[int], X: Any, w: Any, told: Callable[[str], bool]) -> Iterator[Fitted]:
    """Each K for itself: what finds the optimum, or cannot learn from other K."""
    name = "n_clusters" if hasattr(estimator, "n_clusters") else "n_components"
    for k in ks:
        model = fitted_with(estimator, {name: k}, {}, X, w)
        yield Fitted(k, model, objective_of(model))


def by_batches(estimator: Any, ks: list[int], X: Any, w: Any, told: Callable[[str], bool]) -> Iterator[Fitted]:
    """A fit from a start of its own, and one from the centers of the last K and some more, whichever is better.

    Batches may lead away from a good start; where they do, the start is the answer.
    """
    source, engine, summary = estimator._open(X, w, first=True)
    check_enough_rows(ks[-1], summary)
    models = {k: Lloyd(k, "k-means++", summary.unit, bounds=False) for k in ks}
    ladder = KMeansPath(models, source, engine, as_rng(estimator.random_state), max_iter=1)
    below: Fitted | None = None
    for k in ks:
        model = fitted_with(estimator, {"n_clusters": k}, {}, X, w)
        if below is not None:
            start = ladder.with_more(below.model.cluster_centers_, k)
            warm = fitted_with(estimator, {"n_clusters": k}, {"init": FixedStart(start), "n_init": 1}, X, w)
            stats, memos = engine.scan(partial(models[k].e_step, start), source, None)
            if models[k].objective(start, stats) < warm.inertia_:
                labels = source.join(engine.map(partial(models[k].assign, start), source, memos))
                warm._publish(online.State(start, stats), warm._random, labels, stats)
            model = min(model, warm, key=objective_of)
        below = Fitted(k, model, objective_of(model))
        yield below


def by_cuts(estimator: Any, ks: list[int], X: Any, w: Any, told: Callable[[str], bool]) -> Iterator[Fitted]:
    """One tree: cuts do not depend on how many follow, so the first K - 1 of them make K clusters."""
    whole = clone(estimator).set_params(n_clusters=ks[-1]).fit(X, sample_weight=w)
    if len(whole.history_) < ks[-1]:
        raise too_few_distinct_rows(len(whole.history_))
    for k in ks:
        model = copy.copy(whole).set_params(n_clusters=k)
        model.tree_, names = first_nodes(whole.tree_, 2 * k - 1)
        model.cluster_centers_ = model.tree_.centers[model.tree_.leaves()]
        model.labels_, model._n_features_out = names[whole.labels_], k
        model.history_ = whole.history_[:k]
        model.inertia_ = float(model.history_[-1])
        yield Fitted(k, model, model.inertia_)


def first_nodes(tree: Tree, count: int) -> tuple[Tree, Array]:
    """The tree when it had `count` nodes, and which of its clusters each cluster of today was in."""
    children = tree.children[:count].copy()
    children[children[:, 0] >= count] = -1
    clusters = np.full(count, -1, np.int32)
    names, waiting = np.empty(len(tree.leaves()), np.int32), [(0, -1)]
    found = 0
    while waiting:
        node, cluster = waiting.pop()
        if cluster < 0 and children[node, 0] < 0:
            cluster = clusters[node] = found
            found += 1
        first, second = tree.children[node]
        if first < 0:
            names[tree.clusters[node]] = cluster
        else:
            waiting += [(second, cluster), (first, cluster)]
    return Tree(children, tree.centers[:count], clusters), names


def by_components(estimator: Any, ks: list[int], X: Any, w: Any, told: Callable[[str], bool]) -> Iterator[Fitted]:
    """A fit from a start of its own; where it is no better than with fewer components, from those and a copy of one.

    A component of which a second one takes over half the weight is as likely as before. Of the penalty that keeps
    covariances from collapsing each component has its share of N / K rows, so that a copy of the one that pays least
    does not raise it. Copies that lie apart are tried first, for from two equal ones EM cannot part them.
    """
    below: Fitted | None = None
    for k in ks:
        model = fitted_with(estimator, {"n_components": k}, {}, X, w)
        for apart in (0.5, 0.0):
            if below is not None and objective_of(model) > below.objective:
                model = min(model, _with_copies(estimator, below.model, k, apart, X, w), key=objective_of)
        below = Fitted(k, model, objective_of(model))
        yield below


def _with_copies(estimator: Any, fewer: Any, k: int, apart: float, X: Any, w: Any) -> Any:
    """A fit from the components of `fewer`, the largest of which are two: so many standard deviations apart."""
    model, c = fewer._fitted_model, fewer._components
    weights, means, found = c.weights, c.means, c.covariances
    while len(weights) < k:
        matrices = forms.dense(model.form, found, *means.shape)
        j = int(np.argmax(weights)) if apart else _least_penalised(matrices, model.penalty.floor)
        variance, axes = np.linalg.eigh(matrices[j])
        step = apart * np.sqrt(variance[-1]) * axes[:, -1]
        weights = np.append(weights, weights[j] / 2)
        weights[j] /= 2
        means = np.concatenate([means, means[j : j + 1] + step])
        means[j] -= step
        if model.form != "tied":
            found = np.concatenate([found, found[j : j + 1]])
    made = clone(estimator).set_params(n_components=k, warm_start=True)
    made._fitted_model = replace(model, n_components=k)
    made._components = model.components(weights, means, found, c.orientation)
    return made.fit(X, sample_weight=w).set_params(warm_start=estimator.warm_start)


def _least_penalised(matrices: Array, floor: Array) -> int:
    precision = np.diagonal(np.linalg.inv(matrices), axis1=1, axis2=2)
    return int(np.argmin(precision @ floor))


def by_medoids(estimator: Any, ks: list[int], X: Any, w: Any, told: Callable[[str], bool]) -> Iterator[Fitted]:
    """The medoids of the last K and the row that helps most, of some drawn by their distances; and, beside, a start
    of its own: swaps never make it worse."""
    if estimator.objective == "silhouette":
        raise ParameterError(
            "objective='silhouette' does not fall with more clusters: KMedoids(n_clusters='auto', "
            "objective='silhouette') chooses their number itself"
        )
    objects = as_objects(X, estimator._as_distance())
    weights = as_weights(w, len(objects))
    weights = np.ones(len(objects)) if weights is None else weights
    everything, rng = objects.table(np.arange(len(objects))), as_rng(estimator.random_state)
    below: Fitted | None = None
    for k in ks:
        model = fitted_with(estimator, {"n_clusters": k}, {}, X, w)
        if below is not None:
            medoids = _more_medoids(everything, weights, below.model.medoid_indices_, k, rng)
            if len(medoids) == k:
                start = {"init": medoids, "n_init": 1}
                model = min(model, fitted_with(estimator, {"n_clusters": k}, start, X, w), key=objective_of)
        below = Fitted(k, model, objective_of(model))
        yield below


def _more_medoids(table: Any, w: Array, medoids: Array, k: int, rng: np.random.Generator) -> Array:
    """`medoids` and others, up to `k` as far as rows differ."""
    nearest = table.rows(medoids).min(axis=0).astype(np.float64)
    while len(medoids) < k:
        mass = w * nearest
        mass[medoids] = 0.0
        if not mass.any():  # rows on medoids: any that is none will do
            mass = np.where(np.isin(np.arange(len(w)), medoids), 0.0, w)
        able = int(np.count_nonzero(mass))
        if able == 0:
            break
        drawn = rng.choice(len(w), min(MEDOIDS, able), replace=False, p=mass / mass.sum())
        distances = np.minimum(table.rows(drawn).astype(np.float64), nearest)
        best = int((distances @ w).argmin())
        medoids, nearest = np.append(medoids, drawn[best]), distances[best]
    return medoids


def by_merges(estimator: Any, ks: list[int], X: Any, w: Any, told: Callable[[str], bool]) -> Iterator[Fitted]:
    """One tree, cut at each K. Its objective: the sum of squares for Ward's, else the height of the highest merge."""
    whole = clone(estimator).set_params(n_clusters=ks[-1], distance_threshold=None).fit(X, sample_weight=w)
    n, kept = whole._columns
    weight = as_weights(w, n)
    weight = np.ones(len(kept)) if weight is None else weight[kept]
    objects = whole._objects(X if len(kept) == n else whole._subset(X, kept))
    tree = as_tree(whole.linkage_matrix_)
    costs = 0.5 * np.cumsum(tree.height**2) if whole.linkage == "ward" else np.maximum.accumulate(tree.height)
    for k in ks:
        made = tree.n_leaves - k
        model = copy.copy(whole).set_params(n_clusters=k)
        labels = clusters_below(tree, np.arange(len(tree.height)) < made)
        model._clusters = assign.clusters_of_tree(whole.linkage, tree, labels, weight, *objects)
        model.labels_, model.n_clusters_ = labels, k
        if len(kept) < n:
            model.labels_ = model.predict(X)
            model.labels_[kept] = labels
        yield Fitted(k, model, float(costs[made - 1]) if made else 0.0)


ESTIMATOR_SWEEPS: dict[type, Callable[..., Iterator[Fitted]]] = {
    KMeans: by_centers,
    KMedians: by_centers,
    SphericalKMeans: by_centers,
    FuzzyCMeans: by_centers,
    MiniBatchKMeans: by_batches,
    BisectingKMeans: by_cuts,
    GaussianMixture: by_components,
    KMedoids: by_medoids,
    AgglomerativeClustering: by_merges,
}


def fitted_with(estimator: Any, number: dict[str, int], start: dict[str, Any], X: Any, w: Any) -> Any:
    """A copy of the estimator, fitted from `start`; its options are afterwards those of the estimator again."""
    model = clone(estimator).set_params(**number, **start)
    model.fit(X, **({} if w is None else {"sample_weight": w}))
    return model.set_params(**{name: getattr(estimator, name) for name in start})


def drop_checkpoint(estimator: Any) -> Any:
    """A copy that keeps no states, where one would: a file is of one fit, and these are many."""
    if getattr(estimator, "checkpoint", None) is None:
        return estimator
    return clone(estimator).set_params(checkpoint=None)


def objective_of(model: Any) -> float:
    """What a fitted estimator has minimised."""
    if isinstance(model, GaussianMixture):
        state: Any = model._state
        return float(model._fitted_model.objective(model._components, state.seen))
    for name, sign in (("inertia_", 1.0), ("objective_", 1.0), ("log_likelihood_", -1.0)):
        if hasattr(model, name):
            return sign * float(getattr(model, name))
    raise ParameterError(
        "estimator must have an objective: inertia_, objective_ or log_likelihood_; "
        f"{type(model).__name__} has none of them"
    )
