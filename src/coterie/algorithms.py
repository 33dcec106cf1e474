"""The algorithms by their names on the command line, with the options of each. Importing this module is cheap."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from coterie.core.formatting import join_words
from coterie.errors import ParameterError

Algorithm: TypeAlias = Literal[
    "kmeans", "minibatch", "bisecting", "balanced", "spherical", "kmedians", "kmedoids", "fuzzy", "kernel", "gmm",
    "bayes-gmm", "mixture", "ward", "average", "complete", "single", "weighted", "centroid", "median", "divisive",
    "kmeans-dtw",
]  # fmt: skip

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
    "fuzzifier": "m",
    "batch_size": "batch_size",
    "size_min": "size_min",
    "size_max": "size_max",
    "window": "window",
}
DESCENT = ("n_init", "max_iter", "tol")


@dataclass(frozen=True)
class Method:
    """An algorithm of the command line.

    Attributes
    ----------
    title : str
        Name of the algorithm in a sentence.
    estimator : str
        Name of its class in `coterie`.
    options : tuple of str
        Options that it accepts, of `OPTIONS`.
    fixed : mapping
        Parameters of the estimator that define the algorithm.
    defaults : mapping
        Parameters whose default differs from that of the estimator.
    k_parameter : str
        Name of the parameter for the number of clusters.
    handles_missing : bool
        Whether it accepts missing values.
    mixed : bool
        Whether it accepts columns of text and categories.
    series : bool
        Whether a row is a time series, which may end with missing values.
    all_pairs : bool
        Whether it stores the distances of all pairs of rows.
    has_sweep : bool
        Whether criteria for K evaluate its own clusters; otherwise they evaluate those of K-means.
    distributed : bool
        Whether it runs on Dask.
    """

    title: str
    estimator: str
    options: tuple[str, ...] = DESCENT
    fixed: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    k_parameter: str = "n_clusters"
    handles_missing: bool = False
    mixed: bool = False
    series: bool = False
    all_pairs: bool = False
    has_sweep: bool = True
    distributed: bool = False

    def build(self, **parameters: Any) -> Any:
        """The unfitted estimator."""
        import coterie

        return getattr(coterie, self.estimator)(**parameters)


def _tree(title: str, linkage: str, *options: str, all_pairs: bool = False) -> Method:
    return Method(title, "AgglomerativeClustering", options, {"linkage": linkage}, all_pairs=all_pairs)


METHODS: dict[str, Method] = {
    "kmeans": Method(
        "K-means", "KMeans", (*DESCENT, "search"), defaults={"n_init": 10}, handles_missing=True, distributed=True
    ),
    "minibatch": Method("mini-batch K-means", "MiniBatchKMeans", (*DESCENT, "batch_size"), distributed=True),
    "bisecting": Method("bisecting K-means", "BisectingKMeans", distributed=True),
    "balanced": Method("balanced K-means", "BalancedKMeans", (*DESCENT, "size_min", "size_max")),
    "spherical": Method(
        "spherical K-means", "SphericalKMeans", (*DESCENT, "search"), defaults={"n_init": 10}, distributed=True
    ),
    "kmedians": Method(
        "K-medians", "KMedians", (*DESCENT, "search", "metric"), defaults={"n_init": 10}, distributed=True
    ),
    "kmedoids": Method("K-medoids", "KMedoids", ("n_init", "max_iter", "search", "metric")),
    "fuzzy": Method("fuzzy c-means", "FuzzyCMeans", (*DESCENT, "search", "fuzzifier"), distributed=True),
    "kernel": Method("kernel K-means", "KernelKMeans", (*DESCENT, "kernel", "gamma")),
    "gmm": Method(
        "Gaussian mixture",
        "GaussianMixture",
        (*DESCENT, "covariance"),
        k_parameter="n_components",
        handles_missing=True,
        distributed=True,
    ),
    "bayes-gmm": Method(
        "Bayesian Gaussian mixture",
        "BayesianGaussianMixture",
        (*DESCENT, "covariance"),
        k_parameter="n_components",
        has_sweep=False,
        distributed=True,
    ),
    "mixture": Method("mixture", "Mixture", k_parameter="n_components", handles_missing=True, mixed=True),
    "ward": _tree("Ward's linkage", "ward"),
    "average": _tree("average linkage", "average", "metric", all_pairs=True),
    "complete": _tree("complete linkage", "complete", "metric", all_pairs=True),
    "single": _tree("single linkage", "single", "metric"),
    "weighted": _tree("weighted linkage", "weighted", "metric", all_pairs=True),
    "centroid": _tree("centroid linkage", "centroid"),
    "median": _tree("median linkage", "median"),
    "divisive": Method("divisive clustering", "DivisiveClustering", ("metric",), all_pairs=True, has_sweep=False),
    "kmeans-dtw": Method("K-means by time warping", "TimeSeriesKMeans", (*DESCENT, "metric", "window"), series=True),
}


def method_of(name: str) -> Method:
    """The algorithm of that name."""
    if name not in METHODS:
        raise ParameterError(f"method must be one of {', '.join(METHODS)}; got {name!r}.")
    return METHODS[name]


def check_options(name: str, options: Iterable[str]) -> None:
    """Reject options that the algorithm does not have, and name the algorithms that have them."""
    method = method_of(name)
    for option in options:
        if option not in OPTIONS:
            raise ParameterError(f"options must be of {', '.join(OPTIONS)}; got {option!r}.")
        if option not in method.options:
            owners = [other for other, each in METHODS.items() if option in each.options]
            raise ParameterError(f"--{option.replace('_', '-')} belongs to {join_words(owners)}; not to {name}.")


def parameters(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of the estimator, without the number of clusters."""
    method = method_of(name)
    return {**method.fixed, **method.defaults, **{OPTIONS[option]: value for option, value in options.items()}}


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
