"""A short call of every estimator, metric, selection and hierarchy function, so that all kernels are compiled.

`coterie warm` runs it once after an installation, and `make wheel` to find the kernels and signatures for the package.
Tables are as small as they can be for compiled kernels; smaller ones use NumPy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import coterie
from coterie import distances, hierarchy, metrics, seeding, selection
from coterie.core.progress import Callback, Progress, silent
from coterie.hierarchy.linkage_methods import METHODS as LINKAGES
from coterie.kmeans import k_means, kmeans_plusplus

DTYPES = ("float64", "float32")
ROWS, COLUMNS, K = 17_000, 8, 8
SOME = 3000  # rows of methods that run many fits
FEW = 500  # rows of methods that use all pairs
FAMILIES = ("bernoulli", "categorical", "exponential", "gamma", "gaussian", "multinomial", "poisson", "student_t")
METRICS = (
    "braycurtis", "canberra", "chebyshev", "correlation", "cosine", "euclidean", "gower", "hamming", "jaccard",
    "mahalanobis", "manhattan", "minkowski", "nan_euclidean", "seuclidean", "sqeuclidean",
)  # fmt: skip

Step = tuple[str, Callable[[], Any]]


class Tables(NamedTuple):
    """Rows of one type for all methods."""

    X: Any
    w: Any  # weights
    labels: Any
    missing: Any  # X with missing values
    sparse: Any
    some: Any  # the first rows of X
    few: Any
    counts: Any
    series: Any
    column: Any  # one column

    @classmethod
    def of(cls, dtype: str) -> Tables:
        rng = np.random.default_rng(0)
        labels = rng.integers(K, size=ROWS)
        X = (3 * rng.normal(size=(K, COLUMNS))[labels] + rng.normal(size=(ROWS, COLUMNS))).astype(dtype)
        return cls(
            X=X,
            w=rng.integers(1, 4, size=ROWS).astype(dtype),
            labels=labels,
            missing=np.where(rng.random(X.shape) < 0.1, np.nan, X).astype(dtype),
            sparse=sparse.csr_array(1 + rng.poisson(0.5, size=(ROWS, 3 * COLUMNS)).astype(dtype)),
            some=X[:SOME],
            few=X[:FEW],
            counts=rng.poisson(2.0, size=(ROWS, COLUMNS)).astype(dtype),
            series=rng.normal(size=(40, 30)).cumsum(axis=1).astype(dtype),
            column=rng.normal(size=(2600, 1)).astype(dtype),
        )


def run(dtypes: tuple[str, ...] = DTYPES, callback: Callback | None = None) -> dict[str, Any]:
    """Run all steps and return their results by name; the callback is called after each step."""
    steps = [(f"{name}, {dtype}", step) for dtype in dtypes for name, step in tour(Tables.of(dtype))]
    results, callback = dict[str, Any](), callback or silent
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short fits do not converge
        for done, (name, step) in enumerate(steps, start=1):
            results[name] = step()
            if callback(Progress(name, done, len(steps))):
                break
    return results


def tour(tables: Tables) -> Iterator[Step]:
    """All steps for one type."""
    yield from _kmeans(tables)
    yield from _relatives(tables)
    yield from _mixtures(tables)
    yield from _trees(tables)
    yield from _densities(tables)
    yield from _distances(tables)
    yield from _metrics(tables)
    yield from _selection(tables)


def _kmeans(t: Tables) -> Iterator[Step]:
    short: dict[str, Any] = {"max_iter": 3, "n_init": 1, "random_state": 0}
    fit = partial(_fit, coterie.KMeans(K, **short))
    yield "KMeans", lambda: fit(t.X)
    yield "KMeans, weights", lambda: fit(t.X, t.w)
    yield "KMeans, sparse rows", lambda: fit(t.sparse)
    yield "KMeans, sparse rows and weights", lambda: fit(t.sparse, t.w)
    wide = np.repeat(t.some, 4, axis=1)
    yield "KMeans, many columns and clusters", partial(_fit, coterie.KMeans(256, **short), wide)
    for init in seeding.METHODS:
        yield f"KMeans, init {init}", partial(_fit, coterie.KMeans(K, **{**short, "init": init}), t.X, t.w)
    yield "KMeans, missing values", partial(_fit, coterie.KMeans(K, missing="ignore", **short), t.missing, t.w)
    many = np.tile(t.missing, (4, 1))
    yield "KMeans, missing values, many rows", partial(_fit, coterie.KMeans(K, missing="ignore", **short), many)
    for k, rows, budget in ((8 * K, slice(None), 10), (3 * K, slice(200), 1000)):
        estimator = coterie.KMeans(k, search="thorough", search_budget=budget, **short)
        yield f"KMeans, thorough search, {k} clusters", partial(_fit, estimator, t.X[rows], t.w[rows])
    yield "KMeans, one column", partial(_fit, coterie.KMeans(4, algorithm="exact", random_state=0), t.column)
    yield "KMeans, few rows", partial(_fit, coterie.KMeans(3, algorithm="exact", random_state=0), t.X[:24])
    yield "k_means", lambda: k_means(t.X, K, **short)
    yield "kmeans_plusplus", lambda: kmeans_plusplus(t.X, K, random_state=0)
    yield "MiniBatchKMeans", partial(_fit, coterie.MiniBatchKMeans(K, max_iter=2, random_state=0), t.X, t.w)
    yield "BisectingKMeans", partial(_fit, coterie.BisectingKMeans(K, **short), t.X, t.w)
    yield "BalancedKMeans", partial(_fit, coterie.BalancedKMeans(K, size_min=300, **short), t.some)


def _relatives(t: Tables) -> Iterator[Step]:
    short: dict[str, Any] = {"max_iter": 3, "n_init": 1, "random_state": 0}
    for name, X in (("dense", t.X), ("sparse", t.sparse)):
        yield f"SphericalKMeans, {name}", partial(_fit, coterie.SphericalKMeans(K, **short), X, t.w)
    for metric in ("l1", "l2"):
        yield f"KMedians, {metric}", partial(_fit, coterie.KMedians(K, metric=metric, **short), t.X, t.w)
    yield "FuzzyCMeans", partial(_fit, coterie.FuzzyCMeans(K, **short), t.X, t.w)
    for kernel in ("rbf", "linear", "polynomial", "cosine"):
        estimator = coterie.KernelKMeans(4, kernel=kernel, **short)
        yield f"KernelKMeans, {kernel}", partial(_fit, estimator, t.few)
        yield f"KernelKMeans, {kernel}, landmarks", partial(_fit, estimator, t.X, t.w)
    for objective in ("deviation", "silhouette"):
        estimator = coterie.KMedoids(4, objective=objective, random_state=0)
        yield f"KMedoids, {objective}", partial(_fit, estimator, t.few)
        yield f"KMedoids, {objective}, weights", partial(_fit, estimator, t.few, t.w[:FEW])
    yield "KMedoids, build", partial(_fit, coterie.KMedoids(4, init="build", search="none", random_state=0), t.X[:1500])
    for metric in ("dtw", "softdtw"):
        estimator = coterie.TimeSeriesKMeans(3, metric=metric, **short)
        yield f"TimeSeriesKMeans, {metric}", partial(_fit, estimator, t.series)
        yield f"TimeSeriesKMeans, {metric}, window", partial(_fit, estimator.set_params(window=3), t.series)


def _mixtures(t: Tables) -> Iterator[Step]:
    short: dict[str, Any] = {"max_iter": 3, "random_state": 0, "init_params": "random_from_data"}
    yield "GaussianMixture, search", partial(_fit, coterie.GaussianMixture(4, max_iter=3, random_state=0), t.some)
    yield "Mixture, search", partial(_fit, coterie.Mixture(4, "poisson", max_iter=3, random_state=0), t.counts[:SOME])
    for covariance in ("full", "tied", "diag", "spherical", "VEV"):
        estimator = coterie.GaussianMixture(4, covariance_type=covariance, **short)
        yield f"GaussianMixture, {covariance}", partial(_fit, estimator, t.X)
        yield f"GaussianMixture, {covariance}, weights", partial(_fit, estimator, t.X, t.w)
    for e_step in ("hard", "stochastic"):
        estimator = coterie.GaussianMixture(4, e_step=e_step, **short)
        yield f"GaussianMixture, {e_step}", partial(_fit, estimator, t.X)
    estimator = coterie.GaussianMixture(4, missing="ignore", **short)
    yield "GaussianMixture, missing values", partial(_fit, estimator, t.missing)
    for covariance in ("full", "tied", "diag", "spherical"):
        estimator = coterie.BayesianGaussianMixture(4, covariance_type=covariance, **short)
        yield f"BayesianGaussianMixture, {covariance}", partial(_fit, estimator, t.X)
    for family in FAMILIES:
        X = t.counts + (family in ("exponential", "gamma"))
        X = np.minimum(X, 1) if family == "bernoulli" else t.X if family in ("gaussian", "student_t") else X
        yield f"Mixture, {family}", partial(_fit, coterie.Mixture(4, family, **short), X)
    directions = t.X / np.linalg.norm(t.X, axis=1, keepdims=True)
    yield "Mixture, von_mises_fisher", partial(_fit, coterie.Mixture(4, "von_mises_fisher", **short), directions)
    yield "Mixture, sparse rows", partial(_fit, coterie.Mixture(4, "multinomial", **short), t.sparse)
    yield (
        "Mixture, number of components",
        partial(_fit, coterie.Mixture("auto", "poisson", max_iter=3, random_state=0), t.counts[:FEW]),
    )


def _densities(t: Tables) -> Iterator[Step]:
    tables = {"few rows": t.few, "few columns": t.some[:, :2], "many columns": np.repeat(t.some, 3, axis=1)}
    for name, X in tables.items():
        for estimator in (coterie.HDBSCAN(), coterie.DBSCAN("auto")):
            kind = type(estimator).__name__
            yield f"{kind}, {name}", partial(_fit, estimator, X)
            yield f"{kind}, {name}, weights", partial(_fit, estimator, X, t.w[: len(X)])
    yield "HDBSCAN, memberships", lambda: coterie.HDBSCAN().fit(t.few).predict_proba(t.few)


def _trees(t: Tables) -> Iterator[Step]:
    for method in LINKAGES:
        for memory in ("matrix", "auto"):
            yield f"linkage, {method}, {memory}", partial(hierarchy.linkage, t.few, method, memory=memory)
        weighted = partial(hierarchy.linkage, t.few, method, sample_weight=t.w[:FEW])
        yield f"linkage, {method}, weights", weighted
    for name, X in (("few columns", t.X[:, :2]), ("many columns", np.repeat(t.few, 4, axis=1))):
        for method in ("single", "ward"):
            yield f"linkage, {method}, {name}", partial(hierarchy.linkage, X, method, memory="linear")
    condensed = distances.pairwise(t.few, condensed=True)
    Z = hierarchy.linkage(condensed, "average")
    yield "linkage, distances", lambda: hierarchy.linkage(condensed, "average")
    yield "cophenet", lambda: hierarchy.cophenet(Z, condensed)
    yield "cophenetic_correlation", lambda: hierarchy.cophenetic_correlation(Z, t.few)
    yield "optimal_leaf_ordering", lambda: hierarchy.optimal_leaf_ordering(Z, t.few)
    yield "cut", lambda: hierarchy.cut(Z, 4)
    yield "cut_tree", lambda: hierarchy.cut_tree(Z, 4)
    yield "fcluster", lambda: hierarchy.fcluster(Z, 1.0)
    yield "inconsistent", lambda: hierarchy.inconsistent(Z)
    yield "banner_coefficient", lambda: hierarchy.banner_coefficient(Z)
    yield "leaves_list", lambda: hierarchy.leaves_list(Z)
    for method in LINKAGES:
        yield (
            f"AgglomerativeClustering, {method}",
            partial(_fit, coterie.AgglomerativeClustering(4, linkage=method, compute_distances=True), t.few),
        )
    neighbours = sparse.csr_array(np.tri(FEW, k=2) - np.tri(FEW, k=-3))
    for method in ("ward", "average", "complete", "single"):
        estimator = coterie.AgglomerativeClustering(4, linkage=method, connectivity=neighbours)
        yield f"AgglomerativeClustering, {method}, connectivity", partial(_fit, estimator, t.few)
    for method in ("diana", "bisecting"):
        yield (
            f"DivisiveClustering, {method}",
            partial(_fit, coterie.DivisiveClustering(4, method=method, random_state=0), t.few),
        )


def _distances(t: Tables) -> Iterator[Step]:
    for metric in METRICS:
        X = t.counts[:FEW] if metric in ("hamming", "jaccard") else t.few
        X = t.missing[:FEW] if metric == "nan_euclidean" else X
        yield f"pairwise, {metric}", partial(distances.pairwise, X, metric=metric)
        yield f"pairwise, {metric}, two tables", partial(distances.pairwise, X, X[:300].copy(), metric=metric)
        yield f"linkage, {metric}", partial(hierarchy.linkage, X, "average", metric)
    places = t.some[:, :2] / 10
    yield "pairwise, haversine", lambda: distances.pairwise(places, metric="haversine")
    yield "pairwise, minkowski, p = 3", lambda: distances.pairwise(t.few, metric="minkowski", p=3)
    yield "pairwise, dtw", lambda: distances.pairwise(t.series, metric="dtw")
    long = np.tile(t.series[:2], 80)
    yield "dtw", lambda: (distances.dtw(*long), distances.dtw(*long, window=9))
    yield "dtw_path", lambda: distances.dtw_path(*long)
    yield "soft_dtw", lambda: distances.soft_dtw(*long)
    yield "dba", lambda: (distances.dba(t.series, max_iter=2), distances.dba(t.series, gamma=1.0, max_iter=2))


def _metrics(t: Tables) -> Iterator[Step]:
    for name in metrics.__all__:
        function = getattr(metrics, name)
        arguments = (t.X,) if name == "tss" else (t.X, t.labels)
        if name in PAIRS_OF_LABELS:
            arguments = (t.labels, np.roll(t.labels, 1))
        yield name, partial(function, *arguments)
        if name != "dbcv_score":  # without weights
            yield f"{name}, weights", partial(function, *arguments, sample_weight=t.w)
    for approximation in ("sampled", "simplified", "medoid"):
        yield (
            f"silhouette_score, {approximation}",
            partial(metrics.silhouette_score, t.X, t.labels, approximation=approximation, random_state=0),
        )


def _selection(t: Tables) -> Iterator[Step]:
    short: dict[str, Any] = {"random_state": 0}
    kmeans = coterie.KMeans(n_init=1, **short)
    yield "choose_k", lambda: coterie.choose_k(t.some, range(2, 5), budget="quick", **short)
    yield "choose_k, few rows", lambda: coterie.choose_k(t.few, range(2, 5), budget="quick", **short)
    yield "gap_statistic", lambda: selection.gap_statistic(t.few, range(1, 4), n_references=2, **short)
    yield "stability", lambda: selection.stability(kmeans, t.some, range(2, 4), n_resamples=2, **short)
    yield "sweep", lambda: selection.sweep(kmeans, t.some, range(2, 5))
    yield "tendency", lambda: selection.tendency(t.few, (2, 3), n_references=2, **short)
    yield "x_means", lambda: selection.x_means(t.some, k_max=4, **short)
    yield "g_means", lambda: selection.g_means(t.some, k_max=4, **short)
    yield "mixture_table", lambda: selection.mixture_table(t.some, (2,), structures=("EII", "VVV"), **short)
    yield "dendrogram_gap", lambda: selection.dendrogram_gap(hierarchy.linkage(t.few, "ward"))
    yield "diagnose", lambda: coterie.diagnose(t.some, model=coterie.KMeans(K, **short).fit(t.some), **short)


PAIRS_OF_LABELS = {
    name for name in metrics.__all__ if name.endswith(("_score", "_measure", "_matrix", "_confusion"))
} - {"calinski_harabasz_score", "davies_bouldin_score", "dbcv_score", "dunn_score", "silhouette_score"}


def _fit(estimator: Any, X: Any, sample_weight: Any = None) -> Any:
    """Results of `fit`, and of the other methods of the estimator on the same rows."""
    estimator.fit(X) if sample_weight is None else estimator.fit(X, sample_weight=sample_weight)
    methods = (
        getattr(estimator, name, None) for name in ("predict", "transform", "predict_proba", "score_samples", "score")
    )
    return estimator, [method(X) for method in methods if method is not None]
