"""Exact labels of rows on an NVIDIA GPU, with Triton."""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from coterie.kernels.cuda.centers import prepare_centers
from coterie.kernels.cuda.prepare_rows import prepare_rows
from coterie.kernels.cuda.rescore import break_ties, list_unsure, rescore, settle
from coterie.kernels.cuda.scan import scan_few, scan_tiles, scan_wide

if triton.__version__.startswith("3.6."):  # Gluon differs between versions
    from coterie.kernels.cuda import scan_hopper

    HOPPER: Any = scan_hopper
else:
    HOPPER = None
FEW = 128  # number of centers up to which they are one tile
FEW_COLUMNS = 128  # number of columns up to which this tile stays in registers
MAX_COLUMNS = 4096
MAX_ROWS = 1 << 27  # of one part: offsets are 32-bit integers
NARROW = 256  # number of columns up to which a tile of rows is loaded at once
UNUSED = 1.0e38  # half norm of centers that fill the last tile
BITS = 49  # of the integers that represent a row, unless many rows leave fewer


class CertifiedRows:
    """Rows (n, d) with their float16 copies, and buffers for labels.

    Rows are shifted by a pivot, their mean, and scaled by a power of two, so that their largest value is about 2^8.
    Their squared norms are integers, in units of 1 / `square_scale`.
    """

    def __init__(self, X: torch.Tensor) -> None:
        self.X, (self.n, self.d), self.device = X, X.shape, X.device
        self.width = _width(self.d)
        self.pivot, self.extent = _pivot_and_extent(X)
        self.scale = 2.0 ** (8 - exponent(self.extent))
        self.bits = min(BITS, 62 - (self.n + 1).bit_length())
        self.square_scale = 2.0 ** (self.bits - exponent(self.extent**2 * self.d))
        self.halves = torch.empty(self.n, self.width, dtype=torch.float16, device=self.device)
        self.norms = torch.empty(self.n, 2, device=self.device)
        self.squares = self.empty(self.n, torch.int64)
        prepare_rows[(triton.cdiv(self.n, 32),)](
            X, self.pivot, self.halves, self.norms, self.squares, self.n, self.scale,
            self.square_scale / self.scale**2, self.d, self.width, min(self.width, 64), 32, num_warps=4,
        )  # fmt: skip
        self.limits = self.empty(self.n, torch.float32)
        self.labels, self.seconds, self.pairs, self.unsure, self.changed, self.ties = (
            self.empty(self.n) for _ in range(6)
        )
        self.counts = torch.zeros(4, dtype=torch.int32, device=self.device)  # of pairs, unsure, ties and changed
        properties = torch.cuda.get_device_properties(self.device)
        self.processors = properties.multi_processor_count
        self.hopper = HOPPER if (properties.major, properties.minor) == (9, 0) else None
        self.centers: _Centers | None = None

    def empty(self, size: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
        return torch.empty(size, dtype=dtype, device=self.device)

    def scan(self, centers: torch.Tensor, previous: torch.Tensor | None = None) -> None:
        """Write the first nearest center of each row into `labels`; they are invalid if `out_of_range` is not 0.

        The rows whose label may differ from `previous` (n,) are then listed in `changed`.
        """
        if self.centers is None or self.centers.k != len(centers):
            self.centers = _Centers(self, len(centers))
        self.centers.prepare(self, centers)
        self.centers.scan(self)
        self.centers.rescore(self, centers, previous)

    @property
    def out_of_range(self) -> torch.Tensor:
        """Whether a center is too far from the rows for half precision (), as an integer."""
        assert self.centers is not None
        return self.centers.bounds.view(torch.int32)[3]


class _Centers:
    """Float16 copies of k centers, and the launches that use them; rows are arguments, to avoid reference cycles."""

    def __init__(self, rows: CertifiedRows, k: int) -> None:
        self.k = k
        self.is_few = k <= FEW and rows.width <= FEW_COLUMNS
        self.in_pairs = rows.hopper is not None and not self.is_few and rows.hopper.is_supported(rows.width, k)
        if self.is_few:
            self.tile = max(16, triton.next_power_of_2(k))
        else:
            self.tile = rows.hopper.TILE if self.in_pairs else 64 if rows.width <= NARROW else 128
        self.n_tiles = triton.cdiv(k, self.tile)
        if self.in_pairs:
            self.n_tiles += self.n_tiles % 2
        size = triton.cdiv(k, 256) * 256
        self.halves = torch.zeros(size, rows.width, dtype=torch.float16, device=rows.device)
        self.half_norms = torch.full((size,), UNUSED, device=rows.device)
        self.bits = max(1, (self.n_tiles - 1).bit_length())
        masked = self.tile.bit_length() - 1 if self.is_few else self.bits
        if self.in_pairs:
            masked = rows.hopper.n_masked(self.bits)
        rounding = (rows.width // 16 + 2) * 2.0**-20 + 2.0 ** (masked - 22)
        self.no_bounds = torch.tensor([0.0, 0.0, rounding, 0.0], device=rows.device)
        self.bounds = self.no_bounds.clone()
        if self.in_pairs:
            self.descriptors = rows.hopper.descriptors(rows.halves, self.halves)
        elif not self.is_few:
            columns = rows.width if rows.width <= NARROW else 64
            self.descriptors = (
                TensorDescriptor.from_tensor(rows.halves, [128, columns]),
                TensorDescriptor.from_tensor(self.halves, [self.tile, columns]),
            )

    def prepare(self, rows: CertifiedRows, centers: torch.Tensor) -> None:
        self.bounds.copy_(self.no_bounds)
        prepare_centers[(self.k,)](
            centers, rows.pivot, self.halves, self.half_norms, self.bounds.view(torch.int32), rows.scale,
            rows.d, rows.width, min(triton.next_power_of_2(rows.width), 512), num_warps=1 if rows.width <= 128 else 4,
        )  # fmt: skip

    def scan(self, rows: CertifiedRows) -> None:
        if self.is_few:
            blocks, warps = triton.cdiv(rows.n, 128), 4 if rows.width >= 64 else 2
            scan_few[(min(blocks, rows.processors * 32 // warps),)](
                rows.halves, self.halves, self.half_norms, rows.norms, self.bounds, rows.labels, rows.limits, rows.n,
                blocks, rows.width, self.tile, 128, 3, num_warps=warps,
            )  # fmt: skip
            return
        arrays = (self.half_norms, rows.norms, self.bounds, rows.labels, rows.seconds, rows.limits, rows.n)
        if self.in_pairs:
            rows.hopper.launch(self.descriptors, arrays, self.n_tiles, self.bits, rows.width, rows.processors)
        elif rows.width <= NARROW:
            scan_tiles[(triton.cdiv(rows.n, 128),)](
                *self.descriptors,
                *arrays,
                self.n_tiles,
                128,
                self.tile,
                self.bits,
                4 if rows.width <= 128 else 3,
                num_warps=4,
            )
        else:
            scan_wide[(triton.cdiv(rows.n, 128),)](
                *self.descriptors, *arrays, self.n_tiles, rows.width, 64, 128, self.tile, self.bits, 4, num_warps=8
            )

    def rescore(self, rows: CertifiedRows, centers: torch.Tensor, previous: torch.Tensor | None) -> None:
        """Decide between the best two centers, then between several, then by definition, where it is necessary."""
        rows.counts.zero_()
        list_unsure[(triton.cdiv(rows.n, 1024),)](
            rows.labels, rows.seconds, rows.labels if previous is None else previous, rows.pairs, rows.unsure,
            rows.changed, rows.counts, rows.n, 1024, not self.is_few, previous is not None, num_warps=1,
        )  # fmt: skip
        if not self.is_few:
            self._settle(rows, centers)
        tile, block = (min(self.tile, 64), 64) if self.is_few else (128, 16 if rows.width <= NARROW else 64)
        rescore[(rows.processors * 16,)](
            rows.X, rows.halves, centers, self.halves, self.half_norms, rows.limits, rows.unsure, rows.counts[1:],
            rows.labels, rows.ties, rows.counts[2:], triton.cdiv(self.k, tile),
            rows.d, rows.width, min(rows.width, 64), block, tile, num_warps=4 if rows.width <= NARROW else 8,
        )  # fmt: skip
        at_once = min(4096, max(32, triton.next_power_of_2(self.k)))
        break_ties[(rows.processors * 8,)](
            rows.X, centers.T.contiguous(), rows.ties, rows.counts[2:], rows.labels, self.k, rows.d, at_once, 16,
            num_warps=max(4, at_once // 256), enable_fp_fusion=False,
        )  # fmt: skip

    def _settle(self, rows: CertifiedRows, centers: torch.Tensor) -> None:
        settle[(rows.processors * 16,)](
            rows.X, centers, rows.pairs, rows.counts, rows.labels, rows.seconds, rows.ties, rows.counts[2:], self.k,
            rows.d, min(max(16, triton.next_power_of_2(rows.d)), 64), 16, self.tile, num_warps=4,
        )  # fmt: skip


def _width(d: int) -> int:
    """Number of columns of the float16 copies."""
    return max(16, triton.next_power_of_2(d)) if d <= NARROW else triton.cdiv(d, 64) * 64


def exponent(size: float) -> int:
    """The exponent of the power of two just above `size`."""
    return math.frexp(size)[1] if size > 0 else 0


def _pivot_and_extent(X: torch.Tensor) -> tuple[torch.Tensor, float]:
    """The mean (d,) in float64, and the largest absolute difference from it."""
    pivot = X.sum(0, dtype=torch.float64) / len(X)
    low, high = torch.aminmax(X, dim=0)
    return pivot, float(torch.maximum(pivot - low.double(), high.double() - pivot).max())
