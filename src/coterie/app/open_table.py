"""The open table: its rows for the table view and for cross-filtering, and its preparations."""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from coterie.algorithms import algorithm_of
from coterie.app.blob import blob
from coterie.app.column_bins import MISSING, number_bins, numbers_of
from coterie.app.column_view import Column, describe_columns
from coterie.app.failures import FieldError
from coterie.app.preparation_options import options_for
from coterie.core.arrays import Array
from coterie.core.progress import Callback, silent
from coterie.data.row_sample import sample_rows
from coterie.data.tables.reader import read
from coterie.jobs.info import readable_columns, value_counts
from coterie.preparation import PreparationOptions
from coterie.preparation.fit_preparation import PreparedTable, prepare
from coterie.report.build.feature_space import FeatureSpace, feature_space

MAX_DISPLAYED = 1_000_000  # rows that the page draws; a random sample of a larger table
MAX_PREPARED = 2  # preparations in memory
BINS = 64  # of the values for cross-filtering
MAX_LABELS = 63  # categories; others are counted together
MAX_CELL = 200  # characters of a cell in the table view
MAX_PAGE = 1000  # rows of a page of the table view


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows that are ready for an algorithm, and their feature space; `cached` has maps of them."""

    key: str
    prepared: PreparedTable
    cached: dict[str, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """The result of a computation that is kept with these rows."""
        with self.lock:
            if name not in self.cached:
                self.cached[name] = compute()
            return self.cached[name]

    @cached_property
    def space(self) -> FeatureSpace:
        return feature_space(self.prepared)

    @cached_property
    def positions(self) -> Array:
        """(rows of the table,) index among the rows that are used; -1 if a row is not used."""
        row_mask = self.prepared.rows.row_mask
        positions = np.cumsum(row_mask) - 1
        positions[~row_mask] = -1
        return positions.astype(np.int32)


class OpenTable:
    """A table in memory, and what the page asks about it."""

    def __init__(self, path: Path) -> None:
        self.id = secrets.token_hex(8)  # of this opening: a page must not mix two tables, or two servers
        self.path = path
        self.table = read(path)
        self.readable = readable_columns(self.table)
        self.columns: list[Column] = describe_columns(self.readable, self.table)
        self.displayed = sample_rows(self.table.n_rows, MAX_DISPLAYED)  # row numbers, in ascending order
        self._prepared: OrderedDict[str, Prepared] = OrderedDict()
        self._orders: OrderedDict[str, Array] = OrderedDict()
        self._lock = threading.RLock()

    @property
    def kinds(self) -> dict[str, str]:
        return {column.info.name: column.info.kind for column in self.columns}

    @property
    def skipped(self) -> dict[str, str | None]:
        """Why columns are skipped by default."""
        return {column.info.name: column.info.skipped for column in self.columns}

    @property
    def has_missing(self) -> bool:
        """Whether columns that are used by default have missing values."""
        return any(column.info.missing and column.info.skipped is None for column in self.columns)

    def prepared(self, options: Mapping[str, Any], algorithm: str = "kmeans", callback: Callback = silent) -> Prepared:
        """The rows prepared for an algorithm; the last ones are kept."""
        method = algorithm_of(algorithm)
        plain = options_for(options, method)
        is_allowed = plain["missing"] != "ignore" or method.handles_missing  # `prepare` rejects other algorithms
        choices = (sorted(plain.items()), method.mixed, method.series, method.directions, is_allowed)
        key = sha256(repr(choices).encode()).hexdigest()[:16]
        with self._lock:
            if key not in self._prepared:
                made = Prepared(key, prepare(self.table, PreparationOptions(**plain), method, callback))
                self._prepared[key] = made
                while len(self._prepared) > MAX_PREPARED:
                    self._prepared.popitem(last=False)
            self._prepared.move_to_end(key)
            return self._prepared[key]

    def rows_dropped(self, options: Mapping[str, Any]) -> int | None:
        """How many rows would be dropped because of missing values; None if no other row is left."""
        try:
            rows = self.prepared({**options, "missing": "drop"}).prepared.rows
        except ValueError:
            return None
        return self.table.n_rows - rows.n

    def _described(self, name: str, field: str) -> Column:
        known = next((column for column in self.columns if column.info.name == name), None)
        if known is None:
            raise FieldError(f'no column "{name}".', field)
        return known

    def column(self, name: str, field: str = "") -> pl.Series:
        """A column, as numbers if a fit can read it so; dates are days after their reference: later is larger."""
        is_date = self._described(name, field or f"column:{name}").is_date
        column = (self.readable if name in self.readable.schema else self.table).column(name)
        return -column if is_date else column

    def axis_name(self, name: str) -> str:
        """The name of a column with its unit, if it has one."""
        column = self._described(name, f"column:{name}")
        return f"{name} (days after {column.shown(0.0)})" if column.is_date else name

    def cells(self, rows: Sequence[int]) -> list[list[str | None]]:
        """The values of some rows as text, in the order of the columns."""
        indices = np.asarray(rows, dtype=np.int64)
        texts: list[list[str | None]] = []
        for name in self.table.columns:
            values = self.table.column(name).gather(indices).to_list()
            texts.append([None if value is None else _text(value) for value in values])
        return [list(row) for row in zip(*texts, strict=True)]

    def sorted_rows(self, sort: str) -> Array:
        """All row numbers in the order of a column; a minus sign before its name means descending."""
        with self._lock:
            if sort not in self._orders:
                name, descending = (sort[1:], True) if sort.startswith("-") else (sort, False)
                column = self.column(name, "rows")
                column = column.cast(pl.String) if column.dtype.is_nested() else column
                self._orders[sort] = column.arg_sort(descending=descending, nulls_last=True).to_numpy().astype(np.int64)
                while len(self._orders) > 4:
                    self._orders.popitem(last=False)
            return self._orders[sort]

    def matching(self, text: str) -> Array:
        """Mask of the rows that contain the text in any column, without regard to case."""
        mask = np.zeros(self.table.n_rows, dtype=bool)
        for name in self.table.columns:
            column = self.table.column(name)
            if not column.dtype.is_nested() and column.dtype != pl.Binary:
                is_match = column.cast(pl.String).str.to_lowercase().str.contains(text.lower(), literal=True)
                mask |= is_match.fill_null(False).to_numpy()
        return mask

    def values(self, names: Sequence[str]) -> bytes:
        """A byte for each displayed row and column: the bin of its value, or its category."""
        about, arrays = [], {}
        for i, name in enumerate(names):
            column = self.column(name).gather(self.displayed)
            if column.dtype.is_numeric():
                shown = self._described(name, f"column:{name}").shown
                arrays[f"c{i}"], bounds = number_bins(numbers_of(column), BINS)
                about.append({"name": name, "kind": "number", "bounds": [shown(bound) for bound in bounds.tolist()]})
            else:
                labels, arrays[f"c{i}"] = _category_codes(column)
                about.append({"name": name, "kind": "category", "labels": labels})
        return blob({"m": len(self.displayed), "columns": about}, arrays)


def _category_codes(column: pl.Series) -> tuple[list[str], Array]:
    """The most frequent values and their numbers; all others are the last category."""
    texts = (column if not column.dtype.is_nested() else column.map_elements(str, pl.String)).cast(pl.String)
    counts = value_counts(texts)
    labels: list[str] = counts["value"].head(MAX_LABELS).to_list()
    codes = texts.replace_strict(labels, range(len(labels)), default=len(labels), return_dtype=pl.UInt8)
    shown = [label[:MAX_CELL] for label in labels] + (["other"] if counts.height > len(labels) else [])
    array = np.where(texts.is_null().to_numpy(), MISSING, codes.fill_null(MISSING).to_numpy()).astype(np.uint8)
    return shown, array


def _text(value: Any) -> str:
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    return text[:MAX_CELL]
