"""Greedy k-means++ whose rounds need no answer of the host, with Triton.

A round adds the last center, evaluates the candidates, and samples rows in proportion to the costs without the new
center. These are accepted as in `seeding.plusplus`, and become the candidates of the next round. If too few are
accepted, that round has no candidates: it samples again, with the new center.
"""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from coterie.kernels.cuda.device_array import as_numpy
from coterie.kernels.cuda.seeding_pass import MAX_POINTS, ROWS, Layout, launch, scale_of, table_of

GROUP = 128  # blocks of rows whose sums are added first
CENTERS = tl.constexpr(0)  # places in the state: number of centers,
CANDIDATES = tl.constexpr(1)  # number of candidates of this round,
IS_DONE = tl.constexpr(2)  # whether no more rounds are needed,
BEST = tl.constexpr(3)  # the best candidate,
HAS_MASS = tl.constexpr(4)  # and whether a row has a positive cost
STATE = 5


@triton.jit
def add_blocks(
    sums,  # in   (blocks, 16)
    groups,  # out  (groups, 16) float64
    state,  # in   (5,)
    n_blocks,
    GROUP: tl.constexpr,
):
    if tl.load(state + IS_DONE) == 0:
        block = tl.program_id(0) * GROUP + tl.arange(0, GROUP)
        p = tl.arange(0, 16)
        mask = (block < n_blocks)[:, None] & (p >= 0)[None, :]
        part = tl.load(sums + block[:, None] * 16 + p[None, :], mask=mask, other=0.0).to(tl.float64)
        tl.store(groups + tl.program_id(0) * 16 + p, tl.sum(part, axis=0))


@triton.jit
def _find(mass, target, before, place):
    """The first index whose cumulative mass exceeds the target, and the mass before it; continues an earlier part."""
    cumulative = before + tl.cumsum(mass, axis=0)
    is_below = cumulative <= target
    return place + tl.sum(is_below.to(tl.int32), axis=0), tl.max(tl.where(is_below, cumulative, before), axis=0)


@triton.jit
def sample_rows(
    X,  # in   (n, D)
    weights,  # in   (n,) if HAS_WEIGHTS
    closest,  # in   (n,)
    sums,  # in   (blocks, 16)
    groups,  # in   (groups, 16) float64
    candidates,  # in   (16,) rows, from the second place on
    u,  # in   (2, draws) uniform numbers: for sampling, and for acceptance
    state,  # i/o  (5,)
    rows,  # out  (draws,)
    is_accepted,  # out  (draws,)
    n,
    n_blocks,
    n_groups,
    factor,
    D: tl.constexpr,
    BD: tl.constexpr,
    ROWS: tl.constexpr,
    GROUP: tl.constexpr,
    HAS_WEIGHTS: tl.constexpr,
):
    """One row for each program: sampled by the costs before the best candidate is added, accepted by those after."""
    if tl.load(state + IS_DONE) == 0:
        i = tl.program_id(0)
        m = tl.load(state + CANDIDATES)
        p = tl.arange(0, 16)
        g = tl.arange(0, GROUP)
        potential = tl.zeros([16], tl.float64)
        for start in range(0, n_groups, GROUP):
            mask = (start + g < n_groups)[:, None] & (p >= 0)[None, :]
            potential += tl.sum(tl.load(groups + (start + g)[:, None] * 16 + p[None, :], mask=mask, other=0.0), axis=0)
        total = tl.sum(tl.where(p == 0, potential, 0.0), axis=0)
        is_candidate = (p > 0) & (p <= m)
        lowest = tl.min(tl.where(is_candidate, potential, float("inf")), axis=0)
        best = tl.min(tl.where(is_candidate & (potential == lowest), p, 16), axis=0)
        if i == 0:
            tl.store(state + BEST, best)
            tl.store(state + HAS_MASS, (total > 0).to(tl.int32))
        target = tl.load(u + i) * total
        group = tl.full([], 0, tl.int32)
        before = tl.full([], 0.0, tl.float64)
        for start in range(0, n_groups, GROUP):
            mass = tl.load(groups + (start + g) * 16, mask=start + g < n_groups, other=0.0)
            if group == start:  # all groups so far are below the target
                place, before = _find(mass, target, before, group)
                group = place.to(tl.int32)
        group = tl.minimum(group, n_groups - 1)
        first = group * GROUP
        mass = tl.load(sums + (first + g) * 16, mask=first + g < n_blocks, other=0.0).to(tl.float64)
        place, before = _find(mass, target, before, 0)
        block = first + tl.minimum(place, tl.max(tl.where(mass > 0, g, 0), axis=0))
        index = tl.arange(0, ROWS)
        row = block.to(tl.int64) * ROWS + index
        mass = tl.load(closest + row, mask=row < n, other=0.0).to(tl.float64)
        if HAS_WEIGHTS:
            mass *= tl.load(weights + row, mask=row < n, other=0.0).to(tl.float64)
        place, before = _find(mass, target, before, 0)
        place = tl.minimum(place, tl.max(tl.where(mass > 0, index, 0), axis=0))
        row = block.to(tl.int64) * ROWS + place
        cost = tl.load(closest + row)
        square = tl.full([], 0.0, tl.float32)
        center = tl.load(candidates + best, mask=m > 0, other=0)
        for start in range(0, D, BD):
            d = start + tl.arange(0, BD)
            x = tl.load(X + row * D + d, mask=d < D, other=0.0).to(tl.float32)
            e = x - tl.load(X + center * D + d, mask=d < D, other=0.0).to(tl.float32)
            square += tl.sum(e * e, axis=0)
        after = tl.where(m > 0, tl.minimum(cost, square * factor), cost).to(tl.float64)
        accepted = (cost > 0) & (tl.load(u + tl.num_programs(0) + i) * cost < after)
        tl.store(rows + i, row)
        tl.store(is_accepted + i, accepted.to(tl.int32))


@triton.jit
def next_candidates(
    X,  # in   (n, D)
    table,  # i/o  (18, DS) of `add_point`
    candidates,  # i/o  (16,) rows, from the second place on
    state,  # i/o  (5,)
    centers,  # i/o  (k,) rows
    rows,  # in   (draws,)
    is_accepted,  # in   (draws,)
    k,
    size,  # largest number of candidates
    draws,
    scale,
    D: tl.constexpr,
    DS: tl.constexpr,
    BD: tl.constexpr,
    BC: tl.constexpr,
):
    """The best candidate becomes a center, and the first accepted rows become the candidates of the next round."""
    if tl.load(state + IS_DONE) == 0:
        m = tl.load(state + CANDIDATES)
        best = tl.load(state + BEST)
        has_mass = tl.load(state + HAS_MASS) > 0
        n_centers = tl.load(state + CENTERS)
        is_new = (m > 0) & has_mass
        center = tl.load(candidates + best, mask=is_new, other=0)
        tl.store(centers + n_centers, center, mask=is_new)
        n_centers += is_new.to(tl.int32)
        i = tl.arange(0, BC)
        accepted = tl.load(is_accepted + i, mask=i < draws, other=0)
        order = tl.cumsum(accepted, axis=0)
        n_accepted = tl.minimum(tl.sum(accepted, axis=0), size)
        count = tl.where((n_accepted == size) | (m == 0), n_accepted, 0)
        p = tl.arange(0, 16)
        is_candidate = (p > 0) & (p <= count)
        is_here = (accepted > 0)[None, :] & (order[None, :] == p[:, None])
        row = tl.sum(tl.where(is_here, tl.load(rows + i, mask=i < draws, other=0)[None, :], 0), axis=1)
        square = tl.zeros([16], tl.float64)
        for start in range(0, DS, BD):
            d = start + tl.arange(0, BD)
            origin = tl.load(table + 17 * DS + d)
            origin = tl.where(is_new, tl.load(X + center * D + d, mask=d < D, other=0.0).to(tl.float32), origin)
            mask = is_candidate[:, None] & (d < D)[None, :]
            x = tl.load(X + row[:, None] * D + d[None, :], mask=mask, other=0.0).to(tl.float64)
            e = tl.where(mask, x - origin.to(tl.float64)[None, :], 0.0)
            square += tl.sum(e * e, axis=1)
            tl.store(table + p[:, None] * DS + d[None, :], (e * scale).to(tl.float32))
            tl.store(table + 17 * DS + d, origin)
        tl.store(table + 16 * DS + p, square.to(tl.float32))
        is_done = (n_centers >= k) | ~has_mass | ((m == 0) & (count == 0))
        tl.debug_barrier()  # all warps have read the state
        tl.store(candidates + p, row, mask=is_candidate)
        tl.store(state + CENTERS, n_centers)
        tl.store(state + CANDIDATES, count)
        tl.store(state + IS_DONE, is_done.to(tl.int32))


class Rounds:
    """The state of one initialisation, on the device: costs of the rows, the last center, and candidates."""

    def __init__(self, X: torch.Tensor, w: torch.Tensor | None, k: int, size: int, unit: float, extent: float) -> None:
        """`extent` is a bound of the differences between rows and centers; `size` the number of candidates."""
        self.X, self.w, self.k, self.size, self.factor = X, w, k, size, 1.0 / unit**2
        self.scale, n, device = scale_of(extent), len(X), X.device
        self.closest = torch.full((n,), float("inf"), device=device)
        self.table = torch.empty(MAX_POINTS + 2, Layout.of(X.shape[1]).width, device=device)
        self.sums = torch.empty(triton.cdiv(n, ROWS), MAX_POINTS, device=device)
        self.groups = torch.empty(triton.cdiv(len(self.sums), GROUP), 16, dtype=torch.float64, device=device)
        self.state = torch.zeros(STATE, dtype=torch.int32, device=device)
        self.candidates, self.centers = (torch.zeros(m, dtype=torch.int64, device=device) for m in (MAX_POINTS, k))

    def add(self, center: np.ndarray) -> None:
        """Add a center (d,) that is given."""
        self.start(center)
        self._pass()

    def start(self, center: np.ndarray) -> None:
        """The next round adds this center (d,), and has no candidates."""
        self.table.copy_(torch.from_numpy(table_of(center[None], self.scale)))

    def run(self, u: np.ndarray) -> None:
        """Run rounds with uniform numbers `u` (rounds, 2, draws); after the last center they do nothing."""
        (n, d), draws = self.X.shape, u.shape[2]
        weights = self.X if self.w is None else self.w
        rows = torch.empty(draws, dtype=torch.int64, device=self.X.device)
        is_accepted = torch.empty(draws, dtype=torch.int32, device=self.X.device)
        width = self.table.shape[1]
        block = min(width, 64)
        for numbers in torch.from_numpy(u).to(self.X.device):
            self._pass()
            add_blocks[(len(self.groups),)](self.sums, self.groups, self.state, len(self.sums), GROUP, num_warps=4)
            sample_rows[(draws,)](
                self.X, weights, self.closest, self.sums, self.groups, self.candidates, numbers, self.state, rows,
                is_accepted, n, len(self.sums), len(self.groups), self.factor, d, block, ROWS, GROUP,
                self.w is not None, num_warps=4,
            )  # fmt: skip
            next_candidates[(1,)](
                self.X, self.table, self.candidates, self.state, self.centers, rows, is_accepted, self.k, self.size,
                draws, self.scale, d, width, block, triton.next_power_of_2(draws), num_warps=4,
            )  # fmt: skip

    def _pass(self) -> None:
        launch(
            self.X, self.w, self.table, self.closest, self.sums, self.state[IS_DONE.value :], self.scale, self.factor
        )

    def rows(self, count: int) -> np.ndarray:
        """Rows of the first centers that were found."""
        return as_numpy(self.centers[:count])

    def progress(self) -> tuple[int, bool]:
        """The number of centers that were found, and whether no more can be found or are needed."""
        n_centers, _, is_done, *_ = self.state.tolist()
        return n_centers, bool(is_done)
