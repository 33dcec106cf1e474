"""Compiled kernels for dense rows; `plain` has the same functions, with docstrings."""

import functools
import operator
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from coterie.kernels import plain
from coterie.kernels.cpu import (
    column_moments,
    d2_sampling,
    exact_distance,
    few_columns,
    gaussian,
    gaussian_layout,
    hard_assignment,
    low_precision,
)
from coterie.kernels.cpu import fuzzy as fuzzy_kernels
from coterie.kernels.cpu.simd import aligned
from coterie.kernels.cpu.vectors import REGISTER
from coterie.kernels.plain import Arrivals, FuzzySums, Gaussians, SoftSums, Sums, Weights, take, weighted_sums, weights

__all__ = [
    "arrivals", "assigned_squares", "distances", "draw", "em", "fuzzy", "lloyd", "log_joint", "memberships", "moments",
    "nearest", "plusplus_rounds", "potentials", "take", "weighted_sums",
]  # fmt: skip


TILES_FROM = 8  # number of rounds from which a copy of the rows in tiles pays off
TILES_BYTES = 1 << 25  # maximum size of rows that are copied


def lloyd(
    X: np.ndarray, w: Weights, centers: np.ndarray, previous: np.ndarray, labels: np.ndarray, lower: np.ndarray
) -> Sums:
    buffer = thread_buffer(centers, X.dtype)
    if w is None and few_columns.applies(*centers.shape):
        *sums, moved = few_columns.sweep(read_only(X), read_only(centers), labels, True, buffer)
    else:
        *sums, moved, _ = hard_assignment.lloyd(
            read_only(X), weights(w), read_only(centers), read_only(previous), labels, lower, buffer,
            _low_precision(X, centers),
        )  # fmt: skip
    if np.isfinite(sums[2]).all():
        return Sums(*sums, int(moved))
    return _lloyd_in_float64(X, w, centers, labels)._replace(moved=int(moved))


def nearest(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    labels, buffer = np.empty(len(X), np.int32), thread_buffer(centers, X.dtype)
    if few_columns.applies(*centers.shape):
        few_columns.sweep(read_only(X), read_only(centers), labels, False, buffer)
    else:
        hard_assignment.nearest(read_only(X), read_only(centers), labels, buffer, _low_precision(X, centers))
    return labels


def assigned_squares(X: np.ndarray, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    out = np.empty(len(X))
    exact_distance.assigned_squares(read_only(X), read_only(centers), labels, _inverse_unit(X, centers), out)
    return out


def distances(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    out = np.empty((len(X), len(centers)), X.dtype)
    exact_distance.distances(read_only(X), read_only(centers), _inverse_unit(X, centers), out)
    return out


def fuzzy(X: np.ndarray, w: Weights, centers: np.ndarray, m: float) -> FuzzySums:
    low, high = fuzzy_kernels.RANGE[X.itemsize]
    if low <= m <= high:
        work = thread_workspace("fuzzy", fuzzy_kernels.Workspace, (*centers.shape, X.dtype))
        inverse = _inverse_unit(X, centers)
        work.store_centers(centers, inverse)
        weight = np.empty(len(centers))
        cost, is_accurate = fuzzy_kernels.fuzzy(
            read_only(X), read_only(weights(w)), read_only(centers), inverse, float(m), fuzzy_kernels.TINY[X.itemsize],
            work.layout, work.buffer, work.rows, work.norm, work.origin, weight, work.sums,
        )  # fmt: skip
        if is_accurate and all(np.isfinite(part).all() for part in (weight, work.sums, cost)):
            k, d = centers.shape
            return FuzzySums(weight, work.sums[:k, :d] / inverse, cost / inverse**2)
    if X.dtype != np.float64:
        return fuzzy(X.astype(np.float64), w, centers.astype(np.float64), m)
    parts = [plain.fuzzy(X[block], None if w is None else w[block], centers, m) for block in blocks(X)]
    return FuzzySums(*add_fields(parts))


def memberships(X: np.ndarray, centers: np.ndarray, m: float) -> np.ndarray:
    out = np.empty((len(X), len(centers)), X.dtype)
    for block in blocks(X):
        out[block] = plain.memberships(X[block], centers, m)
    return out


def moments(X: np.ndarray, w: Weights, pivot: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    sum_x, sum_xx = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    return column_moments.moments(read_only(X), weights(w), pivot, sum_x, sum_xx), sum_x, sum_xx


def potentials(X: np.ndarray, w: Weights, unit: float, points: np.ndarray, closest: np.ndarray) -> np.ndarray:
    no_tiles = np.empty(0, X.dtype)
    return d2_sampling.potentials(read_only(X), weights(w), 1.0 / unit, read_only(points), closest, no_tiles, False)


def draw(closest: np.ndarray, w: Weights, u: np.ndarray) -> tuple[float, np.ndarray]:
    rows = np.empty(len(u), np.int64)
    return d2_sampling.draw(closest, weights(w), u, rows), rows


def arrivals(closest: np.ndarray, w: Weights, seed: int, first: int, expected: float) -> Arrivals:
    rows, time = np.empty(len(closest), np.int64), np.empty(len(closest))
    seed, first = np.uint64(seed), np.uint64(first)
    total, count = d2_sampling.arrivals(closest, weights(w), seed, first, float(expected), rows, time)
    return total, rows[:count].copy(), time[:count].copy()


class Rounds:
    """The state of one greedy k-means++ initialisation."""

    def __init__(self, X: np.ndarray, w: Weights, k: int, size: int, unit: float) -> None:
        self.X, self.w, self.unit = X, w, unit
        tiles = d2_sampling.tiles_size(*X.shape, X.itemsize) if k >= TILES_FROM and X.nbytes <= TILES_BYTES else 0
        self.tiles, self.points = aligned(tiles, X), np.empty((1 + size, X.shape[1]), X.dtype)
        self.closest, self.state = np.full(len(X), np.inf, X.dtype), np.zeros(4, np.int64)
        self.candidates, self.centers = np.zeros(size, np.int64), np.zeros(k, np.int64)

    def add(self, center: np.ndarray) -> None:
        potentials(self.X, self.w, self.unit, center[None], self.closest)

    def start(self, center: np.ndarray) -> None:
        self.points[0] = center

    def run(self, u: np.ndarray) -> None:
        d2_sampling.rounds(
            read_only(self.X), weights(self.w), 1.0 / self.unit, u, self.points, self.candidates, self.closest,
            self.tiles, self.centers, self.state,
        )  # fmt: skip

    def progress(self) -> tuple[int, bool]:
        return int(self.state[0]), bool(self.state[2])

    def rows(self, count: int) -> np.ndarray:
        return self.centers[:count]


def plusplus_rounds(X: np.ndarray, w: Weights, k: int, size: int, unit: float, fixed: Any) -> Rounds:
    return Rounds(X, w, k, size, unit)


def em(
    X: np.ndarray,
    w: Weights,
    g: Gaussians,
    e_step: str = "soft",
    known: np.ndarray | None = None,
    u: np.ndarray | None = None,
) -> SoftSums:
    work = thread_workspace("gaussian", gaussian_layout.Workspace, (g.form, *g.means.shape, X.dtype))
    center, unit = gaussian_layout.pack(g, work)
    labels = np.empty(0, np.int32) if known is None else known.astype(np.int32, copy=False)
    logs = gaussian.em(
        read_only(X), read_only(weights(w)), 1.0 / unit, gaussian.E_STEPS[e_step], read_only(labels),
        read_only(np.empty(0) if u is None else u), work.layout, work.arrays,
    )  # fmt: skip
    weight = work.arrays.weight.copy()
    if all(np.isfinite(part).all() for part in (work.arrays.sums, weight, logs)):
        sum_dx, sum_dxx = gaussian_layout.unpack(work, weight, center, unit)
        if not gaussian_layout.has_cancelled(work, sum_dxx, unit):
            return SoftSums(weight, sum_dx, sum_dxx, *logs)
    parts = ([None if values is None else values[block] for values in (X, w, known, u)] for block in blocks(X))
    return SoftSums(*add_fields(_em_in_float64(X, w, g, e_step, known, u) for X, w, known, u in parts))


def log_joint(X: np.ndarray, g: Gaussians) -> np.ndarray:
    work = thread_workspace("gaussian", gaussian_layout.Workspace, (g.form, *g.means.shape, X.dtype))
    _, unit = gaussian_layout.pack(g, work)
    out = np.empty((len(X), len(g.means)), X.dtype)
    is_finite = gaussian.log_joint(read_only(X), 1.0 / unit, work.layout, work.arrays, out)
    return out if is_finite else plain.log_joint(X, g)


def read_only(X: np.ndarray) -> np.ndarray:
    """A read-only view: kernels are compiled once for writable and read-only arrays, which have different types."""
    view = X.view(np.ndarray)
    view.setflags(write=False)
    return view


_thread = threading.local()


def thread_buffer(centers: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Buffer of `hard_assignment` of this thread, which is reused: allocating it would take as long as a chunk."""
    size = hard_assignment.buffer_size(*centers.shape, dtype.itemsize) * dtype.itemsize
    if not hasattr(_thread, "bytes") or _thread.bytes.size < size + REGISTER:
        _thread.bytes = np.empty(size + REGISTER, np.uint8)
    start = -_thread.bytes.ctypes.data % REGISTER
    return _thread.bytes[start : start + size].view(dtype)


def _low_precision(X: np.ndarray, centers: np.ndarray) -> low_precision.LowPrecision | None:
    """Work space of this thread for integer scores; None if they are not faster."""
    if not low_precision.is_useful(*X.shape, len(centers), X.dtype):
        return None
    return thread_workspace("low_precision", low_precision.workspace, centers.shape)


def thread_workspace(name: str, workspace: Callable[..., Any], shape: tuple[Any, ...]) -> Any:
    """``workspace(*shape)`` of this thread, which is reused while `shape` is the same.

    Shape and workspace are replaced in one step, so that they match also after an interrupt.
    """
    entry = getattr(_thread, name, None)
    if entry is None or entry[0] != shape:
        entry = (shape, workspace(*shape))
        setattr(_thread, name, entry)
    return entry[1]


def _inverse_unit(X: np.ndarray, centers: np.ndarray) -> float:
    return 1.0 / exact_distance.choose_unit(read_only(X), read_only(centers), np.empty(X.shape[1], X.dtype))


def _lloyd_in_float64(X: np.ndarray, w: Weights, centers: np.ndarray, labels: np.ndarray) -> Sums:
    """The same sums if the square of an outlier overflows the dtype of the data."""
    return Sums(
        *add_fields(
            plain.lloyd(X[part], None if w is None else w[part], centers, centers, labels[part], labels[:0])
            for part in blocks(X, 1024)
        )
    )


def _em_in_float64(X: np.ndarray, *options: Any) -> SoftSums:
    """The same sums if the precision of the data is not sufficient."""
    return plain.em(X, *options) if X.dtype == np.float64 else em(X.astype(np.float64), *options)


def blocks(X: Any, size: int = 4096) -> list[slice]:
    """Blocks of rows, at least one."""
    return [slice(start, start + size) for start in range(0, max(1, X.shape[0]), size)]


def add_fields(parts: Iterable[Any]) -> list[Any]:
    """Sum of each field over parts of the rows."""
    return [functools.reduce(operator.add, field) for field in zip(*parts, strict=True)]
