"""Rows and clusters as figures need them, and projections of the rows onto one or two axes."""

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import svds

from coterie.core.arrays import Array, is_sparse
from coterie.data import as_source, opened
from coterie.data.memory import MemorySource
from coterie.data.summary import summarize
from coterie.engines.local import Serial
from coterie.errors import InputError, ParameterError
from coterie.metrics.labels import clusters_of_rows
from coterie.metrics.model_labels import check_fitted, labels_by
from coterie.plots.display import Display

BLOCK = 1 << 15  # rows that are projected at a time
WIDE = 3000  # largest number of columns for a covariance matrix
TINY = 0.001  # shares of the variance below this are not written in full
SHOWN = 20_000  # size of the sample if there are more than `MANY` rows
MANY = 50_000  # largest number of rows that are drawn as points
PER_CLUSTER = ("cluster_centers_", "weights_")  # attributes of models with one entry for each cluster, empty or not


class Rows(NamedTuple):
    """Dense rows, their weights and column names; missing values are replaced by the mean of their column."""

    X: Array  # (n, d) finite
    columns: list[str]
    mean: Array  # (d,) of the values that are not missing
    variance: Array  # (d,) of X
    w: Array | None = None  # (n,)
    is_missing: Array | None = None  # (n, d) bool
    row_numbers: Array | None = None  # (n,) number of each row in the data, if some rows were dropped

    @property
    def weight(self) -> float:
        """Total weight of the rows."""
        return float(len(self.X) if self.w is None else self.w.sum())

    @property
    def missing(self) -> int:
        """Number of missing values."""
        return 0 if self.is_missing is None else int(np.count_nonzero(self.is_missing))

    @property
    def deviation(self) -> Array:
        """Standard deviation of the values that are not missing (d,)."""
        share_known = 1.0 if self.is_missing is None else np.average(~self.is_missing, axis=0, weights=self.w)
        return np.sqrt(self.variance / share_known)

    @property
    def X_with_nan(self) -> Array:
        """X with NaN for missing values, as the user passed it."""
        return self.X if self.is_missing is None else np.where(self.is_missing, np.nan, self.X).astype(self.X.dtype)

    def take(self, index: Array) -> Self:
        """Return some of the rows, with the mean and variance of all rows."""
        w, is_missing = (None if values is None else values[index] for values in (self.w, self.is_missing))
        numbers = index if self.row_numbers is None else self.row_numbers[index]
        return self._replace(X=self.X[index], w=w, is_missing=is_missing, row_numbers=numbers)

    def without_zero_weights(self) -> Self:
        return self if self.w is None else self.take(np.flatnonzero(self.w))


class Groups(NamedTuple):
    """The cluster and the weight of each row."""

    codes: Array  # (n,) index of the cluster; -1: in no cluster
    names: list[str]  # (k,)
    w: Array | None = None  # (n,)

    @property
    def sizes(self) -> Array:
        """Number of rows in each cluster, or their total weight (k,)."""
        is_member = self.codes >= 0
        w = None if self.w is None else self.w[is_member]
        return np.bincount(self.codes[is_member], w, minlength=len(self.names))

    def means(self, P: Array, is_missing: Array | None = None) -> Array:
        """Return the mean of the points (n, p) of each cluster (k, p), without missing values; NaN if all are missing.

        The mean of an empty cluster is 0.
        """
        is_member, k = self.codes >= 0, len(self.names)
        codes = self.codes[is_member]
        w = np.ones(int(np.count_nonzero(is_member))) if self.w is None else self.w[is_member]
        sums, mass = np.empty((k, P.shape[1])), np.empty((k, P.shape[1]))
        for j in range(P.shape[1]):
            known = w if is_missing is None else w * ~is_missing[is_member, j]
            sums[:, j] = np.bincount(codes, known * P[is_member, j].astype(np.float64), k)
            mass[:, j] = np.bincount(codes, known, k)
        empty = np.where(self.sizes == 0, 0.0, np.nan)[:, None]
        return np.where(mass > 0, sums / np.where(mass > 0, mass, 1.0), empty)

    def check_any(self) -> None:
        """Reject labels that are all -1."""
        if not self.names:
            raise ParameterError(
                "labels are all -1, so there are no clusters to draw: pass labels with at least one cluster"
            )


@dataclass(frozen=True)
class View:
    """A projection of the rows onto a line or a plane, with names of its axes."""

    origin: Array  # (d,)
    directions: Array  # (d, p) with p = 1 or 2
    axes: list[str]  # (p,)
    has_equal_units: bool = False
    share: float | None = None  # of the variance that principal axes show; None for columns

    def points(self, X: Array) -> Array:
        """Project rows (n, d) to points (n, p)."""
        out = np.empty((len(X), self.directions.shape[1]))
        for start in range(0, len(X), BLOCK):
            part = slice(start, start + BLOCK)
            out[part] = (X[part].astype(np.float64) - self.origin) @ self.directions
        return out

    def to_rows(self, P: Array) -> Array:
        """Return the rows (m, d) on the line or plane that project to points (m, p)."""
        return self.origin + P @ self.directions.T

    @classmethod
    def of(cls, rows: Rows, columns: Any = None) -> Self:
        """Return a view of one or two columns, or of the two first principal axes if there are more columns."""
        d = len(rows.columns)
        if columns is None and d > 2:
            return cls._principal(rows)
        chosen = list(range(d)) if columns is None else _column_indices(rows.columns, columns)
        directions = np.zeros((d, len(chosen)))
        directions[chosen, range(len(chosen))] = 1.0
        return cls(rows.mean * (directions.sum(axis=1) == 0), directions, [rows.columns[j] for j in chosen])

    @classmethod
    def _principal(cls, rows: Rows) -> Self:
        values, vectors = _axes_by_columns(rows) if len(rows.columns) <= WIDE else _axes_by_rows(rows)
        largest = vectors[np.abs(vectors).argmax(axis=0), [0, 1]]
        total = float(rows.variance.sum())
        shares = np.maximum(values, 0.0) / total if total > 0 else np.zeros(2)
        texts = [f"{100 * share:.3g} %" if share >= TINY or share == 0 else "below 0.1 %" for share in shares]
        axes = [f"principal axis {i + 1} ({text} of the variance)" for i, text in enumerate(texts)]
        share = float(shares.sum()) if total > 0 else None
        return cls(rows.mean, vectors * np.where(largest < 0, -1.0, 1.0), axes, has_equal_units=True, share=share)


def _axes_by_columns(rows: Rows) -> tuple[Array, Array]:
    """Return the variances (2,) and directions (d, 2) of the first two principal axes."""
    d = len(rows.columns)
    covariance = np.zeros((d, d))
    for start in range(0, len(rows.X), BLOCK):
        part = rows.X[start : start + BLOCK].astype(np.float64) - rows.mean
        w = None if rows.w is None else rows.w[start : start + BLOCK, None]
        covariance += part.T @ (part if w is None else w * part)
    values, vectors = eigh(covariance / rows.weight, subset_by_index=[d - 2, d - 1])
    return values[::-1], vectors[:, ::-1]


def _axes_by_rows(rows: Rows) -> tuple[Array, Array]:
    """Return the same as `_axes_by_columns`, without a covariance matrix of many columns."""
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
    """Convert `X` to dense rows in memory; an error names columns with infinite values, or without any value."""
    source = as_source(X, sample_weight)
    if not isinstance(source, MemorySource) or is_sparse(source.X):
        raise InputError(
            "X must be dense and in memory to be drawn: load or compute some of its rows, and convert sparse rows with "
            ".toarray()"
        )
    summary = summarize(source, Serial(), allow_missing=True)
    columns = source.columns or [f"column {j}" for j in range(source.shape[1])]
    if summary.n_missing == 0:
        return Rows(source.X, columns, summary.mean, summary.variance, source.w)
    is_missing = np.isnan(source.X)
    X = np.where(is_missing, summary.mean, source.X).astype(source.X.dtype)
    share_known = np.average(~is_missing, axis=0, weights=source.w)
    return Rows(X, columns, summary.mean, summary.variance * share_known, source.w, is_missing)


def without_zero_weights(rows: Rows, groups: Groups) -> tuple[Rows, Groups]:
    """Drop rows of weight 0."""
    if rows.w is None:
        return rows, groups
    return rows.without_zero_weights(), Groups(groups.codes[rows.w > 0], groups.names, rows.w[rows.w > 0])


def as_groups(labels: Any, n: int) -> Groups:
    """Convert labels of any type to groups; the number -1 means that a row is in no cluster."""
    return Groups(*clusters_of_rows(labels, n))


def groups_of_model(model: Any, X: Any, n: int, sample_weight: Any = None) -> Groups:
    """Return the clusters of a fitted model (see `labels_by`); empty clusters keep their number."""
    check_fitted(model)
    groups = as_groups(labels_by(model, X, n, sample_weight), n)
    k = next((len(getattr(model, name)) for name in PER_CLUSTER if getattr(model, name, None) is not None), 0)
    if k and all(name.isdecimal() for name in groups.names):
        return Groups(np.append(np.array(groups.names, np.int64), -1)[groups.codes], [str(j) for j in range(k)])
    return groups


def call_method(model: Any, method: str, X: Array) -> Array:
    """Call a method such as `predict` with rows without column names; scikit-learn's warning about them is hidden."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return np.asarray(getattr(model, method)(X))


def max_points(n: int) -> int:
    """Return how many of n rows are drawn as points."""
    return n if n <= MANY else SHOWN


def grid_centers(values: Array, cells: int, margin: float = 0.05) -> Array:
    """Return the centers of `cells` equal cells over the range of `values`, plus a margin."""
    low, high = float(values.min()), float(values.max())
    padding = margin * (high - low) if high > low else 0.5 * max(1.0, 1e-6 * abs(low))
    return np.linspace(low - padding, high + padding, 2 * cells + 1)[1::2]


def _column_indices(names: list[str], columns: Any) -> list[int]:
    chosen = [columns] if isinstance(columns, str) or not hasattr(columns, "__len__") else list(columns)
    if not 1 <= len(chosen) <= 2 or len(set(chosen)) < len(chosen):
        raise ParameterError(f"columns must be one or two different columns; got {columns!r}")
    indices = []
    for column in chosen:
        if isinstance(column, str) and column in names:
            indices.append(names.index(column))
        elif hasattr(column, "__index__") and 0 <= column < len(names):
            indices.append(int(column))
        else:
            raise ParameterError(
                f"columns: {column!r} is not a column; use one of {', '.join(map(repr, names[:20]))}, or a number "
                f"below {len(names)}"
            )
    return indices


class RowsDisplay(Display):
    """A display of rows and their clusters, those of a fitted model or of labels, for which `_build` has no model."""

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, sample_weight: Any = None, ax: Any = None, **options: Any) -> Self:
        """Display of a fitted model; the options are those of the function that draws this figure."""
        check_fitted(model)
        X = opened(X)
        rows = as_rows(X, sample_weight)
        rows, groups = without_zero_weights(rows, groups_of_model(model, X, len(rows.X), sample_weight))
        return cls._build(rows, groups, model, **options)._plot_into(ax)  # type: ignore[attr-defined]

    @classmethod
    def from_predictions(
        cls, X: Any, labels: Any, *, sample_weight: Any = None, ax: Any = None, **options: Any
    ) -> Self:
        """Display of labels, one for each row; -1 means no cluster."""
        rows = as_rows(X, sample_weight)
        rows, groups = without_zero_weights(rows, as_groups(labels, len(rows.X)))
        return cls._build(rows, groups, None, **options)._plot_into(ax)  # type: ignore[attr-defined]
