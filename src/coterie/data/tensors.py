"""Conversion of PyTorch tensors to arrays."""

from __future__ import annotations

import sys
from typing import Any

from coterie.errors import InputError


def as_array(X: Any) -> Any:
    """A tensor as an array, not copied if in main memory, with float32 for 16-bit floats; other data unchanged."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(X, torch.Tensor):
        return X
    if X.layout != torch.strided:
        raise InputError(
            f"X is a tensor with layout {X.layout}, which is not supported: pass X.to_dense(), or a SciPy CSR matrix"
        )
    X = X.detach().cpu()
    return (X.float() if X.dtype in (torch.float16, torch.bfloat16) else X).numpy()
