"""Sums and memberships of fuzzy c-means, in PyTorch and float64; for the definitions see `plain`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from coterie.kernels.cuda.device_array import TORCH_TYPES, DeviceArray, as_numpy, as_tensor
from coterie.kernels.cuda.squares import squares
from coterie.kernels.plain import MAX_POWER, FuzzySums

BLOCK = 1 << 25  # number of values in memory at once


def fuzzy(X: DeviceArray, w: Any, centers: np.ndarray, m: float) -> FuzzySums:
    """Sums of rows weighted by powers of their memberships in the centers (k, d)."""
    device, (k, d) = X.tensor.device, centers.shape
    points = as_tensor(centers, device).double()
    weights = None if w is None else as_tensor(w, device)
    weight, sum_dx = (torch.zeros(shape, dtype=torch.float64, device=device) for shape in ((k,), (k, d)))
    cost = torch.zeros((), dtype=torch.float64, device=device)
    for rows in _blocks(X, k):
        x = X.tensor[rows].double()
        square = squares(x, points)
        log_ratio, log_mean = _log_shares(square, m)
        power = (log_ratio * (m / (m - 1)) - m * log_mean).exp_().clamp_(max=MAX_POWER)
        minimum = square.amin(1)
        terms = torch.where(minimum > 0, minimum * (-(m - 1) * log_mean[:, 0]).exp(), 0.0)
        if weights is not None:
            power, terms = power * weights[rows, None], terms * weights[rows]
        weight += power.sum(0)
        sum_dx += torch.stack([power[:, j] @ (x - points[j]) for j in range(k)])
        cost += terms.sum()
    return FuzzySums(as_numpy(weight), as_numpy(sum_dx), float(cost))


def memberships(X: DeviceArray, centers: np.ndarray, m: float) -> DeviceArray:
    """Memberships (n, k): proportional to squared distances to the power -1 / (m - 1), with sum 1."""
    points = as_tensor(centers, X.tensor.device).double()
    result = torch.empty(len(X), len(points), dtype=TORCH_TYPES[X.dtype], device=X.tensor.device)
    for rows in _blocks(X, len(points)):
        shares = (_log_shares(squares(X.tensor[rows], points), m)[0] / (m - 1)).exp_()
        result[rows] = (shares / shares.sum(1, keepdim=True)).to(result.dtype)
    return DeviceArray(result)


def _blocks(X: DeviceArray, k: int) -> Iterator[slice]:
    size = max(1, BLOCK // (k + X.shape[1]))
    return (slice(start, start + size) for start in range(0, len(X), size))


def _log_shares(square: torch.Tensor, m: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Logarithms of q = minimum / square (n, k), and of the mean of q^(1 / (m - 1)) over the centers (n, 1)."""
    minimum = square.amin(1, keepdim=True)
    log_ratio = torch.where(square == minimum, 0.0, (minimum / square).log())
    return log_ratio, (log_ratio / (m - 1)).expm1().mean(1, keepdim=True).log1p()
