"""Matrix products of rows on a device, in float64; for the definitions see `plain.products`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from coterie.kernels.cuda.device_array import DeviceArray, as_numpy, as_tensor


def products(X: DeviceArray, table: np.ndarray) -> DeviceArray:
    """Inner products (n, k) of all rows of `X` (n, d) and `table` (k, d)."""
    return DeviceArray(X.tensor @ as_tensor(table, X.tensor.device).T)


def weighted_sums(X: DeviceArray, resp: Any) -> np.ndarray:
    """Sums (k, d) of the rows, weighted by each column of `resp` (n, k)."""
    return as_numpy(as_tensor(resp, X.tensor.device).T @ X.tensor)


def one_hot(codes: DeviceArray, observed: DeviceArray, width: int) -> DeviceArray:
    """Rows (n, width) with 1 at the positions `codes` (n, d) of the observed values, and 0 elsewhere."""
    rows = torch.zeros(len(codes), width, dtype=torch.float64, device=codes.tensor.device)
    return DeviceArray(rows.scatter_(1, codes.tensor.long(), observed.tensor.double()))
