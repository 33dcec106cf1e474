"""Exact labels with PyTorch alone: scores in float64, and distances by definition for rows where scores are close.

These functions define the results of the Triton kernels, and are used where Triton is not available.
"""

from __future__ import annotations

import torch

BLOCK = 1 << 24  # number of scores in memory at once
EPSILON = 2.0**-53


def nearest(X: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """Index (n,) of the first nearest center, as float64 distances that are summed in the order of columns give it."""
    labels = torch.empty(len(X), dtype=torch.int32, device=X.device)
    size = max(1, BLOCK // max(1, len(centers)))
    origin = centers.double().mean(0)
    shifted = centers.double() - origin
    half_norms = (shifted**2).sum(1) / 2
    for start in range(0, len(X), size):
        rows = X[start : start + size]
        labels[start : start + size] = _nearest_in_block(rows, centers, rows.double() - origin, shifted, half_norms)
    return labels


def _nearest_in_block(
    rows: torch.Tensor, centers: torch.Tensor, moved_rows: torch.Tensor, shifted: torch.Tensor, half_norms: torch.Tensor
) -> torch.Tensor:
    """Labels of a block. A label is accepted if the two best scores |c|²/2 - x·c differ by more than rounding."""
    if len(centers) == 1:
        return torch.zeros(len(rows), dtype=torch.int32, device=rows.device)
    scores = half_norms - moved_rows @ shifted.T
    best, labels = scores.topk(2, dim=1, largest=False)
    size = moved_rows.norm(dim=1) + shifted.norm(dim=1).max()
    bound = 4 * (rows.shape[1] + 8) * EPSILON * size**2  # of the rounding of scores, shifts and distances
    unsure = torch.nonzero(~(best[:, 1] - best[:, 0] > bound)).ravel()
    labels = labels[:, 0].int()
    if len(unsure):
        labels[unsure] = by_definition(rows[unsure], centers)
    return labels


def by_definition(X: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """First nearest center by float64 squares, added in the order of the columns."""
    labels = torch.empty(len(X), dtype=torch.int32, device=X.device)
    size = max(1, BLOCK // max(1, len(centers)))
    columns = centers.double().T.contiguous()
    for start in range(0, len(X), size):
        rows = X[start : start + size].double()
        unit = _unit(rows, columns)
        total = torch.zeros(len(rows), len(centers), dtype=torch.float64, device=X.device)
        for x, c in zip(rows.T, columns, strict=True):
            difference = (x[:, None] - c) / unit
            total += difference * difference
        labels[start : start + size] = first_minimum(total)
    return labels


def first_minimum(values: torch.Tensor) -> torch.Tensor:
    """Index of the first minimum of every row; `argmin` of PyTorch may return any of them."""
    count = torch.arange(values.shape[1], device=values.device, dtype=torch.int32)
    return torch.where(values == values.min(1, keepdim=True).values, count, values.shape[1]).min(1).values


def squares(X: torch.Tensor, centers: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Squared distance (n,) of each row to the center of its cluster, in float64."""
    total = torch.empty(len(X), dtype=torch.float64, device=X.device)
    size = max(1, BLOCK // X.shape[1])
    for start in range(0, len(X), size):
        rows = slice(start, start + size)
        difference = X[rows].double() - centers[labels[rows].long()].double()
        unit = _unit(difference)
        total[rows] = ((difference / unit) ** 2).sum(1) * unit**2
    return total


def _unit(*values: torch.Tensor) -> torch.Tensor:
    """A power of two near the largest value, so that no square overflows; 1 if all values are 0."""
    largest = torch.stack([v.abs().max() if v.numel() else v.new_zeros(()) for v in values]).max()
    return torch.where(largest > 0, torch.exp2(torch.ceil(torch.log2(largest))), torch.ones_like(largest))
