"""How `sweep` fits each type of estimator for ascending numbers of clusters, and which work is shared."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from coterie.core.arguments import as_rng
from coterie.core.arrays import Array
from coterie.core.protocols import parameters_of
from coterie.core.scale import Scale
from coterie.data.memory import as_weights
from coterie.errors import ParameterError, ScaleError
from coterie.hierarchy.agglomerative import AgglomerativeClustering, cuts
from coterie.kmeans.bisecting_kmeans import BisectingKMeans, with_first_splits
from coterie.kmeans.exact_kmeans import Exact
from coterie.kmeans.fuzzy_c_means import FuzzyCMeans
from coterie.kmeans.kmeans import KMeans, sweep_models
from coterie.kmeans.kmedians import KMedians
from coterie.kmeans.minibatch_kmeans import MiniBatchKMeans, full_models, use_if_better
from coterie.kmeans.spherical_kmeans import SphericalKMeans
from coterie.medoids.kmedoids import KMedoids, objects_of
from coterie.mixture.gaussian_mixture import GaussianMixture
from coterie.mixture.warm_start import em_objective, fit_with_copies
from coterie.selection.kmeans_path import KMeansPath, too_few_distinct_rows
from coterie.selection.resampling import count_option

MIN_SEQUENCES = 2  # minimum number of initial center sequences, if the initialisation is random
MEDOID_CANDIDATES = 32  # rows sampled by their distances; the best of them becomes a medoid


class Fitted(NamedTuple):
    """A number of clusters, the estimator fitted with it, and its objective."""

    k: int
    model: Any
    objective: float


SweepFunction = Callable[..., Iterator[Fitted]]


class FixedStart:
    """An `init` callable that returns these centers."""

    def __init__(self, centers: Array):
        self.centers = centers

    def __call__(self, X: Any, k: int, random_state: Any) -> Array:
        return self.centers


def divides_rows(fit_all: SweepFunction) -> SweepFunction:
    """A sweep on rows and weights divided by their scale, if they are out of range; its models are in their units."""

    @wraps(fit_all)
    def fit_divided(estimator: Any, ks: list[int], X: Any, w: Any, report: Callable[[str], bool]) -> Iterator[Fitted]:
        try:
            yield from fit_all(estimator, ks, X, w, report)
            return
        except ScaleError as error:  # raised when the rows are opened, before the first fit
            estimator._check_rescalable(error)
            scale = Scale(error.rows, error.weights)
        divided, name = estimator._with_divided_options(scale), count_option(estimator)
        for fitted in fit_all(divided, ks, *estimator._divided(X, w, scale), report):
            model = clone(estimator).set_params(**{name: fitted.k})._take_fit(fitted.model, X, w, scale)
            yield Fitted(fitted.k, model, objective_of(model))

    return fit_divided


@divides_rows
def by_centers(estimator: Any, ks: list[int], X: Any, w: Any, report: Callable[[str], bool]) -> Iterator[Fitted]:
    """Find centers for all K on one source, then fit an estimator from the centers of each K."""
    if not isinstance(estimator.init, str) and not callable(estimator.init):
        raise ParameterError(
            f"init is an array ({type(estimator.init).__name__}), but every K needs other centers: "
            "init must be the name of a method or a callable"
        )
    models, source, engine, n_init, max_iter = sweep_models(estimator, ks, X, w)
    if isinstance(models[ks[0]], Exact):
        yield from one_by_one(estimator, ks, X, w, report)
        return
    path = KMeansPath(models, source, engine, as_rng(estimator.random_state), max_iter)
    starts = n_init if estimator.init == "farthest" else max(MIN_SEQUENCES, n_init)
    path.fit_all(starts, lambda k: report(f"K = {k}: centers"))
    path.refine()
    for k, best in sorted(path.best.items()):
        start = {"init": FixedStart(best.centers[path.n_frozen :]), "n_init": 1}
        model = fitted_with(estimator, {"n_clusters": k}, start, X, w)
        yield Fitted(k, model, objective_of(model))


def one_by_one(
    estimator: Any, ks: list[int], X: Any, w: Any, report: Any, warm: Callable[[Any, int, Fitted], Any] | None = None
) -> Iterator[Fitted]:
    """Fit each K independently; then `warm` may return a better fit, which starts from that of the previous K.

    Without `warm`: for exact solutions, and for estimators that cannot reuse other fits.
    """
    name = count_option(estimator)
    previous: Fitted | None = None
    for k in ks:
        model = fitted_with(estimator, {name: k}, {}, X, w)
        if warm is not None and previous is not None:
            model = warm(model, k, previous)
        previous = Fitted(k, model, objective_of(model))
        yield previous


@divides_rows
def by_batches(estimator: Any, ks: list[int], X: Any, w: Any, report: Callable[[str], bool]) -> Iterator[Fitted]:
    """The better of two fits: an independent one, and one from the centers of the previous K and additional ones.

    Batches may lead away from a good start; then the start itself is the result.
    """
    models, source, engine = full_models(estimator, ks, X, w)
    path = KMeansPath(models, source, engine, as_rng(estimator.random_state), max_iter=1)

    def warm(model: Any, k: int, previous: Fitted) -> Any:
        start = path.add_centers(previous.model.cluster_centers_, k)
        other = fitted_with(estimator, {"n_clusters": k}, {"init": FixedStart(start), "n_init": 1}, X, w)
        use_if_better(other, start, models[k], source, engine)
        return min(model, other, key=objective_of)

    return one_by_one(estimator, ks, X, w, report, warm)


def by_cuts(estimator: Any, ks: list[int], X: Any, w: Any, report: Callable[[str], bool]) -> Iterator[Fitted]:
    """Fit one tree. Splits do not depend on later ones, so the first K - 1 splits give K clusters."""
    full_model = clone(estimator).set_params(n_clusters=ks[-1]).fit(X, sample_weight=w)
    if len(full_model.history_) < ks[-1]:
        raise too_few_distinct_rows(len(full_model.history_))
    for k in ks:
        model = with_first_splits(full_model, k)
        yield Fitted(k, model, model.inertia_)


@divides_rows
def by_components(estimator: Any, ks: list[int], X: Any, w: Any, report: Callable[[str], bool]) -> Iterator[Fitted]:
    """Fit independently; if that is worse than with fewer components, fit from those and a copy of one of them.

    If two equal components share the weight of one, the likelihood does not change. The penalty that keeps covariances
    from collapsing gives each component a share of N / K rows. So a copy of the component with the lowest penalty does
    not raise it. Copies with shifted means are tried first, because EM cannot separate two equal components.
    """
    clone(estimator)._open(X, w, first=True)  # a fit from other components cannot rescale its rows

    def warm(model: Any, k: int, previous: Fitted) -> Any:
        for offset in (0.5, 0.0):
            if objective_of(model) > previous.objective:
                model = min(model, fit_with_copies(estimator, previous.model, k, offset, X, w), key=objective_of)
        return model

    return one_by_one(estimator, ks, X, w, report, warm)


def by_medoids(estimator: Any, ks: list[int], X: Any, w: Any, report: Callable[[str], bool]) -> Iterator[Fitted]:
    """The better of two fits: an independent one, and one from the medoids of the previous K and additional rows.

    The additional row is the best of some rows sampled by their distances. Swaps never make a start worse.
    """
    if estimator.objective == "silhouette":
        raise ParameterError(
            "objective='silhouette' does not fall with more clusters, so it cannot be swept: use "
            "KMedoids(n_clusters='auto', objective='silhouette'), which chooses the number of clusters itself"
        )
    objects = objects_of(estimator, X)
    weights = as_weights(w, len(objects))
    weights = np.ones(len(objects)) if weights is None else weights
    distances_table, rng = objects.table(np.arange(len(objects))), as_rng(estimator.random_state)

    def warm(model: Any, k: int, previous: Fitted) -> Any:
        medoids = _more_medoids(distances_table, weights, previous.model.medoid_indices_, k, rng)
        if len(medoids) < k:
            return model
        start = {"init": medoids, "n_init": 1}
        return min(model, fitted_with(estimator, {"n_clusters": k}, start, X, w), key=objective_of)

    return one_by_one(estimator, ks, X, w, report, warm)


def _more_medoids(table: Any, w: Array, medoids: Array, k: int, rng: np.random.Generator) -> Array:
    """`medoids` and additional rows, up to `k` if there are enough distinct rows."""
    nearest = table.rows(medoids).min(axis=0).astype(np.float64)
    while len(medoids) < k:
        mass = w * nearest
        mass[medoids] = 0.0
        if not mass.any():  # all rows are equal to medoids: any other row can be added
            mass = np.where(np.isin(np.arange(len(w)), medoids), 0.0, w)
        n_candidates = int(np.count_nonzero(mass))
        if n_candidates == 0:
            break
        candidates = rng.choice(len(w), min(MEDOID_CANDIDATES, n_candidates), replace=False, p=mass / mass.sum())
        distances = np.minimum(table.rows(candidates).astype(np.float64), nearest)
        best = int((distances @ w).argmin())
        medoids, nearest = np.append(medoids, candidates[best]), distances[best]
    return medoids


def by_merges(estimator: Any, ks: list[int], X: Any, w: Any, report: Callable[[str], bool]) -> Iterator[Fitted]:
    """Fit one tree and cut it at each K. The objective is the sum of squares for Ward, else the highest merge."""
    full_model = clone(estimator).set_params(n_clusters=ks[-1], distance_threshold=None).fit(X, sample_weight=w)
    for k, (model, cost) in zip(ks, cuts(full_model, ks, X, w), strict=True):
        yield Fitted(k, model, cost)


ESTIMATOR_SWEEPS: dict[type, SweepFunction] = {
    **dict.fromkeys((KMeans, KMedians, SphericalKMeans, FuzzyCMeans), by_centers),
    MiniBatchKMeans: by_batches,
    BisectingKMeans: by_cuts,
    GaussianMixture: by_components,
    KMedoids: by_medoids,
    AgglomerativeClustering: by_merges,
}


def fitted_with(estimator: Any, number: dict[str, int], start: dict[str, Any], X: Any, w: Any) -> Any:
    """Fit a clone from `start`; afterwards its parameters are those of the estimator again."""
    model = clone(estimator).set_params(**number, **start)
    model.fit(X, **({} if w is None else {"sample_weight": w}))
    return model.set_params(**{name: getattr(estimator, name) for name in start})


def drop_checkpoint(estimator: Any) -> Any:
    """Return the estimator without its checkpoint: a checkpoint file belongs to one fit, and a sweep has many."""
    if parameters_of(estimator).get("checkpoint") is None:
        return estimator
    return clone(estimator).set_params(checkpoint=None)


def objective_of(model: Any) -> float:
    """Objective of a fitted estimator: lower is better."""
    if isinstance(model, GaussianMixture):
        return em_objective(model)
    for name, sign in (("inertia_", 1.0), ("objective_", 1.0), ("log_likelihood_", -1.0)):
        if hasattr(model, name):
            return sign * float(getattr(model, name))
    raise ParameterError(
        f"{type(model).__name__} has no objective to compare: use an estimator with inertia_, objective_ or "
        "log_likelihood_"
    )
