"""Conversion of PyTorch tensors to arrays."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from coterie.errors import InputError


def is_tensor(X: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def as_array(X: Any) -> np.ndarray[Any, Any]:
    """Convert a tensor to an array, without a copy if it is in main memory; float16 and bfloat16 become float32."""
    torch = sys.modules["torch"]
    if X.layout != torch.strided:
        raise InputError(
            f"X is a tensor with layout {X.layout}, which is not supported: pass X.to_dense(), or a SciPy CSR matrix"
        )
    X = X.detach().cpu()
    rows: np.ndarray[Any, Any] = (X.float() if X.dtype in (torch.float16, torch.bfloat16) else X).numpy()
    return rows
