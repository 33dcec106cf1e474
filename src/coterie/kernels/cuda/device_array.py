"""Arrays on a device that code written for NumPy can use."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin

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


class DeviceArray(NDArrayOperatorsMixin):
    """A tensor on a device with the interface of an array.

    Operators and the NumPy functions in `numpy_functions` compute on the device, and so do methods. Other NumPy
    functions compute in main memory. Slices stay on the device. Rows that are selected by their numbers, or by a mask,
    are copied to main memory, because they are few.
    """

    __slots__ = ("state", "tensor")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.state: dict[str, Any] = {}  # what kernels compute once for these rows

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(NUMPY_TYPES[self.tensor.dtype])

    @property
    def ndim(self) -> int:
        return self.tensor.ndim

    @property
    def size(self) -> int:
        return self.tensor.numel()

    @property
    def T(self) -> DeviceArray:
        return DeviceArray(self.tensor.T)

    def __len__(self) -> int:
        return len(self.tensor)

    # conversions

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return as_numpy(self.tensor).astype(dtype or self.dtype, copy=False)

    def __float__(self) -> float:
        return float(self.tensor)

    def __int__(self) -> int:
        return int(self.tensor)

    def __bool__(self) -> bool:
        return bool(self.tensor)

    def astype(self, dtype: Any, copy: bool = True) -> DeviceArray:
        kind = TORCH_TYPES[np.dtype(dtype)]
        return DeviceArray(self.tensor.to(kind, copy=copy)) if copy or self.tensor.dtype != kind else self

    def reshape(self, *shape: Any) -> DeviceArray:
        return DeviceArray(self.tensor.reshape(*shape))

    def ravel(self) -> DeviceArray:
        return self.reshape(-1)

    # NumPy's functions

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        from coterie.kernels.cuda import numpy_functions

        return numpy_functions.ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        from coterie.kernels.cuda import numpy_functions

        return numpy_functions.function(function, arguments, options)

    # rows

    def __getitem__(self, index: Any) -> Any:
        values = self.tensor[_as_index(index, self.tensor.device)]
        first = index[0] if isinstance(index, tuple) else index
        return DeviceArray(values) if first is None or isinstance(first, slice | int | np.integer) else as_numpy(values)

    def __setitem__(self, index: Any, values: Any) -> None:
        values = as_tensor(values, self.tensor.device).to(self.tensor.dtype)
        self.tensor[_as_index(index, self.tensor.device)] = values

    def fill(self, value: float) -> None:
        self.tensor.fill_(value)

    # reductions

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> DeviceArray:
        kind = None if dtype is None else TORCH_TYPES[np.dtype(dtype)]
        return DeviceArray(self.tensor.sum(dim=axis, dtype=kind, keepdim=keepdims))

    def any(self, axis: Any = None) -> DeviceArray:
        return DeviceArray(self.tensor.any() if axis is None else self.tensor.any(dim=axis))

    def all(self, axis: Any = None) -> DeviceArray:
        return DeviceArray(self.tensor.all() if axis is None else self.tensor.all(dim=axis))

    def max(self, axis: Any = None, keepdims: bool = False, initial: float | None = None) -> DeviceArray:
        return self._extreme(torch.amax, torch.clamp_min, axis, keepdims, initial)

    def min(self, axis: Any = None, keepdims: bool = False, initial: float | None = None) -> DeviceArray:
        return self._extreme(torch.amin, torch.clamp_max, axis, keepdims, initial)

    def argmax(self, axis: int | None = None) -> DeviceArray:
        """Index of the first maximum; that of PyTorch may be any."""
        return self._first(torch.amax, axis)

    def argmin(self, axis: int | None = None) -> DeviceArray:
        return self._first(torch.amin, axis)

    def _extreme(self, reduce: Any, clamp: Any, axis: Any, keepdims: bool, initial: float | None) -> DeviceArray:
        if initial is not None and self.tensor.numel() == 0:
            return DeviceArray(torch.full((), initial, dtype=self.tensor.dtype, device=self.tensor.device))
        values = reduce(self.tensor, dim=() if axis is None else axis, keepdim=keepdims)
        return DeviceArray(values if initial is None else clamp(values, initial))

    def _first(self, reduce: Any, axis: int | None) -> DeviceArray:
        values = self.tensor.ravel() if axis is None else self.tensor
        dim = 0 if axis is None else axis
        count = torch.arange(values.shape[dim], device=values.device)
        count = count.view([-1 if i == dim % values.ndim else 1 for i in range(values.ndim)])
        is_extreme = values == reduce(values, dim=dim, keepdim=True)
        return DeviceArray(torch.where(is_extreme, count, values.shape[dim] - 1).amin(dim=dim))


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


def _as_index(index: Any, device: torch.device) -> Any:
    if isinstance(index, tuple):
        return tuple(_as_index(each, device) for each in index)
    if index is None or isinstance(index, slice | int):
        return index
    return int(index) if isinstance(index, np.integer) else as_tensor(_as_array(index), device)


def _as_array(index: Any) -> Any:
    return index if isinstance(index, DeviceArray | torch.Tensor) else np.asarray(index)
