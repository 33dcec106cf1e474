"""Rows of the table with their clusters, sorted, filtered and in pages."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.app.execution import Outcome
from coterie.app.failures import FieldError
from coterie.app.open_table import MAX_PAGE, OpenTable
from coterie.app.session import Session
from coterie.app.views import row_silhouettes
from coterie.core.arrays import Array
from coterie.plots.display import plain
from coterie.preparation.column_selection import DISTANCE, PROBABILITY

BY_RUN = ("cluster", "distance", "silhouette")


def rows(
    session: Session, run: str | None = None, offset: int = 0, count: int = 100, sort: str = "",
    body: bytes | None = None, **selected: Any,
) -> dict[str, Any]:  # fmt: skip
    """One page of rows; `selected` by `cluster`, `q` and `rows`, and by `body`, a bit for each displayed row."""
    table = session.open_table()
    outcome = None if run is None else session.outcome(run)
    outcome = None if outcome is None or outcome.content is None else outcome
    mask = _mask(table, outcome, body, **selected)
    order = None if not sort else _order(table, sort, outcome)
    if order is None:
        numbers = np.flatnonzero(mask) if mask is not None else np.arange(table.table.n_rows)
    else:
        numbers = order if mask is None else order[mask[order]]
    chosen = numbers[offset : offset + min(count, MAX_PAGE)]
    views = plain(row_views(table, chosen, outcome))
    return {"total": len(numbers), "columns": table.table.columns, "rows": views}


def row_views(table: OpenTable, chosen: Array, outcome: Outcome | None) -> list[dict[str, Any]]:
    """Rows with their cells and, of a run, their cluster, distance, probability and silhouette."""
    cells, about = table.cells(chosen.tolist()), _about(chosen, outcome)
    return [{"row": int(row), "cells": texts, **each} for row, texts, each in zip(chosen, cells, about, strict=True)]


def distances(outcome: Outcome) -> Array | None:
    """(rows of the table,) the distance of each row from its center; NaN if it has none; None for other models."""
    content = outcome.clusters
    rows = content.prepared.rows
    if DISTANCE not in content.columns.names:
        return None
    values = np.full(len(rows.row_mask), np.nan)
    values[rows.row_mask] = content.columns(slice(0, rows.n))[DISTANCE]
    values[content.result.labels < 0] = np.nan
    return values


def _about(chosen: Array, outcome: Outcome | None) -> list[dict[str, Any]]:
    if outcome is None or outcome.content is None:
        return [{} for _ in chosen]
    content = outcome.content
    positions, labels = outcome.prepared.positions[chosen], content.result.labels[chosen]
    is_used = positions >= 0
    known = content.fitted.columns(content.prepared.rows.model_input, positions[is_used]) if is_used.any() else {}
    about: dict[str, Any] = {"cluster": [None if label < 0 else label for label in labels.tolist()]}
    for key, name in (("distance", DISTANCE), ("probability", PROBABILITY)):
        about[key] = np.full(len(chosen), np.nan)
        about[key][is_used] = known.get(name, np.nan)
        about[key][labels < 0] = np.nan
    about["silhouette"] = row_silhouettes(outcome)[chosen]
    return [dict(zip(about, values, strict=True)) for values in zip(*about.values(), strict=True)]


def rows_of_bits(table: OpenTable, bits: bytes) -> Array:
    """Mask of the rows that are selected on the page, which sends a bit for each displayed row."""
    selected = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[: len(table.displayed)]
    return _at(table.displayed[np.flatnonzero(selected)], table.table.n_rows)


def _mask(
    table: OpenTable, outcome: Outcome | None, bits: bytes | None, *, cluster: int | None = None, q: str = "",
    rows: Sequence[int] = (),
) -> Array | None:  # fmt: skip
    """Mask of the rows that are selected; None: all rows."""
    masks = []
    if bits is not None:
        masks.append(rows_of_bits(table, bits))
    if rows:
        masks.append(_at(np.array(rows), table.table.n_rows))
    if q:
        masks.append(table.matching(q))
    if cluster is not None:
        if outcome is None or outcome.content is None:
            raise FieldError("Rows of a cluster need a run with clusters.", "run")
        masks.append(outcome.content.result.labels == cluster)
    return None if not masks else np.logical_and.reduce(masks)


def _order(table: OpenTable, sort: str, outcome: Outcome | None) -> Array:
    name = sort.removeprefix("-")
    if name not in BY_RUN or name in table.table.schema:
        return table.sorted_rows(sort)
    if outcome is None or outcome.content is None:
        raise FieldError(f"Sorting by {name} needs a run with clusters.", "run")
    values: Any = outcome.content.result.labels.astype(np.float64)
    if name == "cluster":
        values = np.where(values < 0, np.nan, values)
    elif name == "silhouette":
        values = row_silhouettes(outcome)
    else:
        values = distances(outcome)
        if values is None:
            raise FieldError("This algorithm has no distances from centers.", "run")
    order: Array = np.argsort(-values if sort.startswith("-") else values, kind="stable")
    return order


def _at(rows: Array, n: int) -> Array:
    mask = np.zeros(n, dtype=bool)
    mask[rows] = True
    return mask
