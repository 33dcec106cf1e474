"""Rows as points of a picture: which columns, or which axes through them, and which rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import svds
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from coterie.core.errors import InputError, ParameterError
from coterie.data import as_source, opened
from coterie.data.memory import MemorySource
from coterie.data.summary import summarize
from coterie.diagnosis.partition import labels_by
from coterie.engines.local import Serial
from coterie.metrics.labels import labels_of_rows

Array = np.ndarray[Any, Any]

BLOCK = 1 << 15  # rows whose products are taken at a time
WIDE = 3000  # columns whose products are
SHOWN = 20_000  # rows that are kept where there are more than `MANY`
MANY = 50_000  # rows that are drawn one by one
COUNTED = ("cluster_centers_", "weights_")  # of a model: one a cluster, with rows or without


class Rows(NamedTuple):
    """Dense rows, weights, and the names of their columns; missing values are at the mean of their column."""

    X: Array  # (n, d) finite
    columns: list[str]
    mean: Array  # (d,) of the values that are there
    variance: Array  # (d,) of X
    w: Array | None = None  # (n,)
    holes: Array | None = None  # (n, d) which values were missing

    @property
    def weight(self) -> float:
        """Of all rows together."""
        return float(len(self.X) if self.w is None else self.w.sum())

    @property
    def missing(self) -> int:
        """How many values."""
        return 0 if self.holes is None else int(np.count_nonzero(self.holes))

    @property
    def deviation(self) -> Array:
        """The standard deviation of the values that are there (d,)."""
        known = 1.0 if self.holes is None else np.average(~self.holes, axis=0, weights=self.w)
        return np.sqrt(self.variance / known)

    @property
    def given(self) -> Array:
        """X as it was given, with NaN where values are missing."""
        return self.X if self.holes is None else np.where(self.holes, np.nan, self.X).astype(self.X.dtype)

    def taken(self, which: Array) -> Self:
        """Some of the rows; what is known of all stays."""
        w, holes = (None if values is None else values[which] for values in (self.w, self.holes))
        return self._replace(X=self.X[which], w=w, holes=holes)

    def counting(self) -> Self:
        """Without rows of weight 0, which are not there."""
        return self if self.w is None else self.taken(np.flatnonzero(self.w))


class Groups(NamedTuple):
    """Which cluster each row is in, and how much it counts."""

    codes: Array  # (n,) from 0 up; -1: in none
    names: list[str]  # (k,)
    w: Array | None = None  # (n,)

    @property
    def sizes(self) -> Array:
        """(k,) numbers of rows, or sums of their weights."""
        own = self.codes >= 0
        counts: Array = np.bincount(self.codes[own], None if self.w is None else self.w[own], minlength=len(self.names))
        return counts

    def means(self, P: Array, holes: Array | None = None) -> Array:
        """The mean of the points (n, p) of each cluster (k, p), of values that are no holes; NaN where all are.

        Clusters without rows are at 0.
        """
        own, k = self.codes >= 0, len(self.names)
        codes, w = self.codes[own], np.ones(int(np.count_nonzero(own))) if self.w is None else self.w[own]
        sums, mass = np.empty((k, P.shape[1])), np.empty((k, P.shape[1]))
        for j in range(P.shape[1]):
            known = w if holes is None else w * ~holes[own, j]
            sums[:, j] = np.bincount(codes, known * P[own, j].astype(np.float64), k)
            mass[:, j] = np.bincount(codes, known, k)
        empty = np.where(self.sizes == 0, 0.0, np.nan)[:, None]
        return np.where(mass > 0, sums / np.where(mass > 0, mass, 1.0), empty)


@dataclass(frozen=True)
class View:
    """A line or a plane in the space of the rows, and what its axes are called."""

    origin: Array  # (d,)
    directions: Array  # (d, p), p of 1 or 2
    axes: list[str]  # (p,)
    alike: bool = False  # whether both axes have one unit

    def points(self, X: Array) -> Array:
        """Rows (n, d) in the picture (n, p)."""
        out = np.empty((len(X), self.directions.shape[1]))
        for start in range(0, len(X), BLOCK):
            part = slice(start, start + BLOCK)
            out[part] = (X[part].astype(np.float64) - self.origin) @ self.directions
        return out

    def lifted(self, P: Array) -> Array:
        """Where points of the picture (m, p) are among the rows (m, d)."""
        return self.origin + P @ self.directions.T

    @classmethod
    def of(cls, rows: Rows, columns: Any = None) -> Self:
        """One or two columns as they are, or the two principal axes of more."""
        d = len(rows.columns)
        if columns is None and d > 2:
            return cls._principal(rows)
        chosen = list(range(d)) if columns is None else [_place(rows.columns, name) for name in _pair(columns)]
        directions = np.zeros((d, len(chosen)))
        directions[chosen, range(len(chosen))] = 1.0
        return cls(rows.mean * (directions.sum(axis=1) == 0), directions, [rows.columns[j] for j in chosen])

    @classmethod
    def _principal(cls, rows: Rows) -> Self:
        values, vectors = _widest(rows) if len(rows.columns) <= WIDE else _widest_of_many(rows)
        largest = vectors[np.abs(vectors).argmax(axis=0), [0, 1]]
        total = float(rows.variance.sum())
        shares = np.maximum(values, 0.0) / total if total > 0 else np.zeros(2)
        axes = [f"principal axis {i + 1} ({100 * share:.3g} % of the variance)" for i, share in enumerate(shares)]
        return cls(rows.mean, vectors * np.where(largest < 0, -1.0, 1.0), axes, alike=True)


def _widest(rows: Rows) -> tuple[Array, Array]:
    """The two largest variances along any direction (2,), and these directions (d, 2)."""
    d = len(rows.columns)
    covariance = np.zeros((d, d))
    for start in range(0, len(rows.X), BLOCK):
        part = rows.X[start : start + BLOCK].astype(np.float64) - rows.mean
        w = None if rows.w is None else rows.w[start : start + BLOCK, None]
        covariance += part.T @ (part if w is None else w * part)
    values, vectors = eigh(covariance / rows.weight, subset_by_index=[d - 2, d - 1])
    return values[::-1], vectors[:, ::-1]


def _widest_of_many(rows: Rows) -> tuple[Array, Array]:
    """The same for so many columns that products of all pairs of them would take too long: by pairs of rows."""
    centered = rows.X.astype(np.float64) - rows.mean
    if rows.w is not None:
        centered *= np.sqrt(rows.w)[:, None]
    n, d = centered.shape
    if n < 3 or not centered.any():
        return np.zeros(2), np.eye(d, 2)
    if n > WIDE:
        _, lengths, directions = svds(centered, k=2, v0=np.ones(min(n, d)))
        return lengths[::-1] ** 2 / rows.weight, directions[::-1].T
    values, vectors = eigh(centered @ centered.T, subset_by_index=[n - 2, n - 1])
    directions, _ = np.linalg.qr(centered.T @ vectors[:, ::-1])
    return values[::-1] / rows.weight, directions


def as_rows(X: Any, sample_weight: Any = None) -> Rows:
    """Rows in memory, dense; an error names the columns that are infinite, or missing in all rows."""
    source = as_source(X, sample_weight)
    if not isinstance(source, MemorySource) or hasattr(source.X, "indptr"):
        raise InputError("X must be dense rows in memory to be drawn: take some, computed and made dense (.toarray())")
    summary = summarize(source, Serial(), holes=True)
    columns = source.columns or [f"column {j}" for j in range(source.shape[1])]
    whole = Rows(source.X, columns, summary.mean, summary.variance, source.w)
    return whole if summary.gaps == 0 else _filled(whole)


def _filled(rows: Rows) -> Rows:
    holes = np.isnan(rows.X)
    known = np.average(~holes, axis=0, weights=rows.w)
    X = np.where(holes, rows.mean, rows.X).astype(rows.X.dtype)
    return rows._replace(X=X, variance=rows.variance * known, holes=holes)


def rows_by(model: Any, X: Any, sample_weight: Any = None) -> tuple[Rows, Groups]:
    """Rows that count, in the clusters of a fitted model."""
    check_fitted(model)
    X = opened(X)
    rows = as_rows(X, sample_weight)
    return counting(rows, groups_by(model, X, len(rows.X), sample_weight))


def rows_of(X: Any, labels: Any, sample_weight: Any = None) -> tuple[Rows, Groups]:
    """Rows that count, in the clusters that labels say."""
    rows = as_rows(X, sample_weight)
    return counting(rows, as_groups(labels, len(rows.X)))


def counting(rows: Rows, groups: Groups) -> tuple[Rows, Groups]:
    """Without rows of weight 0, which are not there."""
    if rows.w is None:
        return rows, groups
    return rows.counting(), Groups(groups.codes[rows.w > 0], groups.names, rows.w[rows.w > 0])


def as_groups(labels: Any, n: int) -> Groups:
    """Labels of any kind; the number -1 is that of rows in no cluster."""
    found = labels_of_rows(labels, n)
    codes, names = found.codes, list(found.names)
    names = [str(name) for name in names]
    if "-1" in names:
        noise = names.index("-1")
        codes = np.where(codes == noise, -1, codes - (codes > noise))
        names.pop(noise)
    return Groups(codes, names)


def groups_by(model: Any, X: Any, n: int, sample_weight: Any = None) -> Groups:
    """The clusters of a fitted model, as `labels_by` finds them; one without rows keeps its number."""
    check_fitted(model)
    found = as_groups(labels_by(model, X, n, sample_weight), n)
    k = next((len(getattr(model, name)) for name in COUNTED if getattr(model, name, None) is not None), 0)
    if k and all(name.isdecimal() for name in found.names):
        return Groups(np.append(np.array(found.names, np.int64), -1)[found.codes], [str(j) for j in range(k)])
    return found


def asked(model: Any, verb: str, X: Array) -> Array:
    """What `model` answers for rows of the picture, which have no names of columns though those of the fit had."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return np.asarray(getattr(model, verb)(X))


def check_fitted(model: Any) -> None:
    if isinstance(model, type) or not hasattr(model, "fit"):
        found = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise ParameterError(f"model must be a fitted estimator; got {found}")
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ParameterError(f"model must be fitted: call {type(model).__name__}.fit(X) first") from None


def spread_over(values: Array, cells: int, margin: float = 0.05) -> Array:
    """The middles of `cells` equal steps over the range of `values` and a margin."""
    low, high = float(values.min()), float(values.max())
    room = margin * (high - low) if high > low else 0.5 * max(1.0, 1e-6 * abs(low))
    steps: Array = np.linspace(low - room, high + room, 2 * cells + 1)[1::2]
    return steps


def _pair(columns: Any) -> list[Any]:
    names = [columns] if isinstance(columns, str) or not hasattr(columns, "__len__") else list(columns)
    if not 1 <= len(names) <= 2 or len(set(names)) < len(names):
        raise ParameterError(f"columns must be one or two different columns; got {columns!r}")
    return names


def _place(names: list[str], column: Any) -> int:
    if isinstance(column, str) and column in names:
        return names.index(column)
    if hasattr(column, "__index__") and 0 <= column < len(names):
        return int(column)
    raise ParameterError(
        f"columns: {column!r} is none of {', '.join(map(repr, names[:20]))}, nor a number below {len(names)}"
    )
