"""Sums of clusters and passes of K-means on an NVIDIA GPU, with Triton."""

from __future__ import annotations

from threading import Lock
from typing import Any

import torch
import triton

from coterie.garbage import no_collection
from coterie.kernels.cuda.certified import CertifiedRows, exponent
from coterie.kernels.cuda.moved_sums import (
    add_moved,
    cluster_statistics,
    count_moved,
    move,
    plan_moved,
    sort_moved,
    sum_moved,
)

FEW_SUMS = 1 << 11  # number of padded sums up to which a program has all of them in registers
COPIES = 16
# Rows of a block of `add_moved`, and warps of its programs. With 128 and 4, Triton 3.6 uses other instructions (wgmma)
# for its products, and the kernel accessed invalid memory for 40 clusters of 24 columns.
ADD_ROWS, ADD_WARPS = 64, 2
CAPTURE = Lock()  # of one graph at a time, because garbage collection is off meanwhile


def sum_scale(rows: CertifiedRows) -> float:
    """The inverse unit of the integers that represent values of rows."""
    return float(2.0 ** (rows.bits - exponent(rows.extent)))


def columns_at_once(d: int) -> int:
    """Columns that kernels add at once in sums over columns.

    With one for each thread of a warp, and without fused additions, the order of additions is the same in every kernel.
    """
    return min(triton.next_power_of_2(d), 32 if d <= 128 else 512)


class MovedSums:
    """Sums of the rows of each cluster, in integers, for the labels of the last pass."""

    def __init__(self, rows: CertifiedRows, k: int) -> None:
        self.k = k
        self.tile = max(16, triton.next_power_of_2(k)), max(16, triton.next_power_of_2(rows.d))
        self.is_few = self.tile[0] * self.tile[1] <= FEW_SUMS
        self.scale = sum_scale(rows)
        copies = COPIES if self.is_few else 1
        self.sums = torch.zeros(copies, k, rows.d, dtype=torch.int64, device=rows.device)
        self.squares = torch.zeros(copies, k, dtype=torch.int64, device=rows.device)
        self.sizes = torch.zeros(copies, k, dtype=torch.int32, device=rows.device)
        self.moved_rows = rows.empty(0 if self.is_few else 2 * rows.n)

    def clear(self) -> None:
        for values in (self.sums, self.squares, self.sizes):
            values.zero_()

    def update(self, rows: CertifiedRows, previous: torch.Tensor) -> torch.Tensor:
        """Replace the labels `previous` (n,), -1 for rows that are in no sum, by those of the last scan.

        Returns the number of labels that changed.
        """
        return self._update_few(rows, previous) if self.is_few else self._update_many(rows, previous)

    def _update_few(self, rows: CertifiedRows, previous: torch.Tensor) -> torch.Tensor:
        """Rows that may have moved were listed by the scan."""
        moved = torch.zeros(1, dtype=torch.int32, device=rows.device)
        add_moved[(rows.processors * 8,)](
            rows.X, rows.pivot, rows.changed, rows.counts[3:], rows.labels, previous, rows.squares, self.sums,
            self.squares, self.sizes, moved, self.scale, self.k, rows.d, self.tile[1], self.tile[0], ADD_ROWS,
            COPIES, num_warps=ADD_WARPS,
        )  # fmt: skip
        return moved[0]

    def _update_many(self, rows: CertifiedRows, previous: torch.Tensor) -> torch.Tensor:
        """Rows that have moved are sorted by cluster first."""
        grid = (triton.cdiv(rows.n, 1024),)
        moves = torch.zeros(2, self.k, dtype=torch.int32, device=rows.device)
        count_moved[grid](rows.labels, previous, moves[0], moves[1], rows.n, 1024, num_warps=4)
        entries, ends, position = torch.empty(3, self.k, dtype=torch.int32, device=rows.device)
        moved = torch.empty(1, dtype=torch.int32, device=rows.device)
        plan_moved[(1,)](moves, self.sizes, entries, ends, position, moved, self.k, 1024, num_warps=4)
        sort_moved[grid](rows.labels, previous, position, self.moved_rows, rows.n, 1024, num_warps=4)
        block, shares = min(triton.next_power_of_2(rows.d), 128), max(16, 32768 // self.k)
        sum_moved[(self.k, shares, triton.cdiv(rows.d, block))](
            rows.X, rows.pivot, self.moved_rows, ends, entries, rows.squares, self.sums, self.squares, self.scale,
            rows.d, block, 1024 // block, shares, num_warps=1,
        )  # fmt: skip
        return moved[0]

    def statistics(
        self, rows: CertifiedRows, centers: torch.Tensor, changed: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums of x - c (k, d), and one vector of all numbers that the host needs, which is copied at once.

        These are sizes (k,), costs (k,), sums of squares (k,), `changed`, and whether centers are out of range.
        """
        sum_dx = torch.empty(self.k, rows.d, dtype=torch.float64, device=rows.device)
        host = torch.empty(3 * self.k + 2, dtype=torch.float64, device=rows.device)
        cluster_statistics[(self.k,)](
            self.sums, self.squares, self.sizes, rows.pivot, centers, changed, rows.out_of_range, sum_dx, host,
            1.0 / self.scale, 1.0 / rows.square_scale, self.k, rows.d, columns_at_once(rows.d), len(self.sums),
            num_warps=1 if rows.d <= 128 else 4, enable_fp_fusion=False,
        )  # fmt: skip
        return sum_dx, host


class LloydPass:
    """One pass of K-means over rows of equal weights. From the second pass on it is one CUDA graph."""

    def __init__(self, rows: CertifiedRows, k: int) -> None:
        self.k, self.sums = k, MovedSums(rows, k)
        self.centers = torch.empty(k, rows.d, device=rows.device)
        self.labels: torch.Tensor | None = None  # the labels that the sums belong to
        self.version = -1
        self.graph: Any = None
        self.results: tuple[torch.Tensor, torch.Tensor] | None = None

    def __call__(
        self, rows: CertifiedRows, centers: torch.Tensor, labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Update `labels` (n,); return the results of `MovedSums.statistics`.

        The sums belong to `labels` if it is the tensor of the last call and has not been changed since. Otherwise all
        rows are added again.
        """
        if self.centers.dtype != centers.dtype:
            self.centers, self.labels = torch.empty_like(centers), None
        self.centers.copy_(centers)
        if self.labels is not labels or self.version != labels._version:
            return self._first(rows, labels)
        if self.graph is None:
            self._capture(rows, labels)
        self.graph.replay()
        assert self.results is not None
        sum_dx, host = self.results
        return sum_dx.clone(), host

    def _first(self, rows: CertifiedRows, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before = labels.clone()
        labels.fill_(-1)
        rows.scan(self.centers, labels if self.sums.is_few else None)
        changed = (rows.labels != before).sum()
        self.sums.clear()
        self.sums.update(rows, labels)
        self.labels, self.version, self.graph = labels, labels._version, None
        return self.sums.statistics(rows, self.centers, changed)

    def _capture(self, rows: CertifiedRows, labels: torch.Tensor) -> None:
        """Record all launches of a pass. Python must not delete other graphs meanwhile, so it collects no garbage."""
        with CAPTURE, no_collection():
            graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream(rows.device)
            torch.cuda.synchronize(rows.device)
            with torch.cuda.stream(stream):
                graph.capture_begin(capture_error_mode="thread_local")
                try:
                    rows.scan(self.centers, labels if self.sums.is_few else None)
                    changed = self.sums.update(rows, labels)
                    self.results = self.sums.statistics(rows, self.centers, changed)
                finally:
                    graph.capture_end()
            self.graph = graph


def move_centers(
    centers: torch.Tensor, sum_dx: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Centers plus the mean differences of their rows (k, d), and their squared movements (k,)."""
    (k, d), moved = centers.shape, torch.empty_like(centers)
    steps = torch.empty(k, dtype=torch.float64, device=centers.device)
    block = min(triton.next_power_of_2(d), 512)
    with torch.cuda.device(centers.device):
        move[(k,)](centers, sum_dx, weight, moved, steps, d, block, num_warps=1 if d <= 128 else 4)
    return moved, steps
