"""PyTorch tensors as arrays."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from coterie.errors import InputError


def is_tensor(X: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def as_array(X: Any) -> np.ndarray[Any, Any]:
    """The numbers of a tensor in this machine's memory, without a copy if they are there already.

    float16 and bfloat16 become float32, which holds every one of their numbers.
    """
    torch = sys.modules["torch"]
    if X.layout != torch.strided:
        raise InputError(f"X is a tensor of layout {X.layout}: pass X.to_dense(), or a SciPy CSR matrix of it")
    X = X.detach().cpu()
    rows: np.ndarray[Any, Any] = (X.float() if X.dtype in (torch.float16, torch.bfloat16) else X).numpy()
    return rows
