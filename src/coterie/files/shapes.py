"""What arrays of a model must look like, so that no answer can read beyond their ends or run for ever.

A rule is a kind and the lengths of the axes, ``"real K D"``; rules between ``|`` are alternatives, ``none`` is None.
Kinds are `real` (finite floats), `any` (floats that may be NaN or infinite), `whole`, `bool`, and ``index<k`` or
``index-<k``, whole numbers from 0 or -1 to below k. Lengths of capital letters are the same in all of a model (`D`
columns, `K` clusters), those of small letters in one record; ``*`` is any. ``int<n>`` is a number that gives a length
its value. A rule that begins with ``=`` lists the records that may stand there. What rules cannot say, a function for
that kind of record does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from coterie.core.errors import ModelFileError
from coterie.families.family import Family
from coterie.families.structures import STRUCTURES
from coterie.files import kinds

_CENTERS = {"cluster_centers_": "real K D", "labels_": "index<K *"}
_DISTANCES = (
    "=distances.cosine.Correlation distances.cosine.Cosine distances.dtw.DTW distances.euclidean.Euclidean "
    "distances.euclidean.SquaredEuclidean distances.gower.Gower distances.mahalanobis.Mahalanobis "
    "distances.matching.Hamming distances.matching.Jaccard distances.minkowski.Chebyshev "
    "distances.minkowski.Manhattan distances.minkowski.Minkowski"
)
_KERNELS = "=" + " ".join(
    f"kmeans.gram.{name}" for name in ("Cosine", "Linear", "Polynomial", "Precomputed", "Rbf", "Sigmoid")
)
_BY_FORM = "real K D D | real D D | real K D | real K"
_HIERARCHY = {"labels_": "index<K N", "_columns": "tuple", "_distance": f"none | {_DISTANCES}"}
_EM = {
    "n_components": "int<K>",
    "structure": "=families.structures.Structure",
    "penalty": "=families.normal_prior.Penalty",
    "origin": "real D",
    "unit": "real D",
}
_SEEN = "=kmeans.lloyd.KMeansStats mixture.gaussian.GaussianStats mixture.family_em.MixtureStats"
_GAUSSIANS = {
    "_components": "=mixture.gaussian.Components",
    "_fitted_model": "=mixture.gaussian.GaussianEM",
    "_state": "=core.online.State",
    "weights_": "real K",
    "means_": "real K D",
    "covariances_": _BY_FORM,
}

MODELS: dict[str, dict[str, str]] = {
    "AgglomerativeClustering": {**_HIERARCHY, "_clusters": "=hierarchy.assign.Centers hierarchy.assign.Members"},
    "BalancedKMeans": {**_CENTERS, "cluster_sizes_": "whole K"},
    "BayesianGaussianMixture": {
        "_components": "=mixture.variational.Posterior",
        "_fitted_model": "=mixture.variational.VariationalGaussians",
        "weights_": "real K",
        "means_": "real K D",
        "covariances_": _BY_FORM,
    },
    "BisectingKMeans": {**_CENTERS, "tree_": "=kmeans.bisecting.Tree"},
    "Bisections": {"tree_": "=kmeans.bisecting.Tree"},
    "DivisiveClustering": {"labels_": "index<K N", "_way": "=hierarchy.diana.Way hierarchy.bisecting.Bisections"},
    "FuzzyCMeans": _CENTERS,
    "GaussianMixture": _GAUSSIANS,
    "KMeans": {**_CENTERS, "_roots": "none | real D", "_scaled_centers": "none | real K D"},
    "KMedians": _CENTERS,
    "KMedoids": {
        "_medoids": "=medoids.objects.Columns medoids.objects.Rows",
        "medoid_indices_": "index K",
        "labels_": "index<K *",
    },
    "KernelKMeans": {
        "_kernel": _KERNELS,
        "_found": "real K R | =kmeans.kernel_lloyd.Means",
        "_features": "none | =kmeans.nystrom.Features",
        "labels_": "index<K *",
        "approximation_": "text",
    },
    "MiniBatchKMeans": {**_CENTERS, "_state": "=core.online.State", "_random": "chance", "counts_": "real K"},
    "Mixture": {
        "_components": "=mixture.family_em.Mix mixture.gaussian.Components mixture.dirichlet.Process",
        "_fitted_model": "=mixture.family_em.MixtureEM mixture.gaussian.GaussianEM mixture.dirichlet.DirichletProcess",
        "family_": "family",
        "weights_": "real K",
    },
    "SphericalKMeans": _CENTERS,
    "TimeSeriesKMeans": {
        "cluster_centers_": "any K * | any K * * | list K",
        "_channels": "int",
        "labels_": "index<K *",
    },
    "SimpleImputer": {"statistics_": "any D"},
    "StandardScaler": {"mean_": "none | real D", "scale_": "none | real D", "var_": "none | real D"},
    "MinMaxScaler": {"min_": "real D", "scale_": "real D"},
    "RobustScaler": {"center_": "none | real D", "scale_": "none | real D"},
}
RECORDS: dict[str, dict[str, str]] = {
    "core.online.State": {"params": "real K D | =mixture.gaussian.Components mixture.family_em.Mix", "seen": _SEEN},
    "distances.series.Series": {"values": "real * *", "start": "whole n", "length": "whole n"},
    "distances.gower.Gower": {
        "low": "none | real a", "range_": "none | real a", "codes": "none | list *", "weights": "none | real *",
    },
    "distances.mahalanobis.Mahalanobis": {"origin_": "none | real D", "whitening_": "none | real D D"},
    "hierarchy.assign.Centers": {"distance": _DISTANCES, "centers": "real K D", "mass": "real K", "method": "text"},
    "hierarchy.assign.Fitted": {"distance": f"none | {_DISTANCES}", "order": "index<N N", "start": "index<N K"},
    "hierarchy.assign.Members": {
        "objects": "=hierarchy.assign.Fitted", "share": "real N", "mass": "real K", "inner": "none | real K",
    },
    "hierarchy.diana.Way": {
        "objects": "=hierarchy.assign.Fitted", "split": "whole *", "size": "whole K", "names": "index<K K",
    },
    "kmeans.bisecting.Tree": {"children": "index-<m m 2", "centers": "real m D", "clusters": "index-<m m"},
    "kmeans.kernel_lloyd.Means": {
        "rows": "none | real n D", "labels": "index-<K n", "counts": "real n", "first": "index<n n", "weight": "real K",
        "norms": "real K",
    },
    "kmeans.lloyd.KMeansStats": {"weight": "real K", "sum_dx": "real K D", "cost": "real K"},
    "kmeans.nystrom.Features": {"kernel": _KERNELS, "landmarks": "real m D", "root": "real m R"},
    "medoids.objects.Columns": {"which": "index<D K", "count": "int<D>"},
    "medoids.objects.Rows": {
        "distance": _DISTANCES, "A": "any K D | bool K D | =distances.series.Series",
        "numbers": "none | real K D",
    },
    "mixture.gaussian.Components": {
        "weights": "real K", "means": "real K D", "covariances": _BY_FORM, "factor": _BY_FORM, "log_det": "real K",
        "orientation": "none | real D D",
    },
    "mixture.variational.Posterior": {
        "weights": "real K", "means": "real K D", "covariances": _BY_FORM, "factor": _BY_FORM, "log_det": "real K",
        "mean_precision": "real K", "dof": "real K", "concentration": "real K | real 2 K",
    },
    "mixture.gaussian.GaussianStats": {"weight": "real K", "sum_dx": "real K D", "sum_dxx": _BY_FORM},
    "mixture.gaussian.GaussianEM": _EM,
    "mixture.variational.VariationalGaussians": {
        **_EM, "mixing": "=mixture.beliefs.Dirichlet mixture.beliefs.Sticks",
        "belief": "=mixture.beliefs.NormalWishart",
    },
    "mixture.family_em.MixtureEM": {"n_components": "int<K>", "family": "family"},
    "mixture.dirichlet.DirichletProcess": {"n_components": "int<K>", "family": "=mixture.dirichlet.Believed"},
    "mixture.family_em.Mix": {"weights": "real K"},
    "mixture.dirichlet.Process": {"weights": "real K", "counts": "real K"},
    "core.checkpoint.Reached": {"history": "real *", "trail": "tuple", "run": "count", "passes": "count"},
    "core.checkpoint.Runs": {
        "run": "count", "now": "none | =core.checkpoint.Reached", "best": "none | =core.checkpoint.Reached",
        "notes": "none | dict",
    },
    "core.checkpoint.Batches": {
        "params": "real K D", "seen": "=kmeans.lloyd.KMeansStats", "history": "real *", "chance": "chance",
    },
    "kmeans.search_state.Searched": {
        "best": "real K D", "steps": "count", "chance": "chance", "home": "tuple", "moves": "tuple", "crowd": "tuple",
    },
    "kmeans.transport.Division": {"centers": "real K D", "prices": "real K", "labels": "list *"},
}  # fmt: skip


class Sizes:
    """The lengths that a model's letters stand for, as they become known, and ranges that wait for them."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.waiting: list[tuple[str, Any, str]] = []  # where, whole numbers, the letter they are below

    def settle(self, known: dict[str, int]) -> None:
        """Check the ranges whose letters are known."""
        for where, numbers, letter in [item for item in self.waiting if item[2] in known]:
            if numbers.size and numbers.max() >= known[letter]:
                raise ModelFileError(f"{where} goes up to {numbers.max()}; it must stay below {known[letter]}")
        self.waiting = [item for item in self.waiting if item[2] not in known]


def check_model(name: str, values: dict[str, Any], sizes: Sizes) -> None:
    """What a fitted model of that name must have."""
    columns, names = values.get("n_features_in_"), values.get("feature_names_in_")
    if "n_features_in_" in values and (
        type(columns) is not int or columns < 0 or sizes.known.setdefault("D", columns) != columns
    ):
        raise ModelFileError(f"{name} has n_features_in_ = {columns!r}, which does not go with its arrays")
    if names is not None and not (
        isinstance(names, np.ndarray) and names.dtype == object and names.shape == (columns,)
    ):
        raise ModelFileError(f"{name} has feature_names_in_ that do not go with {columns} columns")
    exponents = values.get("_exponents", (0, 0))
    if not (
        isinstance(exponents, tuple) and [type(e) for e in exponents] == [int, int] and max(map(abs, exponents)) < 2200
    ):
        raise ModelFileError(f"{name} has _exponents = {exponents!r}; they must be two whole numbers")
    missing = sorted(set(MODELS[name]) - set(values))
    if missing:
        raise ModelFileError(f"{name} lacks {missing[0]!r}")
    _check(name, MODELS[name], values, sizes)
    out = values.get("_n_features_out")
    if out is not None and (type(out) is not int or out != sizes.known.get("K", out)):
        raise ModelFileError(f"{name} has {sizes.known.get('K')} clusters, and says that they are {out!r}")


def check_record(tag: str, values: dict[str, Any], sizes: Sizes) -> None:
    """What the fields of a record must be."""
    _check(tag, RECORDS.get(tag, {}), values, sizes)


def _check(owner: str, rules: dict[str, str], values: dict[str, Any], sizes: Sizes) -> None:
    local: dict[str, int] = {}
    for field, rule in rules.items():
        if not any(
            _fits(choice.strip(), values[field], f"{owner}.{field}", sizes, local) for choice in rule.split(" | ")
        ):
            raise ModelFileError(f"{owner}.{field} must be {rule}; found {_described(values[field])}")
    sizes.settle(sizes.known | local)
    if owner in FURTHER and not _goes_together(owner, values, sizes.known):
        raise ModelFileError(f"{owner} has parts that do not go with each other")


def _goes_together(owner: str, values: dict[str, Any], known: dict[str, int]) -> bool:
    try:
        return FURTHER[owner](values, known)
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError):  # parts can be anything
        return False


def _fits(rule: str, value: Any, where: str, sizes: Sizes, local: dict[str, int]) -> bool:
    if rule.startswith("="):
        return kinds.tag_of(type(value)) in rule[1:].split()
    if rule in SIMPLE:
        return SIMPLE[rule](value)
    kind, *axes = rule.split()
    if kind.startswith("int<"):
        return type(value) is int and _bind([kind[4:-1]], (value,), sizes.known, local)
    if kind == "list":
        return isinstance(value, list) and _bind(axes, (len(value),), sizes.known, local)
    kind, _, limit = kind.partition("<")
    if not (isinstance(value, np.ndarray) or sparse.issparse(value)) or len(value.shape) != len(axes):
        return False
    numbers = value.data if sparse.issparse(value) else value
    if not KINDS[kind](numbers) or not _bind(axes, value.shape, sizes.known, local):
        return False
    if limit:
        sizes.waiting.append((where, numbers, limit))
    return True


def _bind(axes: list[str], shape: tuple[int, ...], known: dict[str, int], local: dict[str, int]) -> bool:
    """Whether the axes can be that long; then their letters are."""
    found: dict[str, int] = {}
    for axis, length in zip(axes, shape, strict=True):
        before = int(axis) if axis.isdigit() else known.get(axis, local.get(axis, found.get(axis, length)))
        if axis != "*" and before != length:
            return False
        found[axis] = length
    for axis, length in found.items():
        if axis.isalpha():
            (known if axis.isupper() else local)[axis] = length
    return True


SIMPLE = {
    "none": lambda value: value is None,
    "text": lambda value: isinstance(value, str),
    "int": lambda value: type(value) is int and value > 0,
    "tuple": lambda value: isinstance(value, tuple),
    "dict": lambda value: isinstance(value, dict),
    "count": lambda value: type(value) is int and value >= 0,
    "chance": lambda value: isinstance(value, np.random.Generator),
    "family": lambda value: isinstance(value, Family),
}
KINDS = {
    "real": lambda numbers: numbers.dtype.kind == "f" and bool(np.isfinite(numbers).all()),
    "any": lambda numbers: numbers.dtype.kind == "f",
    "bool": lambda numbers: numbers.dtype.kind == "b",
    "whole": lambda numbers: numbers.dtype.kind == "i",
    "index": lambda numbers: numbers.dtype.kind == "i" and numbers.min(initial=0) >= 0,
    "index-": lambda numbers: numbers.dtype.kind == "i" and numbers.min(initial=0) >= -1,
}


# what rules cannot say


def _tree(tree: dict[str, Any], known: dict[str, int]) -> bool:
    """Halves come after the whole, side by side, so that every way down ends."""
    first, second = tree["children"].T
    cut, nodes = first >= 0, np.arange(len(first))
    ordered = (first[cut] > nodes[cut]).all() and (second[cut] == first[cut] + 1).all() and (second[~cut] < 0).all()
    leaves = tree["clusters"][~cut]
    return bool(ordered and (tree["clusters"][cut] < 0).all() and (np.sort(leaves) == np.arange(len(leaves))).all())


def _series(series: dict[str, Any], known: dict[str, int]) -> bool:
    start, length = series["start"], series["length"]
    return bool((start >= 0).all() and (length > 0).all() and (start <= len(series["values"]) - length).all())


def _gower(distance: dict[str, Any], known: dict[str, int]) -> bool:
    """Every category has a number, and every column a weight."""
    low, codes, weights = distance["low"], distance["codes"], distance["weights"]
    parts = [low, distance["range_"], codes, weights]
    if low is None:
        return all(part is None for part in parts)
    numbered = all(isinstance(own, dict) and all(type(code) is float for code in own.values()) for own in codes)
    return bool(numbered and len(weights) == len(low) + len(codes) and (distance["range_"] >= 0).all())


def _fitted(objects: dict[str, Any], known: dict[str, int]) -> bool:
    """Clusters begin one after the other, each with at least one object, and there are rows for the distance."""
    start, rows = objects["start"], objects["A"]
    good = len(start) > 0 and start[0] == 0 and (np.diff(start) > 0).all()
    if objects["distance"] is None:
        return bool(good and rows is None)
    wide = not isinstance(rows, np.ndarray) or (rows.ndim == 2 and rows.dtype.kind in "fb")
    return bool(good and wide and rows is not None and len(rows) == len(objects["order"]))


def _way(way: dict[str, Any], known: dict[str, int]) -> bool:
    split = way["split"]
    good = len(split) == len(way["size"]) - 1 and (way["size"] > 0).all()
    return bool(good and ((split >= 0) & (split <= np.arange(len(split)))).all())


def _means(means: dict[str, Any], known: dict[str, int]) -> bool:
    return means["rows"] is not None or known.get("D", len(means["labels"])) == len(means["labels"])


def _kernel(model: dict[str, Any], known: dict[str, int]) -> bool:
    """Features are for Nyström's approximation, and centers of them are an array."""
    return (model["_features"] is not None) == isinstance(model["_found"], np.ndarray)


def _warped(model: dict[str, Any], known: dict[str, int]) -> bool:
    centers, channels = model["cluster_centers_"], model["_channels"]
    return all(_one_series(center, channels) for center in centers)


def _one_series(center: Any, channels: int) -> bool:
    if not isinstance(center, np.ndarray) or center.dtype.kind != "f" or center.size == 0:
        return False
    return (center.ndim == 1 and channels == 1) or (center.ndim == 2 and center.shape[1] == channels)


def _gaussians(model: dict[str, Any], known: dict[str, int]) -> bool:
    """Covariances are kept as their structure says."""
    components, fitted = model["_components"], model["_fitted_model"]
    if not hasattr(fitted, "structure"):
        return True
    k, d = known["K"], known["D"]
    shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}.get(fitted.structure.form)
    return components.covariances.shape == components.factor.shape == shape


def _mixture(model: dict[str, Any], known: dict[str, int]) -> bool:
    """Sparse rows meet parameters that are as wide."""
    components, family = model["_components"], model["family_"]
    if not family.takes_sparse:
        return _gaussians(model, known)
    parts = getattr(components, "parts", ())
    arrays = parts if isinstance(parts, tuple) else getattr(parts, "__dict__", {}).values()
    widths = [array.shape[1] for array in arrays if isinstance(array, np.ndarray) and array.ndim == 2]
    return known["D"] in widths and set(widths) <= {1, known["D"]}


FURTHER = {
    "BayesianGaussianMixture": _gaussians,
    "GaussianMixture": _gaussians,
    "KernelKMeans": _kernel,
    "Mixture": _mixture,
    "TimeSeriesKMeans": _warped,
    "distances.gower.Gower": _gower,
    "distances.series.Series": _series,
    "families.structures.Structure": lambda structure, known: structure["name"] in STRUCTURES,
    "hierarchy.assign.Fitted": _fitted,
    "hierarchy.diana.Way": _way,
    "kmeans.bisecting.Tree": _tree,
    "kmeans.kernel_lloyd.Means": _means,
}


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray) or sparse.issparse(value):
        odd = value.dtype.kind == "f" and not np.isfinite(value.data if sparse.issparse(value) else value).all()
        return f"{value.dtype} {value.shape}{', not all of it finite' if odd else ''}"
    return kinds.tag_of(type(value)).removeprefix("builtins.")
