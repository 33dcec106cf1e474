"""The algorithms and their options, with plain help, as the page shows them."""

import math
from typing import Any

from coterie.algorithms import ALGORITHMS, OPTIONS, Algorithm
from coterie.app.execution import has_tree, is_watchable
from coterie.jobs.fitting import TREE_ROWS
from coterie.machine import free_memory

SUMMARIES = {
    "kmeans": "Round clusters of similar size, each with a center. Fast on any number of rows.",
    "minibatch": "K-means on small batches of rows: faster and a little less exact, for very large tables.",
    "bisecting": "Splits clusters in two with K-means, again and again.",
    "balanced": "K-means with limits for the number of rows in a cluster.",
    "spherical": "K-means of directions: only the ratios of the columns matter. For texts and embeddings.",
    "kmedians": "Centers are medians, so that outliers pull less.",
    "kmedoids": "Centers are rows of the table. Any distance; robust.",
    "fuzzy": "Every row is a member of all clusters, to a degree.",
    "kernel": "K-means in a curved space: finds clusters that are not round.",
    "gmm": "Clusters are Gaussian: elliptical, of any size, and rows have probabilities.",
    "bayes-gmm": "A Gaussian mixture that leaves components empty that it does not need.",
    "mixture": "A mixture for numbers and categories together, with a distribution for each column.",
    "ward": "A tree of rows that merges the clusters which stay most compact.",
    "average": "A tree by the mean distance between clusters.",
    "complete": "A tree by the largest distance between clusters.",
    "single": "A tree by the smallest distance: finds chains.",
    "weighted": "A tree by the mean of mean distances.",
    "centroid": "A tree by the distance between means.",
    "median": "A tree by the distance between midpoints.",
    "divisive": "A tree that splits the widest cluster first (DIANA).",
    "dbscan": "Dense regions of any shape, of one density; other rows are noise.",
    "hdbscan": "Dense regions of any shape and density; finds their number; other rows are noise.",
    "kmeans-dtw": "K-means of time series that may be shifted in time.",
    "kmedoids-dtw": "K-medoids of time series that may be shifted in time.",
}
METRICS = ("euclidean", "manhattan", "chebyshev", "cosine", "canberra", "braycurtis")
# Title, type, choices, minimum and help of the options, by their names on the command line.
OPTION_VIEWS: dict[str, tuple[str, str, tuple[str, ...] | None, float | None, str]] = {
    "n_init": ("Initialisations", "int", None, 1, "The fit starts this often; the best result is used."),
    "max_iter": ("Maximum iterations", "int", None, 1, "Iterations of each initialisation, at most."),
    "tol": ("Tolerance", "float", None, 0, "Stop when an iteration improves less than this."),
    "search": ("Search", "choice", ("auto", "none", "thorough"), None, "Search for a better optimum."),
    "covariance": (
        "Covariance", "choice", ("full", "tied", "diag", "spherical", "auto"), None,
        "Shape of the clusters: any ellipse, the same ellipse, axis-parallel, round, or chosen by BIC.",
    ),
    "metric": ("Distance", "choice", METRICS, None, "How far apart two rows are."),
    "kernel": ("Kernel", "choice", ("rbf", "linear", "poly", "sigmoid", "cosine"), None, "Similarity of two rows."),
    "gamma": ("Gamma", "float", None, 0, "Width of the kernel; larger is narrower."),
    "fuzzifier": ("Fuzzifier", "float", None, 1, "Exponent of the memberships, above 1; larger is softer."),
    "batch_size": ("Batch size", "int", None, 1, "Rows in a batch."),
    "size_min": ("Smallest cluster", "int", None, 0, "Rows in a cluster, at least."),
    "size_max": ("Largest cluster", "int", None, 1, "Rows in a cluster, at most."),
    "window": ("Window", "int", None, 0, "Largest time shift between matched values."),
    "eps": ("Radius", "float", None, 0, "Radius of a neighbourhood. Empty: the knee of the distances."),
    "min_samples": ("Neighbours", "int", None, 1, "Rows in the neighbourhood of a core row, itself included."),
    "min_cluster_size": ("Smallest cluster", "int", None, 2, "Rows in a cluster, at least."),
}  # fmt: skip
BY_ALGORITHM: dict[str, dict[str, tuple[str, ...]]] = {  # choices of an option that other algorithms do not have
    "metric": {"kmedians": ("l1", "l2"), "kmeans-dtw": ("dtw", "softdtw", "euclidean")},
    "covariance": {"bayes-gmm": ("full", "tied", "diag", "spherical")},
}
MOST_STARTS, LARGEST = 100_000, 1_000_000_000  # of `n_init`, and of other options


def algorithm_views(n_rows: int | None) -> list[dict[str, Any]]:
    """All algorithms; `n_rows` of the table tell which of them would need too much memory."""
    free = free_memory()
    return [
        {
            "name": name, "title": method.title[:1].upper() + method.title[1:], "summary": SUMMARIES[name],
            "takes_k": not method.finds_k, "finds_k": method.finds_k, "watch": is_watchable(name),
            "tree": has_tree(name), "mixed": method.mixed, "series": method.series,
            "suited": _problem(method, n_rows, free),
            "options": [_option(name, method, option) for option in method.options],
        }
        for name, method in ALGORITHMS.items()
    ]  # fmt: skip


def _problem(method: Algorithm, n_rows: int | None, free: int) -> str | None:
    """Why the algorithm cannot be used with so many rows."""
    if n_rows is not None and method.all_pairs and 8 * n_rows**2 > free:
        return (
            f"The distances of {n_rows:,} rows do not fit into memory: use Ward's linkage or bisecting K-means, or a "
            f"sample of {TREE_ROWS:,} rows."
        )
    return None


def _option(name: str, method: Algorithm, option: str) -> dict[str, Any]:
    title, kind, choices, minimum, about = OPTION_VIEWS[option]
    choices = BY_ALGORITHM.get(option, {}).get(name, choices)
    default = {**method.build().get_params(deep=False), **method.defaults}.get(OPTIONS[option])
    is_plain = isinstance(default, str | int | float | bool | None)
    return {
        "name": option, "title": title, "type": kind, "default": default if is_plain else str(default),
        "choices": None if choices is None else list(choices), "min": minimum,
        "max": most_of(option) if kind == "int" else None, "help": about,
    }  # fmt: skip


def choices_of(option: str) -> tuple[str, ...]:
    """The choices of an option, of any algorithm."""
    return tuple(dict.fromkeys(sum(BY_ALGORITHM.get(option, {}).values(), OPTION_VIEWS[option][2] or ())))


def most_of(option: str) -> float:
    """The largest value of an option that is a number."""
    return MOST_STARTS if option == "n_init" else LARGEST if OPTION_VIEWS[option][1] == "int" else math.inf
