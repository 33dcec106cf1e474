"""Responsibilities from log densities, with rows in the lanes; for the definition see `plain.posteriors`."""

from typing import NamedTuple

import numpy as np

from coterie.kernels.cpu import read_only, thread_workspace
from coterie.kernels.cpu.gaussian import E_STEPS, SOFT, choose, log_likelihood
from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.simd import arena, fill_weights, points
from coterie.kernels.cpu.soft_simd import posterior
from coterie.kernels.plain import Weights, weights

BLOCK_BYTES = 1 << 17  # size of the log densities of a block, which stays in the cache


class Layout(NamedTuple):
    """Sizes, and the start of each array in the buffer, with the names that `soft_simd.posterior` uses."""

    k: int
    rows: int  # of a tile
    block: int  # rows of all tiles
    w: int  # (block,) weights
    squares: int  # (k, block) scores
    resp: int  # (k, block) posteriors times w
    log_max: int  # (block,) maximum of log p(x, z); log p(x) is log_max + log(total)
    total: int  # (block,)
    offset: int  # (k,) log p(x, z) is offset + scale * score
    scale: int  # (k,)


class Workspace:
    """Arrays of a pass, for k components."""

    def __init__(self, k: int):
        rows = points(8)
        block = max(1, BLOCK_BYTES // (8 * k * rows)) * rows
        sizes = {"w": block, "squares": k * block, "resp": k * block, "log_max": block, "total": block}
        self.buffer, start, arrays = arena({**sizes, "offset": k, "scale": k}, np.empty(0))
        self.layout, self.offset = Layout(k, rows, block, **start), arrays["offset"]
        arrays["scale"][:] = 1.0


def posteriors(
    scores: np.ndarray,
    offset: np.ndarray,
    w: Weights,
    e_step: str = "soft",
    known: np.ndarray | None = None,
    u: np.ndarray | None = None,
) -> tuple[np.ndarray, float, float]:
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    workspace = thread_workspace("posteriors", Workspace, (len(offset),))
    workspace.offset[:] = offset
    labels = np.empty(0, np.int32) if known is None else known.astype(np.int32, copy=False)
    logs = write_posteriors(
        scores, read_only(weights(w)), E_STEPS[e_step], read_only(labels), read_only(np.empty(0) if u is None else u),
        workspace.layout, workspace.buffer,
    )  # fmt: skip
    return scores, *logs


@jit
def write_posteriors(
    scores,  # i/o (n, k) log densities; then w r
    w,  # in  (n,), or (1,) if all weights are equal
    e_step,  # in  number of the E-step
    known,  # in  (n,) known components, -1 if unknown; or (0,)
    u,  # in  (n,) uniform numbers, or (0,)
    s,  # in  Layout
    buffer,  # i/o buffer of a Workspace
):
    """Replace scores by w r; return log-likelihood and bound."""
    likelihood, bound = 0.0, 0.0
    is_hard = e_step != SOFT or known.shape[0] > 0
    for i0 in range(0, scores.shape[0], s.block):
        count = min(s.block, scores.shape[0] - i0)
        for p in range(count):
            for j in range(s.k):
                buffer[s.squares + j * s.block + p] = scores[i0 + p, j]
        fill_weights(w, i0, count, buffer[s.w : s.w + s.block])
        for t in range((count + s.rows - 1) // s.rows):
            posterior(buffer, s, t * s.rows)
        if is_hard:
            bound += choose(w, i0, count, e_step, known, u, s, buffer)
        likelihood += log_likelihood(w, i0, count, s, buffer)
        for p in range(count):
            for j in range(s.k):
                scores[i0 + p, j] = buffer[s.resp + j * s.block + p]
    return likelihood, bound if e_step != SOFT else likelihood
