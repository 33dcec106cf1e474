"""The algorithms by the names they have outside of Python, and the options each takes. Nothing heavy is imported."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from coterie.core.errors import ParameterError

Algorithm: TypeAlias = Literal[
    "kmeans", "minibatch", "bisecting", "balanced", "spherical", "kmedians", "kmedoids", "fuzzy", "kernel", "gmm",
    "bayes-gmm", "mixture", "ward", "average", "complete", "single", "weighted", "centroid", "median", "divisive",
    "kmeans-dtw",
]  # fmt: skip

# Options of the command line, and what estimators call them.
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
    """An estimator as a person asks for it.

    Attributes
    ----------
    title : str
        What it is called in a sentence.
    estimator : str
        Its name in `coterie`.
    options : tuple of str
        Those of `OPTIONS` that it takes.
    fixed : mapping
        Parameters that make the estimator this method.
    defaults : mapping
        Parameters where an option that is not given means something else than to the estimator.
    number : str
        The parameter that is the number of clusters.
    holes : bool
        Whether it can use rows with missing values as they are.
    mixed : bool
        Whether it takes columns of text and categories as they are.
    series : bool
        Whether a row is a series: its columns are moments, and what is missing at its end is its end.
    all_pairs : bool
        Whether it keeps the distances of all pairs of rows.
    swept : bool
        Whether criteria can judge its own clusters; those of K-means are judged where not.
    anywhere : bool
        Whether its rows may lie in parts, on other machines.
    """

    title: str
    estimator: str
    options: tuple[str, ...] = DESCENT
    fixed: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    number: str = "n_clusters"
    holes: bool = False
    mixed: bool = False
    series: bool = False
    all_pairs: bool = False
    swept: bool = True
    anywhere: bool = False

    def made(self, **parameters: Any) -> Any:
        """The estimator, not yet fitted."""
        import coterie

        return getattr(coterie, self.estimator)(**parameters)


def _tree(title: str, linkage: str, *options: str, all_pairs: bool = False) -> Method:
    return Method(title, "AgglomerativeClustering", options, {"linkage": linkage}, all_pairs=all_pairs)


METHODS: dict[str, Method] = {
    "kmeans": Method("K-means", "KMeans", (*DESCENT, "search"), defaults={"n_init": 10}, holes=True, anywhere=True),
    "minibatch": Method("mini-batch K-means", "MiniBatchKMeans", (*DESCENT, "batch_size"), anywhere=True),
    "bisecting": Method("bisecting K-means", "BisectingKMeans", anywhere=True),
    "balanced": Method("balanced K-means", "BalancedKMeans", (*DESCENT, "size_min", "size_max")),
    "spherical": Method(
        "spherical K-means", "SphericalKMeans", (*DESCENT, "search"), defaults={"n_init": 10}, anywhere=True
    ),
    "kmedians": Method("K-medians", "KMedians", (*DESCENT, "search", "metric"), defaults={"n_init": 10}, anywhere=True),
    "kmedoids": Method("K-medoids", "KMedoids", ("n_init", "max_iter", "search", "metric")),
    "fuzzy": Method("fuzzy c-means", "FuzzyCMeans", (*DESCENT, "search", "fuzzifier"), anywhere=True),
    "kernel": Method("kernel K-means", "KernelKMeans", (*DESCENT, "kernel", "gamma")),
    "gmm": Method(
        "Gaussian mixture",
        "GaussianMixture",
        (*DESCENT, "covariance"),
        number="n_components",
        holes=True,
        anywhere=True,
    ),
    "bayes-gmm": Method(
        "Bayesian Gaussian mixture",
        "BayesianGaussianMixture",
        (*DESCENT, "covariance"),
        number="n_components",
        swept=False,
        anywhere=True,
    ),
    "mixture": Method("mixture", "Mixture", number="n_components", holes=True, mixed=True),
    "ward": _tree("Ward's linkage", "ward"),
    "average": _tree("average linkage", "average", "metric", all_pairs=True),
    "complete": _tree("complete linkage", "complete", "metric", all_pairs=True),
    "single": _tree("single linkage", "single", "metric"),
    "weighted": _tree("weighted linkage", "weighted", "metric", all_pairs=True),
    "centroid": _tree("centroid linkage", "centroid"),
    "median": _tree("median linkage", "median"),
    "divisive": Method("divisive clustering", "DivisiveClustering", ("metric",), all_pairs=True, swept=False),
    "kmeans-dtw": Method("K-means by time warping", "TimeSeriesKMeans", (*DESCENT, "metric", "window"), series=True),
}


def method_of(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        raise ParameterError(f"method must be one of {', '.join(METHODS)}; got {name!r}.")
    return METHODS[name]


def check_options(name: str, given: Iterable[str]) -> None:
    """Refuse an option that the method does not have, and say whose it is."""
    method = method_of(name)
    for option in given:
        if option not in OPTIONS:
            raise ParameterError(f"options must be of {', '.join(OPTIONS)}; got {option!r}.")
        if option not in method.options:
            owners = [other for other, its in METHODS.items() if option in its.options]
            raise ParameterError(f"--{option.replace('_', '-')} belongs to {_listed(owners)}; not to {name}.")


def parameters(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What the estimator is told, but for the number of clusters."""
    method = method_of(name)
    return {**method.fixed, **method.defaults, **{OPTIONS[option]: value for option, value in options.items()}}


def sweep_parameters(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What the estimator is told that is fitted for many numbers of clusters.

    K-means makes no restarts of its own then: every fit begins with the centers of its neighbours. A covariance that
    is chosen is chosen after the number of components.
    """
    told = parameters(name, options)
    if name == "kmeans" and "n_init" not in options:
        del told["n_init"]
    if told.get("covariance_type") == "auto":
        del told["covariance_type"]
    return told


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
