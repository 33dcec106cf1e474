"""The scan of `scan.scan_tiles` for Hopper GPUs, in Gluon: tensor cores work while minima are computed.

A program has three groups of warps. One copies rows and tiles of centers into shared memory. The other two score half
of the rows each: while the product of a tile is computed, they process that of the tile before. Rows stay in shared
memory, also if they are so long that centers are copied in pieces.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma, warpgroup_mma_wait
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from coterie.kernels.cuda import scan

FAR = gl.constexpr(scan.FAR.value)
FEW_BITS = gl.constexpr(4)  # of the number of a tile, so that the number of eight columns fits beside it
ROWS = 64  # of a group of warps
TILE = 128  # centers
MAX_WIDTH = 512  # columns
REGISTERS = 240, 24  # of the second group that scores, and of the group that copies


_three_smallest, _bits, _float, _store_candidates = (
    gluon.jit(each.fn) for each in (scan.three_smallest, scan.as_bits, scan.as_float, scan.store_candidates)
)


@gluon.jit
def _add_tile(product, half_norm, tile, by_column, first, second, third, BM: gl.constexpr, BK: gl.constexpr,
              BITS: gl.constexpr):  # fmt: skip
    """Update the minima with the scores of one tile of centers."""
    score = _float((_bits(half_norm[None, :] - product) & -(1 << BITS)) | tile)
    by_column = gl.minimum(by_column, score)
    lowest = gl.min(score.reshape([BM, BK // 8, 8]), axis=1)
    third = gl.minimum(third, gl.maximum(second, lowest))
    second = gl.minimum(second, gl.maximum(first, lowest))
    first = gl.minimum(first, lowest)
    return by_column, first, second, third


@gluon.jit
def _best_columns(by_column, BK: gl.constexpr):
    """The best three minima by column, and the columns of the best two."""
    column = gl.arange(0, BK, layout=gl.SliceLayout(0, by_column.type.layout))[None, :]
    far = gl.full(by_column.shape, FAR, gl.float32, layout=by_column.type.layout)
    best, second, third = gl.reduce((by_column, far, far), 1, _three_smallest)
    best_column = gl.min(gl.where(by_column == best[:, None], column, BK), axis=1)
    is_second = (by_column == second[:, None]) & (column != best_column[:, None])
    return best, second, third, best_column, gl.min(gl.where(is_second, column, BK - 1), axis=1)


@gluon.jit
def _best_columns_of_few(by_column, BM: gl.constexpr, BK: gl.constexpr, BITS: gl.constexpr):
    """`_best_columns` for few tiles: there is space in the lowest bits of a minimum for the number of eight columns.

    So minima within the eight classes of columns, which are in the same thread, need no search for their column.
    """
    layout: gl.constexpr = by_column.type.layout
    eights: gl.constexpr = (BK // 8 - 1) << BITS
    number = gl.arange(0, BK, layout=gl.SliceLayout(0, layout))[None, :] // 8
    marked = _float((_bits(by_column) & ~eights) | (number << BITS))
    pairs = marked.reshape([BM, 2, BK // 16, 8])
    low = gl.min(pairs, axis=1)
    far = gl.full([BM, BK // 16, 8], FAR, gl.float32, layout=low.type.layout)
    first, second, third = gl.reduce((low, gl.max(pairs, axis=1), far), 1, _three_smallest)
    best, other, last = gl.reduce((first, second, third), 1, _three_smallest)
    column = gl.arange(0, 8, layout=gl.SliceLayout(0, first.type.layout))[None, :]
    best_class = gl.min(gl.where(first == gl.expand_dims(best, 1), column, 8), axis=1)
    is_other = (first == gl.expand_dims(other, 1)) & (column != gl.expand_dims(best_class, 1))
    is_other = is_other | (second == gl.expand_dims(other, 1))
    other_class = gl.min(gl.where(is_other, column, 7), axis=1)
    rows: gl.constexpr = gl.SliceLayout(1, layout)
    best_column = ((_bits(best) & eights) >> BITS) * 8 + best_class
    other_column = ((_bits(other) & eights) >> BITS) * 8 + other_class
    return (
        gl.convert_layout(best, rows), gl.convert_layout(other, rows), gl.convert_layout(last, rows),
        gl.convert_layout(best_column, rows), gl.convert_layout(other_column, rows),
    )  # fmt: skip


@gluon.jit
def _store(by_column, first, second, third, row_norms, bounds, labels, seconds, limits, row, n, BM: gl.constexpr,
           BK: gl.constexpr, BITS: gl.constexpr):  # fmt: skip
    """As `scan._store_from_partitions`."""
    by_row: gl.constexpr = gl.SliceLayout(1, by_column.type.layout)
    if BITS <= FEW_BITS:
        best, second_column, third_column, best_column, other_column = _best_columns_of_few(by_column, BM, BK, BITS)
        compared: gl.constexpr = -(BK // 8 << BITS)  # without the marks of columns
    else:
        best, second_column, third_column, best_column, other_column = _best_columns(by_column, BK)
        compared: gl.constexpr = -1
    _, second_group, third_group = gl.reduce((first, second, third), 1, _three_smallest)
    _store_candidates(
        best, second_column, third_column, best_column, other_column, gl.convert_layout(second_group, by_row),
        gl.convert_layout(third_group, by_row), row_norms, bounds, labels, seconds, limits, row, row < n, BK, BITS,
        compared,
    )  # fmt: skip


@gluon.jit
def _product(x, centers, has_centers, step, before, is_added: gl.constexpr, STAGES: gl.constexpr):
    """Start the product of rows and a tile of centers, which may be added to another."""
    slot = step % STAGES
    mbarrier.wait(has_centers.index(slot), (step // STAGES) & 1)
    return warpgroup_mma(x, centers.index(slot).permute((1, 0)), before, use_acc=is_added, is_async=True)


@gluon.jit
def _score(
    rows, centers, norms, has_rows, no_rows, has_centers, no_centers, row_norms, bounds, labels, seconds, limits, n,
    n_tiles, n_blocks, PART: gl.constexpr, BM: gl.constexpr, BK: gl.constexpr, PIECES: gl.constexpr,
    BUFFERS: gl.constexpr, STAGES: gl.constexpr, BITS: gl.constexpr,
):  # fmt: skip
    """One half of the rows of each block."""
    mma: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BK, 16])
    columns: gl.constexpr = gl.SliceLayout(0, mma)
    zero = gl.full([BM, BK], 0.0, gl.float32, layout=mma)
    far = gl.full([BM, BK], FAR, gl.float32, layout=mma)
    far_groups = gl.min(far.reshape([BM, BK // 8, 8]), axis=1)
    step = 0
    for block in range(gl.program_id(0), n_blocks, gl.num_programs(0)):
        turn = block // gl.num_programs(0)
        buffer = turn % BUFFERS
        mbarrier.wait(has_rows.index(buffer), (turn // BUFFERS) & 1)
        place = (buffer * 2 + PART) * PIECES
        by_column = far
        first = far_groups
        second = far_groups
        third = far_groups
        for tile in range(0, n_tiles, 2 if PIECES == 1 else 1):
            if PIECES == 1:  # while the second product is computed, the first one is processed
                x = rows.index(place)
                a = _product(x, centers, has_centers, step, zero, False, STAGES)
                b = _product(x, centers, has_centers, step + 1, zero, False, STAGES)
                product = warpgroup_mma_wait(1, deps=[a])
                mbarrier.arrive(no_centers.index(step % STAGES), count=1)
                half_norm = norms.index(tile).load(columns)
                by_column, first, second, third = _add_tile(
                    product, half_norm, tile, by_column, first, second, third, BM, BK, BITS
                )
                product = warpgroup_mma_wait(0, deps=[b])
                mbarrier.arrive(no_centers.index((step + 1) % STAGES), count=1)
                half_norm = norms.index(tile + 1).load(columns)
                by_column, first, second, third = _add_tile(
                    product, half_norm, tile + 1, by_column, first, second, third, BM, BK, BITS
                )
                step += 2
            else:  # products of pieces take so long that one tile at a time is as fast
                half_norm = norms.index(tile).load(columns)
                product = zero
                for piece in gl.static_range(PIECES):
                    a = _product(rows.index(place + piece), centers, has_centers, step, product, piece > 0, STAGES)
                    product = warpgroup_mma_wait(1 if piece < PIECES - 1 else 0, deps=[a])
                    if piece > 0:  # the product before this one is complete
                        mbarrier.arrive(no_centers.index((step - 1) % STAGES), count=1)
                    step += 1
                mbarrier.arrive(no_centers.index((step - 1) % STAGES), count=1)
                by_column, first, second, third = _add_tile(
                    product, half_norm, tile, by_column, first, second, third, BM, BK, BITS
                )
        mbarrier.arrive(no_rows.index(buffer), count=1)
        row = block * (2 * BM) + PART * BM + gl.arange(0, BM, layout=gl.SliceLayout(1, mma))
        _store(by_column, first, second, third, row_norms, bounds, labels, seconds, limits, row, n, BM, BK, BITS)


@gluon.jit
def _copy(
    all_rows, all_centers, rows, centers, has_rows, no_rows, has_centers, no_centers, n_tiles, n_blocks,
    BM: gl.constexpr, BK: gl.constexpr, BD: gl.constexpr, PIECES: gl.constexpr, BUFFERS: gl.constexpr,
    STAGES: gl.constexpr,
):  # fmt: skip
    """Copy the rows of each block, and all tiles of centers for it, as soon as there is memory for them."""
    step = 0
    for block in range(gl.program_id(0), n_blocks, gl.num_programs(0)):
        turn = block // gl.num_programs(0)
        buffer = turn % BUFFERS
        mbarrier.wait(no_rows.index(buffer), ((turn // BUFFERS) & 1) ^ 1)
        mbarrier.expect(has_rows.index(buffer), 2 * PIECES * all_rows.block_type.nbytes)
        for part in gl.static_range(2):
            for piece in gl.static_range(PIECES):
                tma.async_copy_global_to_shared(
                    all_rows, [block * (2 * BM) + part * BM, piece * BD], has_rows.index(buffer),
                    rows.index((buffer * 2 + part) * PIECES + piece),
                )  # fmt: skip
        for tile in range(0, n_tiles):
            for piece in gl.static_range(PIECES):
                slot = step % STAGES
                mbarrier.wait(no_centers.index(slot), ((step // STAGES) & 1) ^ 1)
                mbarrier.expect(has_centers.index(slot), all_centers.block_type.nbytes)
                tma.async_copy_global_to_shared(
                    all_centers, [tile * BK, piece * BD], has_centers.index(slot), centers.index(slot)
                )
                step += 1


@gluon.jit
def scan_pairs(
    all_rows,  # in   descriptor of (n, PIECES BD) float16
    all_centers,  # in   descriptor of (k, PIECES BD) float16
    half_norms,  # in   (k,)
    row_norms,  # in   (n, 2)
    bounds,  # in   (4,)
    labels,  # out  (n,)
    seconds,  # out  (n,)
    limits,  # out  (n,)
    n,
    n_tiles,  # of centers, an even number
    n_blocks,  # of rows
    BM: gl.constexpr,
    BK: gl.constexpr,
    BD: gl.constexpr,
    PIECES: gl.constexpr,
    BUFFERS: gl.constexpr,
    STAGES: gl.constexpr,
    BITS: gl.constexpr,
    TILES: gl.constexpr,  # at least n_tiles
    REGISTERS: gl.constexpr,
    num_warps: gl.constexpr,
):
    """Blocks of rows with all tiles of centers; each program has several blocks."""
    rows = gl.allocate_shared_memory(gl.float16, [BUFFERS * 2 * PIECES, BM, BD], all_rows.layout)
    centers = gl.allocate_shared_memory(gl.float16, [STAGES, BK, BD], all_centers.layout)
    has_rows = gl.allocate_shared_memory(gl.int64, [BUFFERS, 1], mbarrier.MBarrierLayout())
    no_rows = gl.allocate_shared_memory(gl.int64, [BUFFERS, 1], mbarrier.MBarrierLayout())
    has_centers = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    no_centers = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    norms = gl.allocate_shared_memory(gl.float32, [TILES, BK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    column = gl.arange(0, BK, layout=gl.BlockedLayout([1], [32], [num_warps], [0]))
    for tile in range(0, n_tiles):
        norms.index(tile).store(gl.load(half_norms + tile * BK + column))
    for i in gl.static_range(BUFFERS):
        mbarrier.init(has_rows.index(i), count=1)
        mbarrier.init(no_rows.index(i), count=2)
    for i in gl.static_range(STAGES):
        mbarrier.init(has_centers.index(i), count=1)
        mbarrier.init(no_centers.index(i), count=2)
    gl.warp_specialize(
        [
            (_score, (rows, centers, norms, has_rows, no_rows, has_centers, no_centers, row_norms, bounds, labels,
                      seconds, limits, n, n_tiles, n_blocks, 0, BM, BK, PIECES, BUFFERS, STAGES, BITS)),
            (_score, (rows, centers, norms, has_rows, no_rows, has_centers, no_centers, row_norms, bounds, labels,
                      seconds, limits, n, n_tiles, n_blocks, 1, BM, BK, PIECES, BUFFERS, STAGES, BITS)),
            (_copy, (all_rows, all_centers, rows, centers, has_rows, no_rows, has_centers, no_centers, n_tiles,
                     n_blocks, BM, BK, BD, PIECES, BUFFERS, STAGES)),
        ],
        [4, 1],
        [REGISTERS[0], REGISTERS[1]],
    )  # fmt: skip


class Memory(NamedTuple):
    """Shared memory of a program, by the number of columns."""

    columns: int  # of a piece of the rows
    buffers: int  # for the rows of a block
    stages: int  # pieces of tiles of centers
    max_centers: int  # whose half norms fit

    @classmethod
    def of(cls, width: int) -> Memory:
        if width <= 128:
            return cls(width, 2, 3, 1 << 14)
        return cls(width, 1, 2, 1 << 13) if width <= 256 else cls(64, 1, 3, 1 << 12)


def is_supported(width: int, k: int) -> bool:
    """Whether k centers of `width` columns are; rows of a block must fit into shared memory."""
    return width <= MAX_WIDTH and k <= Memory.of(width).max_centers


def n_masked(bits: int) -> int:
    """Number of the lowest bits of a score that are replaced, if the number of a tile has `bits` of them."""
    return bits + (TILE // 8).bit_length() - 1 if bits <= FEW_BITS.value else bits


def descriptors(rows: torch.Tensor, centers: torch.Tensor) -> tuple[Any, ...]:
    """Of rows (n, width) and centers (k, width) in float16."""
    columns = Memory.of(rows.shape[1]).columns
    return tuple(
        TensorDescriptor.from_tensor(
            each, [block, columns], gl.NVMMASharedLayout.get_default_for([block, columns], gl.float16)
        )
        for each, block in ((rows, ROWS), (centers, TILE))
    )


def launch(described: Any, arrays: tuple[Any, ...], n_tiles: int, bits: int, width: int, processors: int) -> None:
    """`scan_pairs` for all rows; `arrays` are its arguments from `half_norms` to `n`."""
    blocks, memory = triton.cdiv(arrays[-1], 2 * ROWS), Memory.of(width)
    scan_pairs[(min(blocks, processors),)](
        *described, *arrays, n_tiles, blocks, ROWS, TILE, memory.columns, width // memory.columns, memory.buffers,
        memory.stages, bits, triton.next_power_of_2(n_tiles), REGISTERS, num_warps=4,
    )  # fmt: skip
