"""Arrays on a device. Kernels use their tensors; NumPy functions copy the values to main memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

HALF = (torch.float16, torch.bfloat16)
NUMPY_TYPES = {
    torch.float64: np.float64,
    torch.float32: np.float32,
    torch.float16: np.float32,  # centers and distances of half-precision rows are float32
    torch.bfloat16: np.float32,
    torch.int32: np.int32,
    torch.int64: np.int64,
    torch.bool: np.bool_,
}
TORCH_TYPES = {np.dtype(value): key for key, value in NUMPY_TYPES.items() if key not in HALF}


class DeviceArray:
    """A tensor (n, d) or (n,) that code written for NumPy can use.

    It has the shape and the dtype of an array. Selected values, and results of NumPy functions, are arrays in main
    memory. So only the kernels, which use `tensor`, compute on the device.
    """

    __slots__ = ("state", "tensor")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.state: Any = None  # data that kernels compute once for these rows

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(NUMPY_TYPES[self.tensor.dtype])

    @property
    def ndim(self) -> int:
        return self.tensor.ndim

    def __len__(self) -> int:
        return len(self.tensor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return as_numpy(self.tensor).astype(dtype or self.dtype, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*(np.asarray(x) if isinstance(x, DeviceArray) else x for x in inputs), **options)

    def __getitem__(self, rows: Any) -> np.ndarray:
        return as_numpy(self.tensor[_index(rows, self.tensor.device)])

    def __setitem__(self, rows: Any, values: Any) -> None:
        self.tensor[_index(rows, self.tensor.device)] = as_tensor(values, self.tensor.device).to(self.tensor.dtype)

    def fill(self, value: float) -> None:
        self.tensor.fill_(value)

    def astype(self, dtype: Any, copy: bool = True) -> DeviceArray:
        kind = TORCH_TYPES[np.dtype(dtype)]
        return DeviceArray(self.tensor.to(kind)) if copy or self.tensor.dtype != kind else self

    def __gt__(self, other: Any) -> np.ndarray:
        return np.asarray(self) > other

    def max(self, initial: float | None = None) -> Any:
        return np.asarray(self).max(**({} if initial is None else {"initial": initial}))


def as_tensor(values: Any, device: Any = None) -> torch.Tensor:
    """Values as a tensor on `device`, without a copy if they are there."""
    if isinstance(values, DeviceArray):
        values = values.tensor
    if not isinstance(values, torch.Tensor):
        values = torch.from_numpy(np.ascontiguousarray(values))
    return values if device is None else values.to(device)


def as_numpy(tensor: torch.Tensor) -> np.ndarray:
    """A tensor as an array in main memory; half-precision values become float32."""
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype in HALF else tensor).cpu().numpy()


def _index(rows: Any, device: torch.device) -> Any:
    return rows if isinstance(rows, slice | int | tuple) else as_tensor(np.asarray(rows), device)
