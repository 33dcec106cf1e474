"""What a distance is, and the names of those there are."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.errors import InputError, ParameterError
from coterie.data import as_source
from coterie.data.summary import check_finite
from coterie.engines.local import Threads

Array = np.ndarray[Any, Any]


class Distance:
    """A number for any two rows; zero for a row and itself.

    Subclasses say what is true of them in flags, on which algorithms rely and which tests check, and fill in
    `between`. Distances that learn from the rows (ranges, a covariance) do so in `fitted`, those that are cheaper on
    changed rows change them in `prepare`.
    """

    name: ClassVar[str] = ""
    symmetric: bool = True  # d(x, y) = d(y, x)
    triangle: bool = True  # d(x, z) <= d(x, y) + d(y, z)
    definite: bool = True  # zero between equal rows only
    by_differences: bool = False  # whether it depends on the differences of prepared rows alone
    work: int = 1  # how many times as dear as most distances: so much smaller are the pieces that threads share

    def rows(self, X: Any, name: str = "X") -> Any:
        """The user's rows as an array of finite numbers; float32 stays float32."""
        return dense_rows(X, name)

    def fitted(self, X: Any, Y: Any = None) -> Self:
        """This distance with what it has to learn from the rows of `X` (and `Y`)."""
        return self

    def prepare(self, X: Any) -> Any:
        """Rows as `between` takes them: an array, or what can be measured and sliced like one and has a `dtype`."""
        return X

    def up_to_scale(self) -> Self:
        """This distance in any unit, so that its numbers are in range: what is made of ratios needs no other."""
        return self

    def put_to_scale(self, values: Array) -> None:
        """Change numbers that were found by the distance `up_to_scale` to those of this one."""

    def between(self, A: Any, B: Any, out: Array) -> None:
        """``out[i, j] = d(A[i], B[j])`` of prepared rows; out (len(A), len(B)), C-ordered."""
        raise NotImplementedError


def dense_rows(X: Any, name: str = "X") -> Array:
    source = as_source(X)
    rows = getattr(source, "X", None)
    if not isinstance(rows, np.ndarray):
        kind = "sparse" if hasattr(rows, "indptr") else "a Dask array"
        remedy = f"{name}.toarray()" if hasattr(rows, "indptr") else f"{name}.compute()"
        raise InputError(f"{name} is {kind}: distances need dense rows in memory; {remedy} makes them so")
    check_finite(source, Threads(1))
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
    "braycurtis": "relative.BrayCurtis",
    "canberra": "relative.Canberra",
    "haversine": "haversine.Haversine",
    "nan_euclidean": "euclidean.NanEuclidean",
    "seuclidean": "euclidean.StandardizedEuclidean",
}
_OTHER_NAMES = {"cityblock": "manhattan", "l1": "manhattan", "l2": "euclidean", "squared_euclidean": "sqeuclidean"}
_registered: dict[str, Distance] = {}


def as_distance(metric: Any, **params: Any) -> Distance:
    """The distance called `metric` with these parameters; a `Distance` is itself, a function is compiled."""
    if isinstance(metric, Distance):
        return _without(params, metric)
    if callable(metric):
        from coterie.distances.own import Own

        return Own(metric, params=params)
    if isinstance(metric, str) and metric in _registered:
        return _without(params, _registered[metric])
    name = _OTHER_NAMES.get(metric, metric) if isinstance(metric, str) else None
    if name not in _HOME:
        raise ParameterError(
            f"metric must be one of {', '.join(map(repr, names()))}, a function of two rows, or a Distance; "
            f"got {metric!r}"
        )
    module, _, kind = _HOME[name].partition(".")
    found: Callable[..., Distance] = getattr(import_module(f"coterie.distances.{module}"), kind)
    try:
        return found(**params)
    except TypeError as error:
        raise ParameterError(f"metric={metric!r}: {error}") from None


def _without(params: dict[str, Any], distance: Distance) -> Distance:
    if params:
        raise ParameterError(f"metric={distance.name or distance!r} takes no parameters; got {', '.join(params)}")
    return distance


def names() -> list[str]:
    """All names that `metric=` takes."""
    return [*_HOME, *_registered]


def register(name: str, metric: Any, *, symmetric: bool = True, triangle: bool = False, definite: bool = False) -> None:
    """Give a function of two rows, or a `Distance`, a name that works wherever the built-in names do.

    What a function is not said to be, no algorithm relies on.

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
        raise ParameterError(f"name must be text; got {name!r}")
    if name in _HOME or name in _OTHER_NAMES:
        raise ParameterError(f"name={name!r} is built in: choose another")
    if not isinstance(metric, Distance):
        from coterie.distances.own import Own

        metric = Own(metric, symmetric, triangle, definite)
    _registered[name] = metric
