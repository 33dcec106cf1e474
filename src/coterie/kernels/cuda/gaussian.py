"""E-step of Gaussian mixtures in PyTorch; for the definitions see `plain.gaussian`.

Everything is float64, except that full covariances of rows in float32 have a Triton kernel. Rows are relative to the
origin of the components, so that products with means do not cancel. Sums over rows are matrix products of blocks of a
fixed size, added in their order: the same bits in every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch

from coterie.kernels.cuda.device_array import TORCH_TYPES, DeviceArray, as_numpy, as_tensor
from coterie.kernels.cuda.posteriors import posterior
from coterie.kernels.cuda.squares import squares
from coterie.kernels.plain.gaussian import Gaussians, SoftSums

BLOCK = 1 << 26  # number of values in memory at once


class _Components(NamedTuple):
    """Parameters on the device, relative to the origin."""

    offset: torch.Tensor  # (k,)
    means: torch.Tensor  # (k, d)
    factor: torch.Tensor  # (d, k d) all columns of the factors; (d, d) if tied, (k, d) if diagonal, (k, 1) if spherical
    shift: torch.Tensor  # (k d,) the means times the factors, (k, d) if tied; not used for the other forms
    origin: torch.Tensor  # (d,)


def log_joint(X: DeviceArray, g: Gaussians) -> DeviceArray:
    """log p(x, z) of each row and component (n, k)."""
    components = _on_device(g, X.tensor.device)
    result = torch.empty(len(X), len(g.means), dtype=TORCH_TYPES[X.dtype], device=X.tensor.device)
    for rows in _blocks(X, g):
        result[rows] = _joint(X.tensor[rows].double() - components.origin, g.form, components).to(result.dtype)
    return DeviceArray(result)


def em(X: DeviceArray, w: Any, g: Gaussians, e_step: str = "soft", known: Any = None, u: Any = None) -> SoftSums:
    """Sums of one pass of EM."""
    device = X.tensor.device
    if w is None and known is None and e_step == "soft" and (sums := _fast(X, g)) is not None:
        return sums
    components = _on_device(g, device)
    w, known, u = (None if values is None else as_tensor(values, device) for values in (w, known, u))
    sums, logs = _zeros(g, device), torch.zeros(2, dtype=torch.float64, device=device)
    for rows in _blocks(X, g):
        x = X.tensor[rows].double() - components.origin
        weight, labels, numbers = (None if values is None else values[rows] for values in (w, known, u))
        resp, per_row, bound = posterior(_joint(x, g.form, components), e_step, labels, numbers)
        logs += torch.stack([each.sum() if weight is None else weight @ each for each in (per_row, bound)])
        _add(sums, x, resp if weight is None else resp * weight[:, None], g.form)
    return SoftSums(*_about_means(sums, g, components), *as_numpy(logs).tolist())


def _fast(X: DeviceArray, g: Gaussians) -> SoftSums | None:
    """Sums by the Triton kernel; None if it does not support the rows, or if numbers leave its range."""
    if g.form != "full" or not X.tensor.is_cuda or X.dtype != np.float32 or len(X) == 0 or find_spec("triton") is None:
        return None
    from coterie.kernels.cuda.gaussian_pass import MAX_COLUMNS, MAX_COMPONENTS, FullComponents

    if X.shape[1] > MAX_COLUMNS or len(g.means) > MAX_COMPONENTS:
        return None
    if "range" not in X.state:
        X.state["range"] = torch.stack(torch.aminmax(X.tensor, dim=0)).double().cpu().numpy()  # (2, d)
    ends = np.concatenate([X.state["range"], g.means])
    extent = float(np.abs(ends - g.origin).max())
    components = FullComponents(g.means, g.factor, g.offset, g.origin, extent, X.tensor.device)
    sums = components.sums(X.tensor)
    return SoftSums(*sums, sums[-1]) if all(np.isfinite(each).all() for each in sums) else None


def weighted_sums(X: DeviceArray, resp: Any, g: Gaussians) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`weight`, `sum_dx` and `sum_dxx` about the means of `g` for given w r (n, k); the factor of `g` is not used."""
    device = X.tensor.device
    components, resp, sums = _on_device(g, device), as_tensor(resp, device), _zeros(g, device)
    for rows in _blocks(X, g):
        _add(sums, X.tensor[rows].double() - components.origin, resp[rows].double(), g.form)
    return _about_means(sums, g, components)


def _on_device(g: Gaussians, device: torch.device) -> _Components:
    k, d = g.means.shape
    means = as_tensor(g.means - g.origin, device)
    factor = as_tensor(g.factor, device)
    if g.form == "full":
        shift = (means[:, None, :] @ factor).reshape(-1)
        factor = factor.permute(1, 0, 2).reshape(d, k * d).contiguous()
    elif g.form == "tied":
        shift = means @ factor
    else:
        factor = shift = factor.view(k, -1)
    return _Components(as_tensor(g.offset, device), means, factor, shift, as_tensor(g.origin, device))


def _blocks(X: DeviceArray, g: Gaussians) -> Iterator[slice]:
    """Slices of rows. Those of a block and its intermediate results fit into `BLOCK` values."""
    k, d = g.means.shape
    width = 2 * d * (k + d) if g.form == "full" else d * d + 4 * (k + d) if g.form == "tied" else 4 * (k + d)
    size = max(256, BLOCK // width)
    return (slice(start, start + size) for start in range(0, len(X), size))


def _joint(x: torch.Tensor, form: str, c: _Components) -> torch.Tensor:
    """log p(x, z) (n, k) of rows relative to the origin."""
    k = len(c.offset)
    if form == "full":
        whitened = torch.addmm(-c.shift, x, c.factor).view(len(x), k, -1)
        total = torch.linalg.vector_norm(whitened, dim=2).square_()
    elif form == "tied":
        total = squares(x @ c.factor, c.shift)
    else:
        total = squares(x, c.means, c.factor)
    return c.offset - 0.5 * total


def _zeros(g: Gaussians, device: torch.device) -> list[torch.Tensor]:
    """Sums of w r (k,), of w r x (k, d), and of w r x x' by form; for spherical components also by column."""
    k, d = g.means.shape
    second = {"full": (k, d, d), "tied": (d, d)}.get(g.form, (k, d))
    return [torch.zeros(shape, dtype=torch.float64, device=device) for shape in ((k,), (k, d), second)]


def _add(sums: list[torch.Tensor], x: torch.Tensor, resp: torch.Tensor, form: str) -> None:
    weight, sum_x, sum_xx = sums
    weight += resp.sum(0)
    sum_x += resp.T @ x
    if form == "full":
        sum_xx += (resp.T @ (x[:, :, None] * x[:, None, :]).view(len(x), -1)).view_as(sum_xx)
    elif form == "tied":
        sum_xx += (x * resp.sum(1, keepdim=True)).T @ x
    else:
        sum_xx += resp.T @ x.square()


def _about_means(sums: list[torch.Tensor], g: Gaussians, c: _Components) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums about the origin, converted to sums about the means."""
    weight, sum_x, sum_xx = sums
    sum_dx = sum_x - weight[:, None] * c.means
    if g.form in ("full", "tied"):
        cross = sum_dx[:, :, None] * c.means[:, None, :]
        correction = cross + cross.transpose(1, 2) + weight[:, None, None] * c.means[:, :, None] * c.means[:, None, :]
        sum_dxx = sum_xx - (correction if g.form == "full" else correction.sum(0))
    else:
        sum_dxx = sum_xx - 2 * sum_dx * c.means - weight[:, None] * c.means.square()
        sum_dxx = sum_dxx.sum(1) if g.form == "spherical" else sum_dxx
    return as_numpy(weight), as_numpy(sum_dx), as_numpy(sum_dxx)
