"""Positions of the displayed rows on two axes: principal axes, two columns, or a neighbour map."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from coterie.app.blob import blob
from coterie.app.column_bins import numbers_of
from coterie.app.failures import FieldError
from coterie.app.open_table import OpenTable, Prepared
from coterie.core.arrays import Array
from coterie.data.row_sample import sample_rows
from coterie.distances import pairwise
from coterie.plots.animation import histogram_points
from coterie.plots.neighbour_map import LITTLE, ROWS, neighbour_map
from coterie.web import inner_range, span
from coterie.web.packing import STEPS, value_steps

KINDS = ("axes", "columns", "neighbours")
NOWHERE = STEPS  # both coordinates of a row that is not on the map


@dataclass(frozen=True, eq=False)
class Axes:
    """A linear map of the prepared rows: ``rows @ A + b`` are positions."""

    names: list[str]
    A: Array  # (d, p)
    b: Array  # (p,)
    box: list[float]
    share: float | None

    def positions(self, centers: Array, height: float) -> Array:
        """Positions of centers (k, 2); on the axis of a single column all have the same height."""
        points = centers @ self.A + self.b
        return points if points.shape[1] == 2 else np.column_stack([points, np.full(len(points), height)])

    def in_box(self, centers: Array) -> Array:
        """Positions of centers (k, 2), from 0 to 1 in the box."""
        x0, x1, y0, y1 = self.box
        unit: Array = (self.positions(centers, (y0 + y1) / 2) - [x0, y0]) / [x1 - x0, y1 - y0]
        return unit


def axes_and_map(table: OpenTable, prepared: Prepared) -> tuple[Axes, bytes]:
    """The first two principal axes, or the columns if there are one or two; and the displayed rows on them."""

    def compute() -> tuple[Axes, bytes]:
        axes, points = _projected(table, prepared)
        header = {
            "kind": "axes", "axes": axes.names, "box": axes.box, "share": axes.share, "title": None,
            "note": _axes_note(prepared, axes),
        }  # fmt: skip
        return axes, _packed(table, prepared, points, axes.box, header)

    return prepared.once("axes", compute)


def _projected(table: OpenTable, prepared: Prepared) -> tuple[Axes, Array]:
    """The axes, and the positions of the displayed rows (m, 2); NaN for rows that are not used."""
    space = prepared.space
    d = space.X.shape[1]
    rows = prepared.positions[table.displayed]
    used = rows[rows >= 0]
    if d == 1:
        A, b, names, share = np.ones((1, 1)) * space.spread[0], space.shift[:1], [space.names[0]], None
    elif d == 2:
        A, b, names, share = np.diag(space.spread), space.shift, list(space.names), None
    else:
        view = space.view
        A, b = view.directions, -view.origin @ view.directions
        names, share = [axis.replace(" of the variance", "") for axis in view.axes], view.share
    points = np.full((len(rows), 2), np.nan)
    projected = space.project(used, A, b)
    points[rows >= 0] = projected if d > 1 else histogram_points(projected[:, 0])
    box = [bound for column in points[rows >= 0].T for bound in span(inner_range(column))]
    return Axes(names, A, b, box, share), points


def columns_map(table: OpenTable, prepared: Prepared, x: str, y: str) -> bytes:
    """The displayed rows on two columns of the table, in its units."""
    points = np.column_stack([_numbers(table, name) for name in (x, y)])
    points[~np.isfinite(points).all(axis=1)] = np.nan
    present = points[np.isfinite(points[:, 0])]
    if len(present) == 0:
        raise FieldError(f'no row has numbers in both "{x}" and "{y}": choose other columns.', f"column:{x}")
    box = [bound for column in present.T for bound in span(inner_range(column))]
    axes = [table.axis_name(name) for name in (x, y)]
    header = {"kind": "columns", "axes": axes, "box": box, "share": None, "title": None, "note": "Two columns."}
    return _packed(table, prepared, points, box, header)


def neighbours_map(table: OpenTable, prepared: Prepared) -> bytes:
    """A sample of the displayed rows on a map that places near rows near each other."""
    return prepared.once("neighbours", lambda: _made_neighbours(table, prepared))


def _made_neighbours(table: OpenTable, prepared: Prepared) -> bytes:
    space, rows = prepared.space, prepared.positions[table.displayed]
    if space.X.shape[1] < 2:
        raise FieldError("A neighbour map needs at least two columns.", "map")
    candidates = np.flatnonzero(rows >= 0)
    positions = candidates[sample_rows(len(candidates), ROWS)]
    chosen = rows[positions]
    weight = prepared.prepared.weight
    w = None if weight is None or not weight[chosen].any() else weight[chosen]
    result = neighbour_map(pairwise(space[chosen]), w)
    box = [bound for column in result.points.T for bound in span(column)]
    trust = result.trust
    note = (
        f"Near rows are near each other: {100 * trust.neighbours_kept:.0f} % of the {trust.neighbours} nearest rows on "
        "the map are among the nearest in the data. Distances between groups, and their sizes, mean nothing here."
    )
    header = {
        "kind": "neighbours", "axes": ["x", "y"], "box": box, "share": None, "title": "Neighbour map", "note": note,
    }  # fmt: skip
    return _packed(table, prepared, result.points, box, header, positions)


def _packed(
    table: OpenTable, prepared: Prepared, points: Array, box: list[float], header: dict[str, Any],
    positions: Array | None = None,
) -> bytes:  # fmt: skip
    is_missing = np.isnan(points[:, 0])
    places = np.where(is_missing[:, None], box[::2], points)
    x, y = (value_steps(places[:, i], box[2 * i], box[2 * i + 1]) for i in (0, 1))
    x[is_missing] = y[is_missing] = NOWHERE
    arrays = {"x": x, "y": y}
    if len(table.displayed) < table.table.n_rows:
        arrays["rows"] = table.displayed.astype(np.uint32)
    if positions is not None:
        arrays["positions"] = positions.astype(np.uint32)
    is_beyond = ~is_missing & ((x == 0) | (x == STEPS) | (y == 0) | (y == STEPS))
    header |= {
        "m": len(table.displayed), "beyond": int(is_beyond.sum()), "missing": int(is_missing.sum()),
        "key": prepared.key,
    }  # fmt: skip
    return blob(header, arrays)


def _numbers(table: OpenTable, name: str) -> Array:
    column = table.column(name)
    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise FieldError(f'Column "{name}" does not hold numbers: choose a numeric column.', f"column:{name}")
    return numbers_of(column.gather(table.displayed))


def _axes_note(prepared: Prepared, axes: Axes) -> str:
    space = prepared.space
    if space.X.shape[1] == 1:
        return "The single column, as a histogram."
    note = "The two columns." if space.X.shape[1] == 2 else "The first two principal axes."
    if axes.share is not None and axes.share < LITTLE:
        note += f" They show {100 * axes.share:.0f} % of the variance: clusters that are apart may overlap."
    if space.has_missing:
        note += " Missing values are shown at the means of their columns."
    return note
