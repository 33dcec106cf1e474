"""The libraries that are compared: how each is asked for the same work.

A library is imported inside the function that uses it, so a worker process loads only the one it measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

OURS = "coterie"


@dataclass(frozen=True)
class Plan:
    """One k-means fit; ``start`` None means the library's own k-means++."""

    k: int
    max_iter: int
    tol: float
    start: np.ndarray | None = None  # (k, d)
    seed: int = 0


@dataclass(frozen=True)
class Fitted:
    centers: np.ndarray  # (k, d)
    n_iter: int


@dataclass(frozen=True)
class Competitor:
    """``key`` is ``name`` or ``name:variant``; tables show the best variant under the name."""

    key: str
    package: str
    fit: Callable[[np.ndarray, Plan], Fitted]
    estimator: Callable[[], type] | None = None
    plusplus: Callable[[np.ndarray, int, int], np.ndarray] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    dtypes: tuple[str, ...] = ("float32", "float64")

    @property
    def name(self) -> str:
        return self.key.partition(":")[0]


def estimator_fit(estimator: Callable[[], type], algorithm: str) -> Callable[[np.ndarray, Plan], Fitted]:
    """The fit function of a class with scikit-learn's arguments."""

    def fit(X: np.ndarray, plan: Plan) -> Fitted:
        init: Any = "k-means++" if plan.start is None else plan.start
        model = estimator()(
            plan.k,
            init=init,
            n_init=1,
            max_iter=plan.max_iter,
            tol=plan.tol,
            algorithm=algorithm,
            random_state=plan.seed,
        ).fit(X)
        return Fitted(model.cluster_centers_, int(model.n_iter_))

    return fit


def coterie_estimator() -> type:
    import coterie

    return coterie.KMeans


def sklearn_estimator() -> type:
    from sklearn.cluster import KMeans

    return KMeans


def intelex_estimator() -> type:
    from sklearnex.cluster import KMeans

    return KMeans


def faiss_fit(X: np.ndarray, plan: Plan) -> Fitted:
    import faiss

    n, d = X.shape
    model = faiss.Kmeans(
        d,
        plan.k,
        niter=plan.max_iter,
        seed=plan.seed,
        max_points_per_centroid=n,  # the default draws a subsample
        min_points_per_centroid=1,
    )
    model.train(X, init_centroids=plan.start)
    return Fitted(model.centroids, len(model.obj))


def coterie_plusplus(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    import numpy as np

    from coterie.data import as_source
    from coterie.data.summary import summarize
    from coterie.engines import as_engine
    from coterie.seeding import plusplus

    source = as_source(X)
    engine = as_engine("auto", source)
    return plusplus(source, engine, np.random.default_rng(seed), k, summarize(source, engine).unit)


def sklearn_plusplus(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from sklearn.cluster import kmeans_plusplus

    return kmeans_plusplus(X, k, random_state=seed)[0]


def coterie(key: str, algorithm: str) -> Competitor:
    fit = estimator_fit(coterie_estimator, algorithm)
    return Competitor(key, "coterie", fit, coterie_estimator, coterie_plusplus)


def sklearn(key: str, algorithm: str) -> Competitor:
    fit = estimator_fit(sklearn_estimator, algorithm)
    return Competitor(key, "sklearn", fit, sklearn_estimator, sklearn_plusplus)


COTERIE = coterie("coterie", "auto")
COTERIE_LLOYD = coterie("coterie:lloyd", "lloyd")
SKLEARN = sklearn("scikit-learn", "lloyd")
SKLEARN_ELKAN = sklearn("scikit-learn:elkan", "elkan")
INTELEX = Competitor("scikit-learn-intelex", "sklearnex", estimator_fit(intelex_estimator, "lloyd"), intelex_estimator)
FAISS = Competitor("faiss", "faiss", faiss_fit, dtypes=("float32",))
# The OpenBLAS inside faiss takes slow kernels on chips newer than itself; this asks for the AVX-512 ones.
FAISS_SKYLAKEX = Competitor(
    "faiss:skylakex", "faiss", faiss_fit, env={"OPENBLAS_CORETYPE": "SKYLAKEX"}, dtypes=("float32",)
)

ALL = {c.key: c for c in (COTERIE, COTERIE_LLOYD, SKLEARN, SKLEARN_ELKAN, INTELEX, FAISS, FAISS_SKYLAKEX)}
