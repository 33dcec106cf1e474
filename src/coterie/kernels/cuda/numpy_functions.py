"""NumPy functions of arrays on a device: those of a table compute there, all others in main memory.

So code that is written for NumPy, such as the densities of families, runs on a device without a second version.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from coterie.kernels.cuda.device_array import DeviceArray, as_tensor


def _matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    kind = torch.promote_types(a.dtype, b.dtype)
    return torch.matmul(a.to(kind), b.to(kind))


UFUNCS: dict[str, Callable[..., torch.Tensor]] = {  # by the name of the ufunc of NumPy or SciPy
    "absolute": torch.abs,
    "add": torch.add,
    "bitwise_and": torch.bitwise_and,
    "bitwise_or": torch.bitwise_or,
    "divide": torch.div,
    "entr": torch.special.entr,
    "equal": torch.eq,
    "exp": torch.exp,
    "expm1": torch.expm1,
    "floor": torch.floor,
    "gammaln": torch.lgamma,
    "greater": torch.gt,
    "greater_equal": torch.ge,
    "invert": torch.bitwise_not,
    "isfinite": torch.isfinite,
    "isnan": torch.isnan,
    "less": torch.lt,
    "less_equal": torch.le,
    "log": torch.log,
    "log1p": torch.log1p,
    "matmul": _matmul,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "multiply": torch.mul,
    "negative": torch.neg,
    "not_equal": torch.ne,
    "power": torch.pow,
    "sqrt": torch.sqrt,
    "square": torch.square,
    "subtract": torch.sub,
    "xlog1py": torch.special.xlog1py,
    "xlogy": torch.special.xlogy,
}


def ufunc(function: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The result of a ufunc; on the device if it is in the table and has no options but `out`."""
    kernel = UFUNCS.get(function.__name__) if method == "__call__" else None
    out = options.get("out", (None,))[0]
    if kernel is None or options.keys() - {"out"} or not (out is None or isinstance(out, DeviceArray)):
        options = {name: _in_main_memory(value) for name, value in options.items()}
        return getattr(function, method)(*map(_in_main_memory, inputs), **options)
    device = next(each.tensor.device for each in inputs if isinstance(each, DeviceArray))
    result = kernel(*(_operand(each, device) for each in inputs))
    if out is None:
        return DeviceArray(result)
    out.tensor.copy_(result)
    return out


def function(function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The result of another function; on the device if it is in the table."""
    kernel = FUNCTIONS.get(function)
    if kernel is not None:
        return kernel(*arguments, **options)
    options = {name: _in_main_memory(value) for name, value in options.items()}
    return function(*map(_in_main_memory, arguments), **options)


def _operand(value: Any, device: torch.device) -> torch.Tensor:
    """A tensor; a number has no dimension, so that it does not change the type of the other operand."""
    if isinstance(value, DeviceArray):
        return value.tensor
    if np.ndim(value) == 0:
        return torch.tensor(value.item() if isinstance(value, np.ndarray | np.generic) else value, device=device)
    return as_tensor(np.asarray(value), device)


def _in_main_memory(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_in_main_memory, value))
    return np.asarray(value) if isinstance(value, DeviceArray) else value


def _where(condition: Any, a: Any, b: Any) -> DeviceArray:
    device = next(each.tensor.device for each in (condition, a, b) if isinstance(each, DeviceArray))
    return DeviceArray(torch.where(*(_operand(each, device) for each in (condition, a, b))))


def _concatenate(arrays: Any, axis: int = 0) -> DeviceArray:
    device = next(each.tensor.device for each in arrays if isinstance(each, DeviceArray))
    return DeviceArray(torch.cat([_operand(each, device) for each in arrays], dim=axis))


def _broadcast_to(array: DeviceArray, shape: Any) -> DeviceArray:
    return DeviceArray(array.tensor.broadcast_to(shape if isinstance(shape, tuple) else (shape,)))


def _count_nonzero(array: DeviceArray, axis: int | None = None) -> Any:
    count = torch.count_nonzero(array.tensor, dim=axis)
    return int(count) if axis is None else DeviceArray(count)


def _take_along_axis(array: DeviceArray, index: Any, axis: int) -> DeviceArray:
    return DeviceArray(torch.take_along_dim(array.tensor, as_tensor(index, array.tensor.device), dim=axis))


def _einsum(subscripts: str, *arrays: Any) -> DeviceArray:
    device = next(each.tensor.device for each in arrays if isinstance(each, DeviceArray))
    return DeviceArray(torch.einsum(subscripts, *(_operand(each, device) for each in arrays)))


def _method(name: str, array: DeviceArray, *arguments: Any, **options: Any) -> DeviceArray:
    return getattr(array, name)(*arguments, **options)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.concatenate: _concatenate,
    np.broadcast_to: _broadcast_to,
    np.count_nonzero: _count_nonzero,
    np.einsum: _einsum,
    np.take_along_axis: _take_along_axis,
    **{getattr(np, name): partial(_method, name) for name in ("sum", "any", "all", "max", "min", "argmax", "argmin")},
}
