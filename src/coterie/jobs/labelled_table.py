"""What a model says of rows, block by block, for columns that are written as they are made."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS_AT_ONCE = 8192

Columns = Mapping[str, NDArray[Any]]


class Answers:
    """Columns for any slice of n rows, from a function that makes them for a block of rows.

    Blocks begin at the same rows whatever is asked for: how many rows a product of matrices has shows in its last bits.
    """

    def __init__(self, ask: Callable[[slice], Columns], n: int) -> None:
        self._ask, self._n = ask, n
        self._last: tuple[int, Columns] = (-1, {})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._block(0))

    def __call__(self, rows: slice) -> Columns:
        blocks = range(rows.start // ROWS_AT_ONCE, -(-rows.stop // ROWS_AT_ONCE))
        parts = [_cut(self._block(i), rows, i * ROWS_AT_ONCE) for i in blocks]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _block(self, i: int) -> Columns:
        if self._last[0] != i:
            self._last = i, self._ask(slice(i * ROWS_AT_ONCE, min(self._n, (i + 1) * ROWS_AT_ONCE)))
        return self._last[1]


def _cut(columns: Columns, rows: slice, start: int) -> Columns:
    """What lies in `rows` of a block that begins at `start`."""
    inside = slice(max(rows.start - start, 0), rows.stop - start)
    return {name: values[inside] for name, values in columns.items()}
