"""The register of all estimators: public name, module, names and options on the command line.

`coterie.KMeans`, the choices of `coterie fit --algorithm` and the classes in model files all come from this table.
Importing it is cheap: an estimator is imported when it is used.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from coterie.core.formatting import join_words
from coterie.errors import ParameterError

# Options of the command line, and the parameters of estimators.
OPTIONS = {
    "n_init": "n_init",
    "max_iter": "max_iter",
    "tol": "tol",
    "search": "search",
    "covariance": "covariance_type",
    "metric": "metric",
    "kernel": "kernel",
    "gamma": "gamma",
    "fuzzifier": "fuzzifier",
    "batch_size": "batch_size",
    "size_min": "size_min",
    "size_max": "size_max",
    "window": "window",
    "eps": "eps",
    "min_samples": "min_samples",
    "min_cluster_size": "min_cluster_size",
}
DESCENT = ("n_init", "max_iter", "tol")


class Algorithm(NamedTuple):
    """An estimator with a name on the command line.

    Attributes
    ----------
    title : str
        Name of the algorithm in a sentence.
    path : str
        Module and class, without `coterie.`. The class is public as `coterie.<class>`, and its name is the tag of model
        files.
    options : tuple of str
        Options that it accepts, of `OPTIONS`.
    fixed : mapping
        Parameters of the estimator that define the algorithm.
    defaults : mapping
        Parameters whose default differs from that of the estimator.
    k_parameter : str
        Name of the parameter for the number of clusters; empty if the algorithm finds the number itself.
    handles_missing : bool
        Whether it accepts missing values.
    mixed : bool
        Whether it accepts columns of text and categories.
    series : bool
        Whether a row is a time series, which may end with missing values.
    directions : bool
        Whether only the direction of a row matters, so that columns must keep their units.
    all_pairs : bool
        Whether it stores the distances of all pairs of rows.
    has_sweep : bool
        Whether criteria for K evaluate its own clusters; otherwise they evaluate those of K-means.
    distributed : bool
        Whether it runs on Dask.
    on_gpu : bool
        Whether it runs on a GPU.
    """

    title: str
    path: str
    options: tuple[str, ...] = DESCENT
    fixed: Mapping[str, Any] = MappingProxyType({})
    defaults: Mapping[str, Any] = MappingProxyType({})
    k_parameter: str = "n_clusters"
    handles_missing: bool = False
    mixed: bool = False
    series: bool = False
    directions: bool = False
    all_pairs: bool = False
    has_sweep: bool = True
    distributed: bool = False
    on_gpu: bool = False

    @property
    def finds_k(self) -> bool:
        """Whether it finds the number of clusters itself."""
        return not self.k_parameter

    @property
    def module(self) -> str:
        """Module of the class."""
        return f"coterie.{self.path.rpartition('.')[0]}"

    @property
    def class_name(self) -> str:
        """Name of the class."""
        return self.path.rpartition(".")[2]

    def build(self, **parameters: Any) -> Any:
        """The unfitted estimator."""
        return getattr(import_module(self.module), self.class_name)(**parameters)


def _tree(title: str, linkage: str, *options: str, all_pairs: bool = False) -> Algorithm:
    path = "hierarchy.agglomerative.AgglomerativeClustering"
    return Algorithm(title, path, options, {"linkage": linkage}, all_pairs=all_pairs)


_TEN = {"n_init": 10}
ALGORITHMS: dict[str, Algorithm] = {
    "kmeans": Algorithm(
        "K-means", "kmeans.kmeans.KMeans", (*DESCENT, "search"), defaults=_TEN, handles_missing=True, distributed=True,
        on_gpu=True,
    ),
    "minibatch": Algorithm(
        "mini-batch K-means", "kmeans.minibatch_kmeans.MiniBatchKMeans", (*DESCENT, "batch_size"), distributed=True,
        on_gpu=True,
    ),
    "bisecting": Algorithm("bisecting K-means", "kmeans.bisecting_kmeans.BisectingKMeans", distributed=True),
    "balanced": Algorithm(
        "balanced K-means", "kmeans.balanced_kmeans.BalancedKMeans", (*DESCENT, "size_min", "size_max"),
    ),
    "spherical": Algorithm(
        "spherical K-means", "kmeans.spherical_kmeans.SphericalKMeans", (*DESCENT, "search"),
        directions=True, distributed=True, on_gpu=True,
    ),
    "kmedians": Algorithm(
        "K-medians", "kmeans.kmedians.KMedians", (*DESCENT, "search", "metric"), distributed=True,
    ),
    "kmedoids": Algorithm("K-medoids", "medoids.kmedoids.KMedoids", ("n_init", "max_iter", "search", "metric")),
    "fuzzy": Algorithm(
        "fuzzy c-means", "kmeans.fuzzy_c_means.FuzzyCMeans", (*DESCENT, "search", "fuzzifier"), distributed=True,
        on_gpu=True,
    ),
    "kernel": Algorithm("kernel K-means", "kmeans.kernel_kmeans.KernelKMeans", (*DESCENT, "kernel", "gamma")),
    "gmm": Algorithm(
        "Gaussian mixture", "mixture.gaussian_mixture.GaussianMixture", (*DESCENT, "search", "covariance"),
        k_parameter="n_components", handles_missing=True, distributed=True, on_gpu=True,
    ),
    "bayes-gmm": Algorithm(
        "Bayesian Gaussian mixture", "mixture.bayesian_mixture.BayesianGaussianMixture", (*DESCENT, "covariance"),
        k_parameter="n_components", has_sweep=False, distributed=True, on_gpu=True,
    ),
    "mixture": Algorithm(
        "mixture", "mixture.family_mixture.Mixture", k_parameter="n_components", handles_missing=True, mixed=True,
    ),
    "ward": _tree("Ward's linkage", "ward"),
    "average": _tree("average linkage", "average", "metric", all_pairs=True),
    "complete": _tree("complete linkage", "complete", "metric", all_pairs=True),
    "single": _tree("single linkage", "single", "metric"),
    "weighted": _tree("weighted linkage", "weighted", "metric", all_pairs=True),
    "centroid": _tree("centroid linkage", "centroid"),
    "median": _tree("median linkage", "median"),
    "divisive": Algorithm(
        "divisive clustering", "hierarchy.divisive.DivisiveClustering", ("metric",), all_pairs=True, has_sweep=False,
    ),
    "dbscan": Algorithm(
        "DBSCAN", "density.dbscan.DBSCAN", ("eps", "min_samples", "metric"), defaults={"eps": "auto"}, k_parameter="",
        has_sweep=False,
    ),
    "hdbscan": Algorithm(
        "HDBSCAN", "density.hdbscan.HDBSCAN", ("min_cluster_size", "min_samples", "metric"), k_parameter="",
        has_sweep=False,
    ),
    "kmeans-dtw": Algorithm(
        "K-means by time warping", "kmeans.time_series_kmeans.TimeSeriesKMeans", (*DESCENT, "metric", "window"),
        series=True,
    ),
    "kmedoids-dtw": Algorithm(
        "K-medoids by time warping", "medoids.kmedoids.KMedoids", ("n_init", "max_iter", "search"), {"metric": "dtw"},
        series=True,
    ),
}  # fmt: skip
ESTIMATORS = {algorithm.class_name: algorithm.module for algorithm in ALGORITHMS.values()}  # public names and modules

if TYPE_CHECKING:
    AlgorithmName: TypeAlias = str
else:
    AlgorithmName = Literal[tuple(ALGORITHMS)]


def estimators_of(package: str) -> dict[str, str]:
    """Public names and modules of the estimators in a package."""
    return {name: module for name, module in ESTIMATORS.items() if module.startswith(f"{package}.")}


def algorithm_of(name: str) -> Algorithm:
    """The algorithm of that name."""
    if name not in ALGORITHMS:
        raise ParameterError(f"algorithm must be one of {', '.join(ALGORITHMS)}; got {name!r}.")
    return ALGORITHMS[name]


def check_options(name: str, options: Iterable[str]) -> None:
    """Reject options that the algorithm does not have, and name the algorithms that have them."""
    algorithm = algorithm_of(name)
    for option in options:
        if option not in OPTIONS:
            raise ParameterError(f"options must be of {', '.join(OPTIONS)}; got {option!r}.")
        if option not in algorithm.options:
            owners = [other for other, each in ALGORITHMS.items() if option in each.options]
            raise ParameterError(f"--{option.replace('_', '-')} belongs to {join_words(owners)}; not to {name}.")


def parameters(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of the estimator, without the number of clusters."""
    algorithm = algorithm_of(name)
    return {**algorithm.fixed, **algorithm.defaults, **{OPTIONS[option]: value for option, value in options.items()}}


def sweep_parameters(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of the estimator in a sweep over many numbers of clusters.

    K-means has no restarts then, because each fit starts from the centers of its neighbours. An automatic covariance
    structure is chosen after the number of components.
    """
    result = parameters(name, options)
    if name == "kmeans" and "n_init" not in options:
        del result["n_init"]
    if result.get("covariance_type") == "auto":
        del result["covariance_type"]
    return result
