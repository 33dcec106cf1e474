"""Distances of active clusters, one row for each: of a given matrix, or of rows of data, computed when they are needed.

A merge updates one row; columns are updated lazily. Merges are logged, and a row applies the log when it is read next,
so that memory is accessed along rows only. When two fifths of the columns are unused, the others are moved together.

Rows of data have no distances until their cluster is first read, and a merge frees the memory of one row. So most of
the matrix is never used: about a quarter is, at most, if clusters are compact, and all of it only if the first chain
visits every row.
"""

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.cpu import read_only
from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.neighbours import distances_to_point, offset, pack, tile_width
from coterie.kernels.cpu.vectors import vector_code
from coterie.kernels.plain.linkage import AVERAGE, CENTROID, COMPLETE, WARD

MIN_ACTIVE = 0.6  # share of active columns below which they are moved together
FEW = 256  # number of columns up to which moving them is not worthwhile
MAX_MOVES = 64  # more than there are for any number of rows that fits into memory


class Table(NamedTuple):
    """Distances of active clusters; cluster j has column j and row ``row[j]``."""

    D: Any  # (n, n); infinite on the diagonal, and in the columns of inactive clusters
    row: Any  # (n,) int64; -1 if the distances of the cluster, which is one row of the data, were not computed yet
    leaf: Any  # (n,) int64, one row of the data in the cluster
    size: Any  # (n,) in the dtype of D; 0 if inactive
    n_applied: Any  # (n,) int64, number of log entries that were applied to the row
    target: Any  # (n,) int64, log: column of the merged cluster
    source: Any  # (n,) int64, log: column that became inactive
    coefficients: Any  # (n, 4) in the dtype of D: weights of source and target, their sum, and the subtrahend
    moves: Any  # (MAX_MOVES, 2) int64, each time that columns moved: entries of the log before, columns that remained
    moved_columns: Any  # (2 n,) int64, these columns, of all times
    tiles: Any  # rows of the data as in `neighbours.pack`; empty if D is given
    buffer: Any  # (..,) space for the distances of one row of the data
    unused: Any  # (n,) int64, rows of D that a merge made free
    count: Any  # (7,) int64, see below


# Numbers of: columns, active clusters, entries of the log, times that columns moved, rows of D in use, of these free;
# and the first cluster that may be active.
COLUMNS, ACTIVE, LOGGED, MOVES, USED, UNUSED, FIRST = range(7)


def table_of_distances(D: np.ndarray, size: np.ndarray) -> Table:
    """Each row as a cluster; `D` are their distances, which will be overwritten."""
    n = len(D)
    np.fill_diagonal(D, np.inf)
    return _table(D, size, np.arange(n), np.empty(0, D.dtype), np.empty(0, D.dtype), n)


def table_of_rows(X: np.ndarray, D: np.ndarray, size: np.ndarray) -> Table:
    """Each row of X as a cluster; `D` (n, n) is memory for their Euclidean distances."""
    tiles = pack(read_only(X))
    return _table(D, size, np.full(len(X), -1), tiles, np.empty(len(tiles) // X.shape[1], X.dtype), 0)


def _table(
    D: np.ndarray, size: np.ndarray, row: np.ndarray, tiles: np.ndarray, buffer: np.ndarray, n_used: int
) -> Table:
    n = len(D)
    zeros, coefficients = np.zeros(n, np.int64), np.empty((n, 4), D.dtype)
    moves, moved_columns = np.zeros((MAX_MOVES, 2), np.int64), np.zeros(2 * n, np.int64)
    count = np.array([n, n, 0, 0, n_used, 0, 0])
    return Table(
        D, row, np.arange(n), size.astype(D.dtype), zeros, zeros.copy(), zeros.copy(), coefficients, moves,
        moved_columns, tiles, buffer, zeros.copy(), count,
    )  # fmt: skip


@vector_code
def _prefetch(v, D, start, stop):
    """Prefetch ``D[start:stop]`` of the flat array, which is read out of order."""
    with v.loop(start, stop, 512 // v.bits, []) as line:
        v.prefetch(v.start(D, line.t))


@jit
def _merged_distance(kind, x, y, c, size):
    """Distance from a cluster of `size` to a merged cluster, from those to its parts (Lance & Williams 1967)."""
    if kind == COMPLETE:
        return x if x > y else y
    if kind == WARD:
        value = ((c[0] + size) * x + (c[1] + size) * y - size * c[3]) / (c[2] + size)
    else:
        value = (c[0] * x + c[1] * y - c[3]) / c[2]
    zero = c[0] - c[0]
    return value if value > zero else zero


@jit
def _merged_row(kind, source, target, coefficient, size, columns):
    """Compute the row of the merged cluster in `target`; each kind has its own loop, so that it becomes vector code."""
    if kind == COMPLETE:
        for j in range(columns):
            target[j] = _merged_distance(COMPLETE, source[j], target[j], coefficient, size[j])
    elif kind == WARD:
        for j in range(columns):
            target[j] = _merged_distance(WARD, source[j], target[j], coefficient, size[j])
    else:
        for j in range(columns):
            target[j] = _merged_distance(AVERAGE, source[j], target[j], coefficient, size[j])


@jit
def _apply_log(table, numbers, size, start, stop, kind):
    """Apply the merges `start` to `stop` to the distances of a cluster of `size`."""
    for t in range(start, stop):
        target, source = table.target[t], table.source[t]
        numbers[target] = _merged_distance(kind, numbers[source], numbers[target], table.coefficients[t], size)
        numbers[source] = np.inf


@jit
def _compute_row(table, j, kind):
    """Compute the distances of cluster j, one row of the data: as they were when columns last moved."""
    numbers, leaf, d = table.buffer, table.leaf[j], len(table.tiles) // len(table.buffer)
    distances_to_point(table.tiles, offset(leaf, d, tile_width(numbers.itemsize)), numbers, len(numbers), d)
    numbers[leaf] = np.inf
    n_columns, done, first = len(table.row), 0, 0
    for move in range(table.count[MOVES]):
        stop, n_columns = table.moves[move, 0], table.moves[move, 1]
        _apply_log(table, numbers, table.size[j], done, stop, kind)
        for i in range(n_columns):
            numbers[i] = numbers[table.moved_columns[first + i]]
        done, first = stop, first + n_columns
    table.n_applied[j], table.row[j] = done, _free_row(table)
    row = table.D[table.row[j]]
    for i in range(n_columns):
        row[i] = numbers[i]
    for i in range(n_columns, table.count[COLUMNS]):
        row[i] = np.inf


@jit
def _free_row(table):
    """A row of D that is not in use."""
    if table.count[UNUSED] > 0:
        table.count[UNUSED] -= 1
        return table.unused[table.count[UNUSED]]
    table.count[USED] += 1
    return table.count[USED] - 1


@jit
def update_row(table, j, kind):
    """Apply all merges so far to the row of cluster j, and compute it before that if it is not known yet."""
    if table.row[j] < 0:
        _compute_row(table, j, kind)
    n, start = table.D.shape[1], table.n_applied[j]
    _prefetch(table.D, table.row[j] * n, table.row[j] * n + table.count[COLUMNS])
    _apply_log(table, table.D[table.row[j]], table.size[j], start, table.count[LOGGED], kind)
    table.n_applied[j] = table.count[LOGGED]


@jit
def merge(table, a, b, height, kind, equal):
    """Merge clusters a and b, whose rows are up to date; return the column of the merged cluster, the later one."""
    source, target = min(a, b), max(a, b)
    size, now = table.size, table.count[LOGGED]
    coefficient = table.coefficients[now]
    coefficient[0], coefficient[1] = (1, 1) if equal else (size[source], size[target])
    coefficient[2] = coefficient[0] + coefficient[1]
    coefficient[3] = 0
    if kind == WARD:
        coefficient[3] = height
    elif kind == CENTROID:
        coefficient[3] = coefficient[0] * coefficient[1] * height / coefficient[2]
    row = table.D[table.row[target]]
    _merged_row(kind, table.D[table.row[source]], row, coefficient, size, table.count[COLUMNS])
    row[target] = np.inf
    row[source] = np.inf
    size[target] += size[source]
    size[source] = 0
    table.target[now], table.source[now] = target, source
    table.count[LOGGED] = table.n_applied[target] = now + 1
    table.count[ACTIVE] -= 1
    table.unused[table.count[UNUSED]] = table.row[source]
    table.count[UNUSED] += 1
    return target


@jit
def compact(table, kind, moved):
    """Move the active columns together, if enough are inactive; return whether this was done.

    moved (n,) gets the new index of each column, -1 for inactive ones.
    """
    D, columns, n_active = table.D, table.count[COLUMNS], table.count[ACTIVE]
    if columns <= FEW or n_active > MIN_ACTIVE * columns:
        return False
    first = 0
    for move in range(table.count[MOVES]):
        first += table.moves[move, 1]
    active, k = table.moved_columns[first : first + n_active], 0
    for j in range(columns):
        moved[j] = -1
        if table.size[j] > 0:
            active[k], moved[j] = j, k
            k += 1
    width = tile_width(D.itemsize)
    padded = (n_active + width - 1) // width * width  # less than `columns`
    for k in range(n_active):
        j = active[k]
        if table.row[j] >= 0:
            update_row(table, j, kind)
            row = D[table.row[j]]
            for i in range(n_active):
                row[i] = row[active[i]]
            for i in range(n_active, padded):
                row[i] = np.inf
    for k in range(n_active):
        j = active[k]
        table.row[k], table.leaf[k], table.size[k] = table.row[j], table.leaf[j], table.size[j]
        table.n_applied[k] = table.n_applied[j]
    for k in range(n_active, padded):
        table.size[k] = 0
    table.moves[table.count[MOVES], 0], table.moves[table.count[MOVES], 1] = table.count[LOGGED], n_active
    table.count[MOVES] += 1
    table.count[COLUMNS], table.count[FIRST] = padded, 0
    return True
