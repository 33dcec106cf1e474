"""Kernels for rows on a device, in PyTorch. On NVIDIA GPUs, Triton kernels compute labels, sums and costs.

Rows are `DeviceArray` objects, and so are results with one value per row that the next pass needs. Other results are
NumPy arrays. All sums have a fixed order, or are sums of integers, so the same bits result in every run.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch

from coterie.kernels.cuda import exact, sampling
from coterie.kernels.cuda.cluster_sums import by_cluster
from coterie.kernels.cuda.device_array import TORCH_TYPES, DeviceArray, as_numpy, as_tensor
from coterie.kernels.cuda.fuzzy import fuzzy, memberships
from coterie.kernels.cuda.gaussian import em, log_joint, weighted_sums
from coterie.kernels.cuda.squares import squares
from coterie.kernels.plain import arrivals

__all__ = [
    "DeviceArray",
    "arrivals",
    "as_tensor",
    "assigned_squares",
    "distances",
    "draw",
    "em",
    "fuzzy",
    "lloyd",
    "log_joint",
    "memberships",
    "moments",
    "move_centers",
    "nearest",
    "plusplus_rounds",
    "potentials",
    "row_values",
    "take",
    "unit_rows",
    "weighted_sums",
]  # fmt: skip

BLOCK = 1 << 24  # number of values in memory at once
MAX_CENTERS = 1 << 18  # of the Triton kernels
MAX_CANDIDATES = 15  # of a round of k-means++, in the Triton kernels
LOST = 2.0**-10  # costs below this fraction of the sum of squares are computed from differences


class Sums(NamedTuple):
    """Sums of one pass of K-means; `sum_dx` is where the centers are."""

    weight: np.ndarray  # (k,) of w
    sum_dx: Any  # (k, d) of w (x - c), a tensor or an array
    cost: np.ndarray  # (k,) of w |x - c|²
    moved: int  # number of rows whose label changed


def lloyd(X: DeviceArray, w: Any, centers: Any, previous: Any, labels: Any, lower: Any) -> Sums:
    """Assign each row to its nearest center, update `labels` (n,), and return the sums of all clusters."""
    is_on_host = isinstance(centers, np.ndarray)
    home = as_tensor(centers).device
    centers = as_tensor(centers, X.tensor.device).contiguous()
    last = as_tensor(labels, X.tensor.device)
    sums = _equal_weights(X, centers, last) if w is None and _has_triton(X, len(centers)) else None
    if sums is None:
        new = nearest(X, centers).tensor
        moved = int((new != last).sum())
        last.copy_(new)
        sums = _sums(X, w, centers, last, moved)
    if isinstance(labels, np.ndarray):
        labels[:] = as_numpy(last)
    return sums._replace(sum_dx=as_numpy(sums.sum_dx) if is_on_host else sums.sum_dx.to(home))


def _equal_weights(X: DeviceArray, centers: torch.Tensor, labels: torch.Tensor) -> Sums | None:
    """Sums by a pass of Triton kernels; None if centers are too far away for it."""
    k = len(centers)
    state = _certified(X)
    sum_dx, on_device = state.pass_of(k)(state.rows, centers, labels)
    host = as_numpy(on_device)
    (weight, cost, squares), (moved, out_of_range) = host[:-2].reshape(3, k).copy(), host[-2:]
    if out_of_range:
        labels.fill_(-1)
        return None
    if not cost.sum() > LOST * squares.sum():
        cost = _sums(X, None, centers, labels, 0).cost
    return Sums(weight, sum_dx, np.maximum(cost, 0.0), int(moved))


def _sums(X: DeviceArray, w: Any, centers: torch.Tensor, labels: torch.Tensor, moved: int) -> Sums:
    """Sums of all clusters, from differences, in float64."""
    rows, weight = X.tensor, None if w is None else as_tensor(w, X.tensor.device)

    def values_of(index: torch.Tensor) -> torch.Tensor:
        difference = rows[index].double() - centers[labels[index].long()].double()
        square = (difference**2).sum(1, keepdim=True)
        values = torch.cat([torch.ones_like(square), difference, square], dim=1)
        return values if weight is None else values * weight[index].double()[:, None]

    if len(rows) == 0:
        total = torch.zeros(len(centers), rows.shape[1] + 2, dtype=torch.float64, device=rows.device)
    else:
        total = by_cluster(values_of, labels, len(centers))
    return Sums(as_numpy(total[:, 0]), total[:, 1:-1].contiguous(), as_numpy(total[:, -1]), moved)


def nearest(X: DeviceArray, centers: Any) -> DeviceArray:
    """Index (n,) of the nearest center, the first one if several are; columns are added in order, in float64."""
    centers = as_tensor(centers, X.tensor.device).contiguous()
    if _has_triton(X, len(centers)):
        rows = _certified(X).rows
        rows.scan(centers)
        if not rows.out_of_range:
            return DeviceArray(rows.labels.clone())
    return DeviceArray(exact.nearest(X.tensor, centers))


def move_centers(
    centers: DeviceArray, sum_dx: torch.Tensor, weight: np.ndarray, is_free: np.ndarray
) -> tuple[DeviceArray, torch.Tensor]:
    """The free centers plus the mean differences of their rows; and the squared movement of each center (k,)."""
    before = centers.tensor
    size = as_tensor(np.where(is_free, weight, np.inf), before.device)
    if before.is_cuda and find_spec("triton") is not None:
        from coterie.kernels.cuda import lloyd_pass

        after, steps = lloyd_pass.move_centers(before, sum_dx.contiguous(), size)
        return DeviceArray(after), steps
    after = (before.double() + sum_dx / size[:, None]).to(before.dtype)
    return DeviceArray(after), (after.double() - before.double()).square().sum(1)


def assigned_squares(X: DeviceArray, centers: Any, labels: Any) -> np.ndarray:
    """Squared distance (n,) of each row to the center of its cluster."""
    device = X.tensor.device
    return as_numpy(exact.squares(X.tensor, as_tensor(centers, device), as_tensor(labels, device)))


def distances(X: DeviceArray, centers: Any) -> DeviceArray:
    """Euclidean distances (n, k)."""
    rows, points = X.tensor, as_tensor(centers, X.tensor.device).double()
    result = torch.empty(len(rows), len(points), dtype=TORCH_TYPES[X.dtype], device=rows.device)
    size = max(1, BLOCK // len(points))
    for start in range(0, len(rows), size):
        result[start : start + size] = squares(rows[start : start + size], points).sqrt_()
    return DeviceArray(result)


def moments(X: DeviceArray, w: Any, pivot: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Sums of w, of w (x - pivot) (d,) and of w (x - pivot)² (d,)."""
    rows, center = X.tensor, as_tensor(pivot, X.tensor.device)
    weight = None if w is None else as_tensor(w, rows.device)
    totals = torch.zeros(2, rows.shape[1], dtype=torch.float64, device=rows.device)
    size = max(1, BLOCK // rows.shape[1])
    for start in range(0, len(rows), size):
        shifted = rows[start : start + size].double() - center
        weighted = shifted if weight is None else shifted * weight[start : start + size, None]
        totals += torch.stack([weighted.sum(0), (weighted * shifted).sum(0)])
    sum_x, sum_xx = as_numpy(totals)
    return float(len(rows)) if weight is None else float(weight.sum()), sum_x, sum_xx


def potentials(X: DeviceArray, w: Any, unit: float, points: np.ndarray, closest: DeviceArray) -> np.ndarray:
    """Potentials of k-means++ (m,): sums of w `closest` after adding point 0 as a center, and then each other point."""
    weight = None if w is None else as_tensor(w, X.tensor.device)
    if X.dtype == np.float32 and len(points) <= MAX_CANDIDATES + 1 and _has_triton(X, len(points)):
        from coterie.kernels.cuda import seeding_pass

        state = _certified(X)
        extent = state.rows.extent + float(np.abs(np.asarray(points) - state.pivot).max())
        return seeding_pass.potentials(X.tensor, weight, unit, np.asarray(points), closest.tensor, extent)
    return as_numpy(sampling.potentials(X.tensor, weight, unit, as_tensor(points, X.tensor.device), closest.tensor))


def draw(closest: DeviceArray, w: Any, u: np.ndarray) -> tuple[float, np.ndarray]:
    """The sum of w `closest`, and rows (m,) sampled with these probabilities by uniform numbers `u` (m,)."""
    return sampling.draw(closest.tensor, None if w is None else as_tensor(w, closest.tensor.device), u)


def plusplus_rounds(X: DeviceArray, w: Any, k: int, size: int, unit: float, fixed: np.ndarray | None) -> Any:
    """Rounds of greedy k-means++ with `size` candidates, after `fixed` centers; None if Triton does not support it."""
    if X.dtype != np.float32 or not _has_triton(X, MAX_CANDIDATES) or size > MAX_CANDIDATES:
        return None
    from coterie.kernels.cuda.seeding_rounds import Rounds

    state = _certified(X)
    farthest = 0.0 if fixed is None else float(np.abs(np.asarray(fixed, np.float64) - state.pivot).max())
    weight = None if w is None else as_tensor(w, X.tensor.device)
    return Rounds(X.tensor, weight, k, size, unit, state.rows.extent + max(state.rows.extent, farthest))


def row_values(X: DeviceArray, fill: float, dtype: Any) -> DeviceArray:
    """One value for each row (n,)."""
    return DeviceArray(torch.full((len(X),), fill, dtype=TORCH_TYPES[np.dtype(dtype)], device=X.tensor.device))


def unit_rows(X: DeviceArray) -> DeviceArray:
    """Nonzero rows at unit length. They are first divided by their largest value, so that no square overflows."""
    wide = X.tensor.double()
    wide = wide / wide.abs().amax(1, keepdim=True)
    return DeviceArray((wide / wide.square().sum(1, keepdim=True).sqrt()).to(TORCH_TYPES[X.dtype]))


def take(X: DeviceArray, rows: Any) -> np.ndarray:
    """The given rows, in main memory."""
    return X[rows]


def _has_triton(X: DeviceArray, k: int) -> bool:
    """Whether the Triton kernels support these rows and k centers."""
    if not X.tensor.is_cuda or find_spec("triton") is None:
        return False
    from coterie.kernels.cuda.certified import MAX_COLUMNS, MAX_ROWS

    return 0 < X.shape[0] <= MAX_ROWS and X.shape[1] <= MAX_COLUMNS and k <= MAX_CENTERS


class _State:
    """What Triton kernels keep for rows: copies in half precision, and the last pass of K-means."""

    def __init__(self, X: torch.Tensor) -> None:
        from coterie.kernels.cuda.certified import CertifiedRows

        self.rows, self.last_pass = CertifiedRows(X), None
        self.pivot = as_numpy(self.rows.pivot)

    def pass_of(self, k: int) -> Any:
        """The pass with k clusters; its state stays until another number of clusters is used."""
        from coterie.kernels.cuda.lloyd_pass import LloydPass

        if self.last_pass is None or self.last_pass.k != k:
            self.last_pass = LloydPass(self.rows, k)
        return self.last_pass


def _certified(X: DeviceArray) -> _State:
    """The state of rows; computed once."""
    if "half precision" not in X.state:
        X.state["half precision"] = _State(X.tensor)
    return X.state["half precision"]
