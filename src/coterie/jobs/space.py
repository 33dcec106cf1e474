"""Rows as points, for pictures and examples."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.data.picking import some
from coterie.jobs.prepare import Prepared
from coterie.plots.cloud import Cloud
from coterie.plots.gaussians import normals_of
from coterie.plots.rows import Groups, View, as_rows
from coterie.web import ClusterMap

Array = NDArray[Any]

POINTS = 10_000  # that a map shows at most
VALUES = 50_000  # that it holds at most: points times axes
BLOCK = 8192  # rows at a time
COLUMNS = 8  # that can be looked along, beside principal axes


@dataclass(frozen=True)
class Space:
    """Rows as the algorithm sees them, holes filled by the means of their columns."""

    S: Array  # (n, d) scaled
    names: tuple[str, ...]  # (d,)
    own: int  # columns that are numbers of the table; the others are made of categories
    shift: Array  # (d,) S * spread + shift are the table's own units
    spread: Array  # (d,)
    filled: bool  # whether there were holes
    standardised: bool  # whether only the picture is scaled, not the fit

    @property
    def n(self) -> int:
        return len(self.S)

    def in_units(self, columns: Any) -> Array:
        """Columns as the table has them (n, c)."""
        return self.S[:, columns] * self.spread[columns] + self.shift[columns]


def space_of(prepared: Prepared) -> Space:
    """The given rows; a table of columns of several kinds is standardised for the purpose."""
    how, made = prepared.preparation, len(prepared.preparation.names) - len(prepared.preparation.numbers)
    if how.mixed:
        X = np.asarray(prepared.rows.X, dtype=np.float64)
        shift, spread = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        S = (X - shift) / spread
    else:
        shift, spread = np.array([*how.shift, *[0.0] * made]), np.array([*how.spread, *[1.0] * made])
        S = prepared.rows.given
    holes = np.isnan(S)
    if holes.any():
        S = np.where(holes, np.nan_to_num(np.nanmean(S, axis=0)), S)
    return Space(S, how.names, len(how.numbers), shift, spread, bool(holes.any()), how.mixed)


def cluster_map(space: Space, codes: Array, names: list[str], model: Any = None, first: Array | None = None) -> Any:
    """Rows in their clusters: a map of two columns or more, bars of one.

    `codes` are the clusters of the rows (-1: none). `first` are columns to look along, the most telling ones first.
    """
    groups = Groups(codes, names)
    if space.S.shape[1] == 1:
        rows = as_rows(space.in_units([0]))
        return Cloud.of(rows, groups, View(np.zeros(1), np.ones((1, 1)), [space.names[0]]))
    kept = some(space.n, POINTS)
    axes, A, b = _axes(space, len(kept), first)
    P = space.S @ A + b
    if len(names) < 2:
        return ClusterMap(axes, P[kept], np.full(len(kept), -1), (), rows=space.n)
    centers, spreads = _ellipses(space, groups, P, A, b, model)
    round_about = None if space.standardised else spreads  # rows of categories lie in lumps, no ellipse describes them
    return ClusterMap(axes, P[kept], codes[kept], names, space.n, centers, round_about)


def map_note(space: Space, shown: Any) -> str:
    """What the map shows, in a sentence or three."""
    if not isinstance(shown, ClusterMap):
        return f"{space.n:,} rows along their one column."
    two = space.S.shape[1] == 2
    told = "The two columns." if two else "The first two principal axes, or any two of the columns that differ most."
    if shown.covariances is not None:
        told += " Ellipses are two standard deviations wide about the centers."
    if space.standardised:
        told += " Columns were standardised for this picture, categories taken as zeros and ones."
    if space.filled:
        told += " Missing values are shown at the means of their columns."
    return told


def nearest(space: Space, codes: Array, k: int, count: int) -> list[list[int]]:
    """The rows nearest to the mean of each cluster."""
    away = _squares(space.S, Groups(codes, [""] * k).means(space.S), codes)
    order = np.lexsort((away, codes))
    starts = np.searchsorted(codes[order], np.arange(k))
    ends = np.append(starts[1:], len(order))
    return [order[a : min(a + count, b)].tolist() for a, b in zip(starts, ends, strict=True)]


def explained(space: Space, codes: Array, k: int, weight: Array | None) -> float | None:
    """The share of the sum of squares that lies between clusters; None where all rows are equal."""
    w = np.ones(space.n) if weight is None else weight
    means, everything = _weighted_means(space.S, codes, w, k), np.zeros(space.n, dtype=np.int64)
    total = w @ _squares(space.S, _weighted_means(space.S, everything, w, 1), everything)
    within = w @ _squares(space.S, means, codes)
    return float(1 - within / total) if total > 0 else None


def _weighted_means(S: Array, codes: Array, w: Array, k: int) -> Array:
    mass = np.maximum(np.bincount(codes, w, k), 1e-300)
    return np.stack([np.bincount(codes, w * x, k) / mass for x in S.T], axis=1)


def _squares(S: Array, means: Array, codes: Array) -> Array:
    """The squared distance of each row to the mean of its cluster, by blocks: no second table is made."""
    out = np.empty(len(S))
    for start in range(0, len(S), BLOCK):
        part = slice(start, start + BLOCK)
        out[part] = ((S[part] - means[codes[part]]) ** 2).sum(axis=1)
    return out


def _axes(space: Space, m: int, first: Array | None) -> tuple[list[str], Array, Array]:
    """Names of the axes, and what makes points of rows: S @ A + b."""
    d = space.S.shape[1]
    view = View.of(as_rows(space.S))
    order = np.arange(space.own) if first is None else first
    room = max(0, min(COLUMNS, VALUES // m - 2)) if d > 2 else d
    columns = order[order < space.own][:room] if d > 2 else np.arange(d)
    units = np.zeros((d, len(columns)))
    units[columns, range(len(columns))] = space.spread[columns]
    names = [space.names[j] for j in columns]
    if d == 2:
        return names, units, space.shift[columns]
    A = np.hstack([view.directions, units])
    return (
        [*(axis.replace(" of the variance", "") for axis in view.axes), *names],
        A,
        np.concatenate([-view.origin @ view.directions, space.shift[columns]]),
    )


def _ellipses(space: Space, groups: Groups, P: Array, A: Array, b: Array, model: Any) -> tuple[Array, Array]:
    """Centers (k, p) and covariances (k, p, p): of the components of a mixture, else of the rows of each cluster."""
    k, gaussian = len(groups.names), hasattr(model, "covariances_") and hasattr(model, "means_")
    if gaussian and not space.standardised and len(model.means_) == k:
        normals = normals_of(model, space.S.shape[1])
        return normals.means @ A + b, np.einsum("di,kde,ej->kij", A, normals.covariances, A)
    own = [P[groups.codes == j] for j in range(k)]
    spreads = [np.cov(rows.T, bias=True) if len(rows) > 1 else np.zeros((P.shape[1],) * 2) for rows in own]
    return groups.means(P), np.array(spreads)
