"""The base class of distances, and the registry of their names."""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.arrays import Array, is_sparse
from coterie.core.in_memory import check_in_memory
from coterie.data import as_source
from coterie.data.summary import check_finite
from coterie.engines.local import Threads
from coterie.errors import InputError, ParameterError


class Distance:
    """Base class of distances between two rows; the distance of a row to itself is 0.

    A subclass implements `between`, and sets the flags `symmetric`, `triangle` and `definite`, on which algorithms
    rely. A distance with parameters that are estimated from the rows, such as ranges or a covariance, estimates them in
    `fitted`. A distance that is faster for transformed rows transforms them in `prepare`.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.distances import Distance, pairwise
    >>> class Discrete(Distance):
    ...     name = "discrete"
    ...
    ...     def between(self, A, B, out):
    ...         out[:] = (A[:, None] != B[None]).any(axis=2)
    >>> pairwise([[1.0], [1.0], [2.0]], metric=Discrete()).tolist()
    [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """

    name: ClassVar[str] = ""
    symmetric: bool = True  # d(x, y) = d(y, x)
    triangle: bool = True  # d(x, z) <= d(x, y) + d(y, z)
    definite: bool = True  # d(x, y) = 0 only if x = y
    by_differences: bool = False  # whether it is a function of the differences of prepared rows
    work: int = 1  # cost relative to most distances; threads get proportionally fewer rows at a time

    def rows(self, X: Any, name: str = "X") -> Any:
        """Convert the user's input to an array of finite numbers; float32 stays float32."""
        return dense_rows(X, name)

    def fitted(self, X: Any, Y: Any = None) -> Self:
        """This distance with parameters estimated from the rows of `X`, and of `Y` if given."""
        return self

    def prepare(self, X: Any) -> Any:
        """Rows in the form that `between` needs: an array, or an object with `len`, slices and a `dtype`."""
        return X

    def up_to_scale(self) -> Self:
        """This distance up to a constant factor, so that its values are in range; sufficient for ratios."""
        return self

    def put_to_scale(self, values: Array) -> None:
        """Multiply values of the distance `up_to_scale` in place, to get those of this distance."""

    def between(self, A: Any, B: Any, out: Array) -> None:
        """Compute ``out[i, j] = d(A[i], B[j])`` of prepared rows; out (len(A), len(B)), C-ordered."""
        raise NotImplementedError

    def table(self, A: Any, B: Any, dtype: Any = None) -> Array:
        """The distances of prepared rows in a new array (len(A), len(B)), by default in their common type."""
        out = np.empty((len(A), len(B)), np.result_type(A.dtype, B.dtype) if dtype is None else dtype)
        self.between(A, B, out)
        return out


def check_symmetric(distance: Distance, reason: str) -> None:
    """Raise an error that states the `reason` if d(x, y) and d(y, x) differ."""
    if not distance.symmetric:
        raise ParameterError(f"metric={distance.name!r} is not symmetric: {reason}; use a symmetric metric")


def dense_rows(X: Any, name: str = "X", *, allows_missing: bool = False) -> Array:
    """The rows of `X` as an array in memory; sparse and Dask arrays, infinity and NaN raise an `InputError`.

    NaN does not if missing values are allowed.
    """
    source: Any = as_source(X)
    check_in_memory(source, "a matrix of distances", name)
    rows: Array = source.X
    if is_sparse(rows):
        raise InputError(f"{name} is sparse: distances need dense rows in memory; pass {name}.toarray()")
    if not allows_missing:
        check_finite(source, Threads(1))
    elif np.isinf(rows).any():
        raise InputError(f"{name} contains infinite values: remove these rows, or set the values to NaN")
    return rows


_HOME = {
    "euclidean": "euclidean.Euclidean",
    "sqeuclidean": "euclidean.SquaredEuclidean",
    "manhattan": "minkowski.Manhattan",
    "chebyshev": "minkowski.Chebyshev",
    "minkowski": "minkowski.Minkowski",
    "mahalanobis": "mahalanobis.Mahalanobis",
    "cosine": "cosine.Cosine",
    "correlation": "cosine.Correlation",
    "hamming": "matching.Hamming",
    "jaccard": "matching.Jaccard",
    "gower": "gower.Gower",
    "dtw": "dtw.DTW",
    "braycurtis": "minkowski.BrayCurtis",
    "canberra": "minkowski.Canberra",
    "haversine": "haversine.Haversine",
    "nan_euclidean": "euclidean.NanEuclidean",
    "seuclidean": "euclidean.StandardizedEuclidean",
}
_OTHER_NAMES = {"cityblock": "manhattan", "l1": "manhattan", "l2": "euclidean", "squared_euclidean": "sqeuclidean"}
_registered: dict[str, Distance] = {}


def as_distance(metric: Any, **params: Any) -> Distance:
    """Convert the argument `metric` to a `Distance`.

    Parameters
    ----------
    metric : str, function or Distance
        The name of a distance, a function of two rows (which is compiled), or a `Distance`, which is returned.
    **params
        Parameters of the distance, such as ``p=3`` for 'minkowski'.

    Returns
    -------
    Distance

    Examples
    --------
    >>> from coterie.distances import as_distance
    >>> as_distance("minkowski", p=3)
    Minkowski(p=3, w=None)
    """
    if isinstance(metric, Distance):
        return _check_no_params(params, metric)
    if callable(metric):
        from coterie.distances.user_distance import UserDistance

        return UserDistance(metric, params=params)
    if isinstance(metric, str) and metric in _registered:
        return _check_no_params(params, _registered[metric])
    name = _OTHER_NAMES.get(metric, metric) if isinstance(metric, str) else None
    if name not in _HOME:
        raise ParameterError(
            f"metric must be one of {', '.join(map(repr, names()))}, a function of two rows, or a Distance; "
            f"got {metric!r}"
        )
    module, _, kind = _HOME[name].partition(".")
    create: Callable[..., Distance] = getattr(import_module(f"coterie.distances.{module}"), kind)
    valid = [*inspect.signature(create).parameters] if params else []
    if unknown := [parameter for parameter in params if parameter not in valid]:
        remedy = f"use {' or '.join(valid)}" if valid else "it takes no parameters"
        raise ParameterError(f"metric={metric!r} has no parameter {unknown[0]!r}: {remedy}")
    return create(**params)


def _check_no_params(params: dict[str, Any], distance: Distance) -> Distance:
    if params:
        raise ParameterError(f"metric={distance.name or distance!r} takes no parameters; got {', '.join(params)}")
    return distance


def names() -> list[str]:
    """All valid names of `metric`."""
    return [*_HOME, *_registered]


def register(name: str, metric: Any, *, symmetric: bool = True, triangle: bool = False, definite: bool = False) -> None:
    """Register a user-defined distance under a name, which can then be used like the built-in names.

    Parameters
    ----------
    name : str
        The new name; built-in names are rejected.
    metric : function or Distance
        A function of two rows, or a `Distance`, for which the other parameters are ignored.
    symmetric : bool, default=True
        Whether d(x, y) = d(y, x).
    triangle : bool, default=False
        Whether the triangle inequality holds. Some algorithms are faster if it does.
    definite : bool, default=False
        Whether d(x, y) = 0 only if x = y.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.distances import pairwise, register
    >>> def lorentzian(x, y):
    ...     total = 0.0
    ...     for i in range(len(x)):
    ...         total += np.log1p(abs(x[i] - y[i]))
    ...     return total
    >>> register("lorentzian", lorentzian, triangle=True, definite=True)
    >>> pairwise([[1.0, 2.0], [3.0, 2.0]], metric="lorentzian").round(3)
    array([[0.   , 1.099],
           [1.099, 0.   ]])
    """
    if not isinstance(name, str) or not name:
        raise ParameterError(f"name must be a non-empty str; got {name!r}")
    if name in _HOME or name in _OTHER_NAMES:
        raise ParameterError(f"name={name!r} is a built-in metric: use another name")
    if not isinstance(metric, Distance):
        from coterie.distances.user_distance import UserDistance

        metric = UserDistance(metric, symmetric, triangle, definite)
    _registered[name] = metric
