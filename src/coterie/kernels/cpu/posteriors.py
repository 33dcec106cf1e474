"""What an E-step makes of log densities, with rows in the lanes; `plain.posteriors` says what that is."""

from __future__ import annotations

import threading
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from coterie.kernels.cpu.gaussian import E_STEPS, SOFT, choose, log_likelihood, put_weights
from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.simd import aligned, padded, points
from coterie.kernels.cpu.soft import posterior
from coterie.kernels.plain import Weights, weights

BLOCK_BYTES = 1 << 17  # log joints of a block stay in the cache until they are shares


class Layout(NamedTuple):
    """Sizes, and where in the room things begin; the names are those that `soft.posterior` looks for."""

    k: int
    rows: int  # of a tile
    block: int  # rows of all tiles
    w: int  # (block,) weights
    squares: int  # (k, block) scores
    resp: int  # (k, block) posterior times w
    most: int  # (block,) with `total`: log-likelihoods
    total: int  # (block,)
    offset: int  # (k,) a log joint is offset + scale * score
    scale: int  # (k,)


class Room:
    """Room to work in, for k components."""

    def __init__(self, k: int):
        rows = points(8)
        block = max(1, BLOCK_BYTES // (8 * k * rows)) * rows
        sizes = [block, k * block, k * block, block, block, k, k]
        *starts, size = accumulate((padded(size, 8) for size in sizes), initial=0)
        self.layout = Layout(k, rows, block, *starts)
        self.numbers = aligned(size, np.empty(0))
        self.numbers[:] = 0.0
        self.numbers[self.layout.scale : self.layout.scale + k] = 1.0


def posteriors(
    scores: np.ndarray,
    offset: np.ndarray,
    w: Weights,
    e_step: str = "soft",
    known: np.ndarray | None = None,
    u: np.ndarray | None = None,
) -> tuple[np.ndarray, float, float]:
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    room = _room(len(offset))
    at = room.layout.offset
    room.numbers[at : at + len(offset)] = offset
    told = np.empty(0, np.int32) if known is None else known.astype(np.int32, copy=False)
    logs = share_out(
        scores, _read(weights(w)), E_STEPS[e_step], _read(told), _read(np.empty(0) if u is None else u), room.layout,
        room.numbers,
    )  # fmt: skip
    return scores, *logs


@jit
def share_out(
    scores,  # i/o (n, k) log densities; then w r
    w,  # in  (n,), or (1,) for one weight for all
    e_step,  # in  number of the E-step
    known,  # in  (n,) components, -1 where unknown, or (0,)
    u,  # in  (n,) uniform numbers, or (0,)
    s,  # in  Layout
    room,  # i/o numbers of a Room
):
    """Log-likelihood and bound."""
    likelihood, bound = 0.0, 0.0
    choosing = e_step != SOFT or known.shape[0] > 0
    for i0 in range(0, scores.shape[0], s.block):
        count = min(s.block, scores.shape[0] - i0)
        for p in range(count):
            for j in range(s.k):
                room[s.squares + j * s.block + p] = scores[i0 + p, j]
        put_weights(w, i0, count, s, room)
        for t in range((count + s.rows - 1) // s.rows):
            posterior(room, s, t * s.rows)
        if choosing:
            bound += choose(w, i0, count, e_step, known, u, s, room)
        likelihood += log_likelihood(w, i0, count, s, room)
        for p in range(count):
            for j in range(s.k):
                scores[i0 + p, j] = room[s.resp + j * s.block + p]
    return likelihood, bound if e_step != SOFT else likelihood


_kept = threading.local()


def _room(k: int) -> Room:
    """Kept by each thread: fresh pages for every block would cost as much as the block."""
    if getattr(_kept, "k", None) != k:
        _kept.k, _kept.room = k, Room(k)
    return _kept.room


def _read(values: np.ndarray) -> np.ndarray:
    """A read-only view: writable and read-only arrays are different types to the compiler, one is enough."""
    view = values.view()
    view.setflags(write=False)
    return view
