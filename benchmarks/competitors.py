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
class MixturePlan:
    """One fit of a Gaussian mixture; ``start`` None means the library's own."""

    k: int
    form: str  # full, tied, diag, spherical
    max_iter: int
    tol: float
    start: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # weights, means, precisions by form
    watch: Callable[[int, float], None] | None = None  # told passes and mean log-likelihood after every E-step
    seed: int = 0
    reg_covar: float = 1e-6

    def options(self) -> dict[str, Any]:
        """As scikit-learn calls them."""
        given = zip(("weights_init", "means_init", "precisions_init"), self.start or (), strict=False)
        return {
            "n_components": self.k,
            "covariance_type": self.form,
            "max_iter": self.max_iter,
            "tol": self.tol,
            "reg_covar": self.reg_covar,
            "random_state": self.seed,
            **dict(given),
        }


@dataclass(frozen=True)
class FittedMixture:
    weights: np.ndarray  # (k,)
    means: np.ndarray  # (k, d)
    covariances: np.ndarray  # by form
    n_iter: int


@dataclass(frozen=True)
class Competitor:
    """``key`` is ``name`` or ``name:variant``; tables show the best variant under the name."""

    key: str
    package: str
    fit: Callable[[np.ndarray, Any], Any]  # Plan to Fitted, MixturePlan to FittedMixture, or as the subject has it
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
    return Fitted(model.centroids, len(model.obj))  # one value for each iteration that was run: faiss stops early


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


class Counted:
    """coterie's threads, which count the passes over the rows."""

    def __init__(self) -> None:
        from coterie.engines.local import Threads

        self.threads, self.passes = Threads(), 0
        self.sum, self.map = self.threads.sum, self.threads.map

    def scan(self, *arguments: Any) -> Any:
        self.passes += 1
        return self.threads.scan(*arguments)


def coterie_mixture(accelerate: bool) -> Callable[[np.ndarray, MixturePlan], FittedMixture]:
    def fit(X: np.ndarray, plan: MixturePlan) -> FittedMixture:
        import coterie

        engine = Counted()
        options = plan.options() | {"engine": engine, "accelerate": accelerate}
        if plan.watch:
            watch = plan.watch
            options["callback"] = lambda p: watch(engine.passes, float(p.stats.log_likelihood) / len(X))
        return fitted_mixture(coterie.GaussianMixture(**options), X)

    return fit


def sklearn_mixture(X: np.ndarray, plan: MixturePlan) -> FittedMixture:
    from sklearn.mixture import GaussianMixture

    class Watched(GaussianMixture):
        passes = 0

        def _e_step(self, *arguments: Any, **options: Any) -> Any:
            log_likelihood, resp = super()._e_step(*arguments, **options)
            self.passes += 1
            plan.watch(self.passes, float(log_likelihood))
            return log_likelihood, resp

    return fitted_mixture((Watched if plan.watch else GaussianMixture)(**plan.options()), X)


def fitted_mixture(model: Any, X: np.ndarray) -> FittedMixture:
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fits are cut short on purpose
        model.fit(X)
    return FittedMixture(model.weights_, model.means_, model.covariances_, int(model.n_iter_))


def pomegranate_mixture(X: np.ndarray, plan: MixturePlan) -> FittedMixture:
    import numpy as np
    from pomegranate.distributions import Normal  # before torch, so that it is what is found missing
    from pomegranate.gmm import GeneralMixtureModel
    from torch import from_numpy

    if plan.start is None or plan.form not in ("full", "diag"):
        raise NotImplementedError(f"asked for full and diag mixtures from given starts only, not for {plan.form}")
    weights, means, precisions = plan.start
    covariances = np.linalg.inv(precisions) if plan.form == "full" else 1 / precisions
    parts = [
        Normal(from_numpy(mean), from_numpy(covariance), covariance_type=plan.form)
        for mean, covariance in zip(means.astype(X.dtype), covariances.astype(X.dtype), strict=True)
    ]
    model = GeneralMixtureModel(
        parts, priors=from_numpy(weights.astype(X.dtype)), max_iter=plan.max_iter, tol=-float("inf")
    )
    model.fit(from_numpy(X))
    found = [(part.means.numpy(), part.covs.numpy()) for part in model.distributions]
    means, covariances = (np.stack(each) for each in zip(*found, strict=True))
    return FittedMixture(model.priors.numpy(), means, covariances, plan.max_iter)


def relative_fit(package: str, name: str, **options: Any) -> Callable[[np.ndarray, Plan], Fitted]:
    """The fit function of the class of that name, which has scikit-learn's arguments, with these options of its own."""

    def fit(X: np.ndarray, plan: Plan) -> Fitted:
        import warnings
        from importlib import import_module

        from sklearn.exceptions import ConvergenceWarning

        init: Any = "k-means++" if plan.start is None else plan.start
        model = getattr(import_module(package), name)(
            plan.k, init=init, n_init=1, max_iter=plan.max_iter, tol=plan.tol, random_state=plan.seed, **options
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fits are cut short on purpose
            model.fit(X)
        return Fitted(model.cluster_centers_, int(getattr(model, "n_iter_", 0)))

    return fit


def faiss_spherical(X: np.ndarray, plan: Plan) -> Fitted:
    import faiss

    n, d = X.shape
    model = faiss.Kmeans(
        d,
        plan.k,
        niter=plan.max_iter,
        seed=plan.seed,
        spherical=True,
        max_points_per_centroid=n,  # the default draws a subsample
        min_points_per_centroid=1,
    )
    model.train(X, init_centroids=plan.start)
    return Fitted(model.centroids, len(model.obj))


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
COTERIE_MIXTURE = Competitor("coterie:mixture", "coterie", coterie_mixture(accelerate=False))
COTERIE_ACCELERATED = Competitor("coterie:accelerated mixture", "coterie", coterie_mixture(accelerate=True))
SKLEARN_MIXTURE = Competitor("scikit-learn:mixture", "sklearn", sklearn_mixture)
POMEGRANATE = Competitor("pomegranate", "pomegranate", pomegranate_mixture)
COTERIE_MINIBATCH = Competitor("coterie:mini-batch", "coterie", relative_fit("coterie", "MiniBatchKMeans"))
SKLEARN_MINIBATCH = Competitor("scikit-learn:mini-batch", "sklearn", relative_fit("sklearn.cluster", "MiniBatchKMeans"))
COTERIE_BISECTING = Competitor("coterie:bisecting", "coterie", relative_fit("coterie", "BisectingKMeans"))
SKLEARN_BISECTING = Competitor("scikit-learn:bisecting", "sklearn", relative_fit("sklearn.cluster", "BisectingKMeans"))
COTERIE_SPHERICAL = Competitor("coterie:spherical", "coterie", relative_fit("coterie", "SphericalKMeans"))
COTERIE_UNCONSTRAINED = Competitor("coterie's KMeans", "coterie", relative_fit("coterie", "KMeans"))
FAISS_SPHERICAL = Competitor("faiss:spherical", "faiss", faiss_spherical, dtypes=("float32",))
FAISS_SPHERICAL_SKYLAKEX = Competitor(
    "faiss:spherical skylakex", "faiss", faiss_spherical, env={"OPENBLAS_CORETYPE": "SKYLAKEX"}, dtypes=("float32",)
)

KMEANS = (COTERIE, COTERIE_LLOYD, SKLEARN, SKLEARN_ELKAN, INTELEX, FAISS, FAISS_SKYLAKEX)
MIXTURES = (COTERIE_MIXTURE, COTERIE_ACCELERATED, SKLEARN_MIXTURE, POMEGRANATE)
MINIBATCH = (COTERIE_MINIBATCH, SKLEARN_MINIBATCH)
BISECTING = (COTERIE_BISECTING, SKLEARN_BISECTING)
SPHERICAL = (COTERIE_SPHERICAL, COTERIE_UNCONSTRAINED, FAISS_SPHERICAL, FAISS_SPHERICAL_SKYLAKEX)
ALL = {c.key: c for c in KMEANS + MIXTURES + MINIBATCH + BISECTING + SPHERICAL}
