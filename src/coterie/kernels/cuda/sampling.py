"""Costs and samples of rows for k-means++, with PyTorch."""

from __future__ import annotations

import numpy as np
import torch

from coterie.kernels.cuda.device_array import as_numpy

BLOCK = 1 << 22  # number of differences in memory at once
ROWS = 512  # rows whose costs are added together


def potentials(
    X: torch.Tensor, w: torch.Tensor | None, unit: float, points: torch.Tensor, closest: torch.Tensor
) -> torch.Tensor:
    """Update `closest` (n,) with points[0]; return its weighted sum, then that with each other point added (m,)."""
    total = torch.zeros(len(points), dtype=torch.float64, device=X.device)
    centers = points.double() / unit
    size = max(1, BLOCK // (len(points) * X.shape[1]))
    for start in range(0, len(X), size):
        rows = slice(start, start + size)
        squares = (X[rows].double()[:, None, :] / unit - centers).square().sum(2)
        closest[rows] = torch.minimum(closest[rows], squares[:, 0].to(closest.dtype))
        costs = torch.minimum(closest[rows].double()[:, None], squares)
        total += costs.sum(0) if w is None else (w[rows].double()[:, None] * costs).sum(0)
    return total


def draw(closest: torch.Tensor, w: torch.Tensor | None, u: np.ndarray) -> tuple[float, np.ndarray]:
    """The sum of w `closest`, and rows sampled with these probabilities; -1 if the sum is 0.

    First blocks of rows are sampled by their sums, then a row of each block. Cumulative sums are computed in main
    memory, because those of PyTorch differ from run to run.
    """
    n = len(closest)
    if n == 0:
        return 0.0, np.full(len(u), -1)
    sums = torch.cat([_mass(closest, w, start, start + (ROWS << 15)) for start in range(0, n, ROWS << 15)])
    cumulative = np.cumsum(sums.cpu().numpy())
    total = float(cumulative[-1])
    if not total > 0:
        return 0.0, np.full(len(u), -1)
    target = u * total
    block = np.minimum(
        np.searchsorted(cumulative, target, side="right"), np.flatnonzero(np.diff(cumulative, prepend=0))[-1]
    )
    index = block[:, None] * ROWS + np.arange(ROWS)
    rows = torch.from_numpy(np.minimum(index, n - 1)).to(closest.device)
    mass = as_numpy(closest[rows]).astype(np.float64) * (1.0 if w is None else as_numpy(w[rows]))
    mass[index >= n] = 0.0
    before = np.where(block > 0, cumulative[block - 1], 0.0)
    within = np.cumsum(mass, axis=1)
    place = (within <= (target - before)[:, None]).sum(axis=1)
    last = ROWS - 1 - np.argmax(mass[:, ::-1] > 0, axis=1)  # rounding must not choose a row without mass
    return total, block * ROWS + np.minimum(place, last)


def _mass(closest: torch.Tensor, w: torch.Tensor | None, start: int, stop: int) -> torch.Tensor:
    """Sums of w `closest` over blocks of rows; the last block may be shorter."""
    mass = closest[start:stop] if w is None else closest[start:stop].double() * w[start:stop].double()
    whole = len(mass) // ROWS * ROWS
    sums = mass[:whole].view(-1, ROWS).sum(1, dtype=torch.float64)
    return sums if whole == len(mass) else torch.cat([sums, mass[whole:].sum(0, keepdim=True, dtype=torch.float64)])
