"""Sums over rows with known clusters, and silhouettes, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from coterie.kernels.cuda.cluster_sums import by_cluster
from coterie.kernels.cuda.device_array import DeviceArray, as_numpy, as_tensor
from coterie.kernels.cuda.squares import squares

BLOCK = 1 << 26  # number of distances in memory at once


def cluster_totals(X: DeviceArray, w: Any, codes: Any, pivots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weight (k,), and sum of the differences from the pivots (k, d), of each cluster."""
    points = as_tensor(pivots, X.tensor.device)

    def values_of(rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        difference = X.tensor[rows].double() - points[labels]
        return torch.cat([torch.ones_like(difference[:, :1]), difference], dim=1)

    total = _sums(X, w, codes, len(pivots), values_of)
    return total[:, 0], total[:, 1:]


def cluster_scatter(
    X: DeviceArray, w: Any, codes: Any, pivots: np.ndarray, offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of squared distances and of distances (k,) of the rows of each cluster to its pivot plus its offset."""
    points, shifts = (as_tensor(each, X.tensor.device) for each in (pivots, offsets))

    def values_of(rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        square = ((X.tensor[rows].double() - points[labels]) - shifts[labels]).square_().sum(1)
        return torch.stack([square, square.sqrt()], dim=1)

    total = _sums(X, w, codes, len(pivots), values_of)
    return total[:, 0], total[:, 1]


def _sums(X: DeviceArray, w: Any, codes: Any, k: int, values_of: Any) -> np.ndarray:
    """Weighted sums by cluster (k, m) of ``values_of(rows, labels)`` (n, m)."""
    device = X.tensor.device
    labels, weights = as_tensor(codes, device).long(), None if w is None else as_tensor(w, device)

    def weighted(rows: torch.Tensor) -> torch.Tensor:
        values = values_of(rows, labels[rows])
        return values if weights is None else values * weights[rows, None]

    return as_numpy(by_cluster(weighted, labels, k))


def simplified_silhouettes(
    distances: DeviceArray, clusters: np.ndarray, w: Any, codes: Any, weight: np.ndarray
) -> np.ndarray:
    """For each cluster, the sum of silhouettes, and the weight of rows that are not alone in it (2, k).

    `distances` are those to the centers of `clusters`, the ones with positive `weight` (k,).
    """
    table = torch.zeros(len(distances), len(weight), dtype=torch.float64, device=distances.tensor.device)
    table[:, as_tensor(clusters, table.device)] = distances.tensor
    labels, sizes = as_tensor(codes, table.device).long(), as_tensor(weight, table.device)
    row_weights = torch.ones(len(table), device=table.device).double() if w is None else as_tensor(w, table.device)
    rest = sizes[labels] - row_weights.clamp(max=1.0)
    own = table.gather(1, labels[:, None])[:, 0]
    others = table.masked_fill(sizes <= 0, torch.inf).scatter(1, labels[:, None], torch.inf).amin(1)
    values = torch.stack([_coefficients(own, others, rest), (rest > 0).double()], dim=1) * row_weights[:, None]
    return as_numpy(by_cluster(values.__getitem__, labels, len(weight))).T


def silhouettes(X: DeviceArray, w: Any, codes: Any, k: int) -> DeviceArray:
    """Silhouettes of all rows (n,), from all their Euclidean distances."""
    rows, device = X.tensor, X.tensor.device
    labels = as_tensor(codes, device).long()
    row_weights = torch.ones(len(rows), device=device).double() if w is None else as_tensor(w, device)
    members = torch.zeros(len(rows), k, dtype=torch.float64, device=device)
    members.scatter_(1, labels[:, None], row_weights[:, None])
    sizes = members.sum(0)
    rest = sizes[labels] - row_weights.clamp(max=1.0)
    values = torch.empty(len(rows), dtype=torch.float64, device=device)
    width = max(1, int(BLOCK**0.5))
    for start in range(0, len(rows), width):
        block = slice(start, start + width)
        sums = torch.zeros(len(rows[block]), k, dtype=torch.float64, device=device)
        for other in range(0, len(rows), width):
            columns = slice(other, other + width)
            sums += squares(rows[block], rows[columns]).sqrt_() @ members[columns]
        own = labels[block, None]
        a = sums.gather(1, own)[:, 0] / torch.where(rest[block] > 0, rest[block], 1.0)
        means = torch.where(sizes > 0, sums / torch.where(sizes > 0, sizes, 1.0), torch.inf)
        values[block] = _coefficients(a, means.scatter(1, own, torch.inf).amin(1), rest[block])
    return DeviceArray(values)


def _coefficients(a: torch.Tensor, b: torch.Tensor, rest: torch.Tensor) -> torch.Tensor:
    """(b - a) / max(a, b); 0 for single rows, whose `rest` weight is 0, and where both are 0."""
    largest = torch.maximum(a, b)
    is_zero = (rest <= 0) | (largest == 0)
    return torch.where(is_zero, 0.0, (b - a) / torch.where(is_zero, 1.0, largest))
