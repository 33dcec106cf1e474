"""Responsibilities from log densities, in PyTorch; for the definitions see `plain.posteriors` and `plain.gaussian`."""

from __future__ import annotations

from typing import Any

import torch

from coterie.kernels.cuda.device_array import DeviceArray, as_tensor
from coterie.kernels.cuda.exact import first_minimum


def posteriors(
    scores: Any, offset: Any, w: Any, e_step: str = "soft", known: Any = None, u: Any = None
) -> tuple[DeviceArray, float, float]:
    """Responsibilities times weights (n, k), log-likelihood and bound."""
    scores = as_tensor(scores)
    device = scores.device
    w, known, u = (None if values is None else as_tensor(values, device) for values in (w, known, u))
    resp, per_row, bound = posterior(scores + as_tensor(offset, device), e_step, known, u)
    if w is None:
        logs = torch.stack([per_row.sum(), bound.sum()])
    else:
        resp *= w[:, None]
        logs = torch.stack([w @ per_row, w @ bound])
    likelihood, total_bound = logs.tolist()
    return DeviceArray(resp), likelihood, total_bound


def posterior(
    joint: torch.Tensor, e_step: str = "soft", known: torch.Tensor | None = None, u: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Responsibilities (n, k) from log p(x, z) (n, k); log p(x) and the term of the bound for each row (n,)."""
    k = joint.shape[1]
    component = torch.arange(k, device=joint.device)
    if known is not None:
        is_excluded = (known >= 0)[:, None] & (known[:, None] != component)
        joint = joint.masked_fill(is_excluded, -torch.inf)
    maximum = joint.amax(1, keepdim=True)
    resp = (joint - maximum).exp_()
    total = resp.sum(1, keepdim=True)
    resp /= total
    per_row = (maximum + total.log())[:, 0]
    if e_step == "soft":
        return resp, per_row, per_row
    if e_step == "hard":
        chosen = first_minimum(-joint).long()
    else:
        assert u is not None
        chosen = (resp.cumsum(1) <= u[:, None]).sum(1).clamp_(max=k - 1)
    return (chosen[:, None] == component).double(), per_row, joint.gather(1, chosen[:, None])[:, 0]
