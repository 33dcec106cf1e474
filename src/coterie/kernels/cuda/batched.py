"""Many small K-means fits at once: on an NVIDIA GPU a launch has one iteration of all of them.

A problem has rows of one of several tables of the same shape, a number of clusters, and perhaps weights. Its result
does not depend on the other problems. Without Triton, the problems are fitted one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch

from coterie.kernels.cuda.device_array import DeviceArray, as_numpy, as_tensor
from coterie.kernels.cuda.exact import first_minimum

MAX_SUMS = 1 << 11  # padded clusters times padded columns, which a program has in registers
MAX_WEIGHT = 16  # largest weight of a row; weights are whole numbers
MAX_ENTRIES = 1 << 30  # rows of all problems together
BITS = 49  # of the integers that represent rows
PROGRAM_ROWS = 1024  # rows of one program; with their weights, sums of digits are exact
ROWS, WARPS = 128, 4  # rows of a block of `assign`, and warps of its programs
UNROLL = 4  # centers that `assign` compares at once
ADD_ROWS = 64  # rows of a block of `add_moves`
CHECKED = 8  # iterations after which the host looks whether all problems are done
LOST = 2.0**-9  # costs below this fraction of the sum of squares need differences, in a fit of its own


class Fits(NamedTuple):
    """Results of all problems."""

    centers: np.ndarray  # (problems, K, d)
    weight: np.ndarray  # (problems, K)
    labels: torch.Tensor  # (problems, n)
    histories: list[np.ndarray]  # objective before the first and after each M-step
    converged: np.ndarray  # (problems,)
    needs_own_fit: np.ndarray  # (problems,) whether a cluster is empty, or costs are lost in rounding


@dataclass(frozen=True)
class Tables:
    """Rows (tables, n, d) in float32. Sums are integers, in units of powers of two, of differences from pivots."""

    X: torch.Tensor
    pivots: torch.Tensor  # (tables, d) float64
    scales: torch.Tensor  # (tables,) float64
    square_scales: torch.Tensor  # (tables,) float64
    squares: torch.Tensor | None  # (tables, n) int64; None without Triton


def is_small(k: int, d: int) -> bool:
    """Whether the kernels support k clusters and d columns."""
    return _padded(k) * _padded(d) <= MAX_SUMS


def _padded(size: int) -> int:
    return max(16, 1 << (size - 1).bit_length())


def has_triton(X: torch.Tensor) -> bool:
    return X.is_cuda and find_spec("triton") is not None


def as_tables(X: torch.Tensor, total_weight: int) -> Tables:
    """Tables whose pivots are the middles of their columns: these do not depend on the order of the rows."""
    low, high = (each.double() for each in torch.aminmax(X, dim=1))
    extent = ((high - low) / 2).amax(1)
    bits = min(BITS, 62 - (total_weight + 1).bit_length())
    pivots, scales = (low + high) / 2, torch.exp2(bits - _exponent(extent))
    square_scales = torch.exp2(bits - _exponent(extent**2 * X.shape[2]))
    squares = None
    if has_triton(X):
        import triton

        from coterie.kernels.cuda.batch_kernels import prepare_tables

        (count, n, d), block = X.shape, max(16, triton.next_power_of_2(X.shape[2]))
        squares = torch.empty(count, n, dtype=torch.int64, device=X.device)
        with torch.cuda.device(X.device):
            prepare_tables[(triton.cdiv(n, 128), count)](
                X, pivots, square_scales, squares, n, d, block, 128, num_warps=4
            )
    return Tables(X, pivots, scales, square_scales, squares)


def as_table(X: DeviceArray) -> Tables:
    """One table, with the integers of the kernels for a single fit: a fit has the same bits there."""
    from coterie.kernels.cuda import _certified

    rows, device = X.tensor[None], X.tensor.device
    if not has_triton(X.tensor):
        one = torch.ones(1, dtype=torch.float64, device=device)
        return Tables(rows, torch.zeros(1, X.shape[1], dtype=torch.float64, device=device), one, one, None)
    from coterie.kernels.cuda.lloyd_pass import sum_scale

    with torch.cuda.device(device):
        state = _certified(X).rows
    scales = torch.tensor([sum_scale(state), state.square_scale], dtype=torch.float64, device=device)
    return Tables(rows, state.pivot[None], scales[:1], scales[1:], state.squares[None])


def _exponent(size: torch.Tensor) -> torch.Tensor:
    """Exponents of the powers of two just above sizes; 0 of 0."""
    return torch.frexp(size).exponent.double()


def fit_all(
    tables: Tables,
    which: np.ndarray,  # (problems,) the table of each problem
    ks: np.ndarray,  # (problems,)
    centers: torch.Tensor,  # (problems, K, d) of which the first ks are used
    tolerances: np.ndarray,  # (problems,)
    max_iter: int,
    weights: torch.Tensor | None = None,  # (problems, n) whole numbers
    can_be_empty: bool = False,  # whether an empty cluster stays where it is
) -> Fits:
    """Lloyd's algorithm for all problems; as in a single fit, a problem has converged if no label changes."""
    if tables.squares is None:
        return _one_by_one(tables, which, ks, centers.clone(), tolerances, max_iter, weights, can_be_empty)
    with torch.cuda.device(tables.X.device):
        return _launch(tables, which, ks, centers.clone(), tolerances, max_iter, weights, can_be_empty)


def _launch(
    tables: Tables, which: np.ndarray, ks: np.ndarray, centers: torch.Tensor, tolerances: np.ndarray, max_iter: int,
    weights: torch.Tensor | None, can_be_empty: bool,
) -> Fits:  # fmt: skip
    import triton

    from coterie.kernels.cuda import batch_kernels, lloyd_pass

    device, (count, K, d), n = centers.device, centers.shape, tables.X.shape[1]
    width, padded = _padded(d), _padded(K)
    grid = triton.cdiv(n, PROGRAM_ROWS), count
    sums = torch.zeros(count, K, d, dtype=torch.int64, device=device)
    square_sums = torch.zeros(count, K, dtype=torch.int64, device=device)
    sizes = torch.zeros(count, K, dtype=torch.int32, device=device)
    moved, n_iter, n_unsure = (torch.zeros(m, dtype=torch.int32, device=device) for m in (count, count, 1))
    states, steps = torch.ones_like(moved), torch.zeros(count, dtype=torch.float64, device=device)
    weight = torch.zeros(count, K, dtype=torch.float64, device=device)
    labels = torch.full((count, n), -1, dtype=torch.int32, device=device)
    moves, unsure = (torch.empty_like(labels) for _ in range(2))
    n_moves = torch.empty(count, grid[0], dtype=torch.int32, device=device)
    index, numbers = (as_tensor(np.asarray(each, np.int32), device) for each in (which, ks))
    limits, shares = as_tensor(np.asarray(tolerances, float), device), tables.X if weights is None else weights
    rows = (tables.X, index, shares, tables.squares, tables.pivots, tables.scales)
    results = (sums, square_sums, sizes, moved, n, K)
    units, history = (1.0 / tables.scales, 1.0 / tables.square_scales), []
    for start in range(0, max_iter + 1, CHECKED):
        costs = torch.zeros(min(CHECKED, max_iter + 1 - start), count, K, dtype=torch.float64, device=device)
        for i in range(len(costs)):
            batch_kernels.assign[grid](
                tables.X, index, centers, numbers, states, labels, moves, n_moves, unsure, n_unsure, n, K,
                PROGRAM_ROWS // ROWS, d, width, ROWS, UNROLL, num_warps=WARPS,
            )  # fmt: skip
            batch_kernels.add_moves[grid](
                *rows, numbers, states, labels, moves, n_moves, *results, PROGRAM_ROWS, d, width, padded, ADD_ROWS,
                weights is not None, num_warps=1,
            )  # fmt: skip
            batch_kernels.assign_unsure[(1024,)](
                *rows, centers, numbers, labels, unsure, n_unsure, *results, d, width, padded, weights is not None,
                num_warps=1, enable_fp_fusion=False,
            )  # fmt: skip
            batch_kernels.update[(count,)](
                sums, square_sums, sizes, moved, n_unsure, steps, states, n_iter, index, tables.pivots, *units, limits,
                numbers, centers, costs[i], weight, start + i, max_iter, K, LOST, d, lloyd_pass.columns_at_once(d),
                can_be_empty,
                num_warps=1, enable_fp_fusion=False,
            )  # fmt: skip
        history.append(costs)
        final = as_numpy(states)
        if not (final == batch_kernels.ACTIVE.value).any():
            break
    lengths = as_numpy(n_iter) + 1
    histories = [values[:m] for m, values in zip(lengths, _totals(as_numpy(torch.cat(history)), ks), strict=True)]
    return Fits(
        as_numpy(centers), as_numpy(weight), labels, histories, final == batch_kernels.CONVERGED.value,
        final == batch_kernels.ALONE.value,
    )  # fmt: skip


def _totals(costs: np.ndarray, ks: np.ndarray) -> np.ndarray:
    """Costs of all clusters together (problems, iterations), from those of each (iterations, problems, K).

    Costs of equal numbers of clusters are summed at once, in the order of a single fit.
    """
    totals = np.empty((len(ks), len(costs)))
    for k in np.unique(ks):
        is_k = ks == k
        totals[is_k] = np.ascontiguousarray(np.maximum(costs[:, is_k, :k], 0.0)).sum(axis=2).T
    return totals


def _one_by_one(
    tables: Tables, which: np.ndarray, ks: np.ndarray, centers: torch.Tensor, tolerances: np.ndarray, max_iter: int,
    weights: torch.Tensor | None, can_be_empty: bool,
) -> Fits:  # fmt: skip
    from coterie.kernels import cuda

    count, K, _ = centers.shape
    labels = torch.full((count, tables.X.shape[1]), -1, dtype=torch.int32, device=centers.device)
    weight, converged, is_alone = np.zeros((count, K)), np.zeros(count, bool), np.zeros(count, bool)
    histories = []
    for b, (table, k) in enumerate(zip(which, ks, strict=True)):
        X, w = DeviceArray(tables.X[int(table)]), None if weights is None else weights[b].double()
        current, history, step = DeviceArray(centers[b, :k].clone()), [], np.inf
        for iteration in range(max_iter + 1):
            sums = cuda.lloyd(X, w, current, None, DeviceArray(labels[b]), None)
            history.append(float(sums.cost.sum()))
            weight[b, :k] = sums.weight
            is_alone[b] = not can_be_empty and not sums.weight.all()
            converged[b] = iteration > 0 and (sums.moved == 0 or step <= tolerances[b])
            if converged[b] or is_alone[b] or iteration == max_iter:
                break
            current, steps = cuda.move_centers(current, sums.sum_dx, sums.weight, sums.weight > 0)
            step = float(steps.sum())
        centers[b, :k] = current.tensor
        histories.append(np.array(history))
    return Fits(as_numpy(centers), weight, labels, histories, converged, is_alone)


def seed(
    tables: Tables,
    which: np.ndarray,
    ks: np.ndarray,
    generators: Sequence[np.random.Generator],  # one for each problem
    weights: torch.Tensor | None = None,
) -> torch.Tensor:
    """Initial centers (problems, K, d) by greedy k-means++; each is the best of several sampled rows."""
    K, (n, d), device = int(ks.max()), tables.X.shape[1:], tables.X.device
    n_candidates = 2 + int(np.log(K))
    u = as_tensor(np.stack([rng.random((K, n_candidates)) for rng in generators]), device)
    index = as_tensor(np.asarray(which, np.int64), device)
    closest = torch.full((len(ks), n), torch.inf, device=device)
    centers = torch.zeros(len(ks), K, d, device=device)
    mass = torch.ones_like(closest, dtype=torch.int64) if weights is None else weights.long()
    centers[:, 0] = tables.X[index, _draw(mass, u[:, 0, :1])[:, 0]]
    for j in range(1, K):
        mass = _costs(tables, index, weights, centers[:, j - 1 : j], closest, is_chosen=True)
        candidates = tables.X[index[:, None], _draw(mass, u[:, j])]
        potentials = _costs(tables, index, weights, candidates, closest, is_chosen=False)
        centers[:, j] = candidates[torch.arange(len(ks), device=device), first_minimum(potentials).long()]
    return centers


def _draw(mass: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Rows (problems, m) sampled in proportion to integers (problems, n), whose sums are exact; 0 if all are 0."""
    cumulative = mass.cumsum(1)
    total = cumulative[:, -1:]
    target = torch.minimum((u * total).floor().long(), total - 1)
    return torch.searchsorted(cumulative, target, right=True).clamp(max=mass.shape[1] - 1)


def _costs(
    tables: Tables, index: torch.Tensor, weights: torch.Tensor | None, points: torch.Tensor, closest: torch.Tensor,
    is_chosen: bool,
) -> torch.Tensor:  # fmt: skip
    """Costs as integers: of each row (problems, n) if the point is chosen, else of all with each point (problems, m).

    A chosen point becomes a center: `closest` is updated.
    """
    X, (count, m, d), n = tables.X, points.shape, tables.X.shape[1]
    factors = tables.square_scales / 4  # a point can be twice as far from a row as the pivot
    points = points.contiguous()
    result = torch.zeros(count, n if is_chosen else m, dtype=torch.int64, device=X.device)
    if has_triton(X):
        import triton

        from coterie.kernels.cuda.batch_kernels import candidate_costs

        with torch.cuda.device(X.device):
            candidate_costs[(triton.cdiv(n, 256), count)](
                X, index, X if weights is None else weights, factors, points, closest, result, result, n, m, d,
                max(16, triton.next_power_of_2(d)), 256, weights is not None, is_chosen, num_warps=4,
            )  # fmt: skip
        return result
    for b, table in enumerate(index.tolist()):
        squares = (X[table][:, None] - points[b]).square().sum(2)
        costs = torch.minimum(closest[b][:, None], squares)
        integers = (costs.double() * factors[table]).round().long()
        integers = integers if weights is None else integers * weights[b].long()[:, None]
        if is_chosen:
            closest[b], result[b] = costs[:, 0], integers[:, 0]
        else:
            result[b] = integers.sum(0)
    return result


def best_of(fits: Fits, starts: int) -> list[int]:
    """The best of each group of `starts` consecutive problems."""
    objectives = np.array([history[-1] for history in fits.histories]).reshape(-1, starts)
    return [int(i) for i in np.arange(len(objectives)) * starts + objectives.argmin(axis=1)]


def as_weights(counts: Any, device: Any) -> torch.Tensor | None:
    """Whole numbers (problems, n) as weights, or None if some are not, or too large."""
    values = np.asarray(counts)
    is_valid = (values == np.floor(values)).all() and values.min() >= 0 and values.max() <= MAX_WEIGHT
    return as_tensor(values.astype(np.float32), device) if is_valid else None
