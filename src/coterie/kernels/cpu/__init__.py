"""Compiled kernels for dense rows; the same names as `plain`, which says what each means."""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from coterie.kernels import plain
from coterie.kernels.cpu import components, exact, gaussian, hard, rows, seeding
from coterie.kernels.cpu import fuzzy as fuzzy_rows
from coterie.kernels.cpu.vectors import REGISTER
from coterie.kernels.plain import FuzzySums, Gaussians, SoftSums, Sums, Weights, take, weighted_sums, weights

_NOTHING = np.empty(0, np.uint8)

__all__ = [
    "distances", "draw", "em", "fuzzy", "lloyd", "log_joint", "memberships", "moments", "nearest", "own_squares",
    "spread", "take", "weighted_sums",
]  # fmt: skip


def lloyd(
    X: np.ndarray, w: Weights, centers: np.ndarray, before: np.ndarray, labels: np.ndarray, lower: np.ndarray
) -> Sums:
    room = _room(centers, X.dtype)
    *sums, moved, _ = hard.lloyd(_read(X), weights(w), _read(centers), _read(before), labels, lower, room)
    if np.isfinite(sums[2]).all():
        return Sums(*sums, int(moved))
    return _lloyd_in_float64(X, w, centers, labels)._replace(moved=int(moved))


def nearest(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    labels = np.empty(len(X), np.int32)
    hard.nearest(_read(X), _read(centers), labels, _room(centers, X.dtype))
    return labels


def own_squares(X: np.ndarray, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    out = np.empty(len(X))
    rows.own_squares(_read(X), _read(centers), labels, _inverse(X, centers), out)
    return out


def distances(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    out = np.empty((len(X), len(centers)), X.dtype)
    rows.distances(_read(X), _read(centers), _inverse(X, centers), out)
    return out


def fuzzy(X: np.ndarray, w: Weights, centers: np.ndarray, m: float) -> FuzzySums:
    low, high = fuzzy_rows.RANGE[X.itemsize]
    if low <= m <= high:
        room, inverse = _fuzzy_room(centers, X.dtype), _inverse(X, centers)
        room.put(centers, inverse)
        weight = np.empty(len(centers))
        cost, enough = fuzzy_rows.fuzzy(
            _read(X), _read(weights(w)), _read(centers), inverse, float(m), fuzzy_rows.TINY[X.itemsize],
            room.layout, room.numbers, room.rows, room.norm, room.origin, weight, room.sums,
        )  # fmt: skip
        if enough and all(np.isfinite(part).all() for part in (weight, room.sums, cost)):
            k, d = centers.shape
            return FuzzySums(weight, room.sums[:k, :d] / inverse, cost / inverse**2)
    if X.dtype != np.float64:
        return fuzzy(X.astype(np.float64), w, centers.astype(np.float64), m)
    parts = [plain.fuzzy(X[block], None if w is None else w[block], centers, m) for block in blocks(X)]
    return FuzzySums(*(functools.reduce(operator.add, field) for field in zip(*parts, strict=True)))


def memberships(X: np.ndarray, centers: np.ndarray, m: float) -> np.ndarray:
    out = np.empty((len(X), len(centers)), X.dtype)
    for block in blocks(X):
        out[block] = plain.memberships(X[block], centers, m)
    return out


def moments(X: np.ndarray, w: Weights, pivot: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    sum_x, sum_xx = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    return rows.moments(_read(X), weights(w), pivot, sum_x, sum_xx), sum_x, sum_xx


def spread(X: np.ndarray, w: Weights, unit: float, points: np.ndarray, closest: np.ndarray) -> np.ndarray:
    return seeding.spread(_read(X), weights(w), 1.0 / unit, _read(points), closest)


def draw(closest: np.ndarray, w: Weights, u: np.ndarray) -> tuple[float, np.ndarray]:
    drawn = np.empty(len(u), np.int64)
    return seeding.draw(closest, weights(w), u, drawn), drawn


def em(
    X: np.ndarray,
    w: Weights,
    g: Gaussians,
    e_step: str = "soft",
    known: np.ndarray | None = None,
    u: np.ndarray | None = None,
) -> SoftSums:
    room = _gaussian_room(g, X.dtype)
    center, unit = components.pack(g, room)
    weight = np.empty(len(center))
    told = np.empty(0, np.int32) if known is None else known.astype(np.int32, copy=False)
    logs = gaussian.em(
        _read(X), _read(weights(w)), 1.0 / unit, room.origin, gaussian.E_STEPS[e_step], _read(told),
        _read(np.empty(0) if u is None else u), room.layout, room.numbers, room.rows, room.picked, room.norm,
        weight, room.sums,
    )  # fmt: skip
    if all(np.isfinite(part).all() for part in (room.sums, weight, logs)):
        sum_dx, sum_dxx = components.unpack(room, weight, center, unit)
        if not components.cancelled(room, sum_dxx, unit):
            return SoftSums(weight, sum_dx, sum_dxx, *logs)
    return in_blocks(_em_in_float64, X, w, g, e_step, known, u)


def log_joint(X: np.ndarray, g: Gaussians) -> np.ndarray:
    room = _gaussian_room(g, X.dtype)
    _, unit = components.pack(g, room)
    out = np.empty((len(X), len(g.means)), X.dtype)
    at = (room.origin, room.layout, room.numbers, room.rows, room.norm)
    finite = gaussian.log_joint(_read(X), 1.0 / unit, *at, out)
    if finite:
        return out
    with np.errstate(over="ignore"):  # to minus infinity, where the data's type has no such number
        return plain.log_joint(X, g)


def _read(X: np.ndarray) -> np.ndarray:
    """`X` as a read-only view: writable and read-only arrays are different types to the compiler, one is enough."""
    view = X.view(np.ndarray)
    view.setflags(write=False)
    return view


_kept = threading.local()


def _room(centers: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Room to work in, kept by each thread: fresh pages for every chunk would cost as much as the chunk."""
    size = hard.room_for(*centers.shape, dtype.itemsize) * dtype.itemsize
    if getattr(_kept, "bytes", _NOTHING).size < size + REGISTER:
        _kept.bytes = np.empty(size + REGISTER, np.uint8)
    start = -_kept.bytes.ctypes.data % REGISTER
    return _kept.bytes[start : start + size].view(dtype)


def _gaussian_room(g: Gaussians, dtype: np.dtype) -> components.Room:
    return _kept_room("gaussian", components.Room, (g.form, *g.means.shape, dtype))


def _fuzzy_room(centers: np.ndarray, dtype: np.dtype) -> fuzzy_rows.Room:
    return _kept_room("fuzzy", fuzzy_rows.Room, (*centers.shape, dtype))


def _kept_room(name: str, make: Callable[..., Any], shape: tuple[Any, ...]) -> Any:
    """The room of this thread; shape and room are replaced in one step, so that an interrupt cannot part them."""
    kept = getattr(_kept, name, None)
    if kept is None or kept[0] != shape:
        kept = (shape, make(*shape))
        setattr(_kept, name, kept)
    return kept[1]


def _inverse(X: np.ndarray, centers: np.ndarray) -> float:
    return 1.0 / exact.frame(_read(X), _read(centers), np.empty(X.shape[1], X.dtype))


def _lloyd_in_float64(X: np.ndarray, w: Weights, centers: np.ndarray, labels: np.ndarray) -> Sums:
    """The same sums where one row lies so far out that its square overflows the data's precision."""
    total = [np.zeros(len(centers)), np.zeros(centers.shape), np.zeros(len(centers)), 0]
    for start in range(0, len(X), 1024):
        part = slice(start, start + 1024)
        sums = plain.lloyd(X[part], None if w is None else w[part], centers, centers, labels[part], labels[:0])
        total = [a + b for a, b in zip(total, sums, strict=True)]
    return Sums(*total)


def _em_in_float64(X: np.ndarray, *rest: Any) -> SoftSums:
    """The same where the data's precision is not enough."""
    return plain.em(X, *rest) if X.dtype == np.float64 else em(X.astype(np.float64), *rest)


def in_blocks(
    em: Callable[..., SoftSums],
    X: Any,
    w: Weights,
    g: Gaussians,
    e_step: str,
    known: np.ndarray | None,
    u: np.ndarray | None,
) -> SoftSums:
    """`em` of a few thousand rows at a time."""
    parts = ([None if a is None else a[block] for a in (X, w, known, u)] for block in blocks(X))
    return total(em(X, w, g, e_step, known, u) for X, w, known, u in parts)


def blocks(X: Any) -> list[slice]:
    return [slice(start, start + 4096) for start in range(0, max(1, X.shape[0]), 4096)]


def total(parts: Iterable[SoftSums]) -> SoftSums:
    """Sums over parts of the rows, added up."""
    return SoftSums(*(functools.reduce(operator.add, field) for field in zip(*parts, strict=True)))
