"""Squared distances of rows to points, from differences in float64: equal rows have the distance 0."""

from __future__ import annotations

from importlib.util import find_spec

import torch

BLOCK = 1 << 24  # number of differences in memory at once, without Triton


def squares(x: torch.Tensor, points: torch.Tensor, factor: torch.Tensor | None = None) -> torch.Tensor:
    """Squared lengths (n, k) of (x - p) f, for rows (n, d), points (k, d) and factors (k, d) of the columns."""
    if x.is_cuda and find_spec("triton") is not None:
        from coterie.kernels.cuda.squares_kernel import launch

        return launch(x, points, factor)
    total = torch.empty(len(x), len(points), dtype=torch.float64, device=x.device)
    size = max(1, BLOCK // points.numel())
    for start in range(0, len(x), size):
        difference = x[start : start + size, None].double() - points
        total[start : start + size] = (difference if factor is None else difference * factor).square_().sum(2)
    return total
