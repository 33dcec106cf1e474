"""PyTorch tensors: as arrays in main memory, and as rows on a device."""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np

from coterie.core.arrays import is_sparse
from coterie.core.protocols import Chunk, Engine
from coterie.data.device_costs import Costs, estimated_costs
from coterie.data.memory import ArraySource, as_row_values, as_weights, memory_source
from coterie.errors import InputError, ParameterError
from coterie.machine import thread_count

DEVICES = ("auto", "cpu", "cuda")
DEVICE = "cuda"  # where the rows of a `TensorSource` are
SPREAD_BYTES = 1 << 28  # of rows for each of several GPUs; fewer rows are on one
INSTALL = 'pip install "coterie[gpu]"'
PART_ROWS = 1 << 27  # of rows that are on the device
STREAMED_PART = 1 << 27  # bytes of a part that is copied to the device in every pass
MAPPED_VALUES = 1 << 26  # that a function of rows receives at once
ROW_BYTES = 96  # memory on the device for the labels, norms and lists of a row
FREE_FRACTION = 0.85  # of the free memory of the device that rows may take


def is_tensor(X: Any) -> bool:
    """Whether `X` is a PyTorch tensor; PyTorch is not imported for it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def is_on_device(X: Any) -> bool:
    """Whether `X` is a tensor on a CUDA device."""
    return is_tensor(X) and X.device.type == "cuda"


def is_float32_table(X: Any) -> bool:
    """Whether `X` has float32 rows on a CUDA device."""
    return is_on_device(X) and X.ndim == 2 and X.dtype == sys.modules["torch"].float32


def as_array(X: Any) -> Any:
    """A tensor as an array, not copied if in main memory, with float32 for 16-bit floats; other data unchanged."""
    if not is_tensor(X):
        return X
    _check_layout(X)
    torch = sys.modules["torch"]
    X = X.detach().cpu()
    return (X.float() if X.dtype in (torch.float16, torch.bfloat16) else X).numpy()


def _check_layout(X: Any) -> None:
    if X.layout != sys.modules["torch"].strided:
        raise InputError(
            f"X is a tensor with layout {X.layout}, which is not supported: pass X.to_dense(), or a SciPy CSR matrix"
        )


def check_device(device: Any) -> str:
    """Return the name of a device if it is valid, and available in this process."""
    if device not in DEVICES:
        raise ParameterError(f"device must be 'auto', 'cpu' or 'cuda'; got {device!r}")
    if device == "cuda" and (problem := device_problem()):
        raise ParameterError(f"device='cuda' {problem}, or use device='cpu'")
    return str(device)


def costs_if_faster_on_gpu(X: Any, k: int) -> Costs | None:
    """Estimated costs of a fit of dense rows in memory with k clusters, if there is a GPU that makes it faster."""
    if not (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f"):
        return None
    n, d = X.shape
    costs = estimated_costs(n, d, k, X.nbytes, thread_count(None), "torch" in sys.modules)
    # PyTorch is imported only for fits that are faster with it.
    return None if costs.gpu >= costs.cpu or find_spec("torch") is None or device_problem() else costs


def device_problem() -> str:
    """Why no CUDA device can be used, and what to do; empty if one is available."""
    try:
        import torch
    except ImportError:
        return f"requires PyTorch, which is not installed: run {INSTALL}"
    if torch.version.cuda is None:
        return f"requires PyTorch for CUDA, but version {torch.__version__} is for the CPU: install a CUDA build of it"
    if not torch.cuda.is_available():
        return "requires an NVIDIA GPU, but PyTorch finds none: check the driver with nvidia-smi"
    return ""


@dataclass(frozen=True)
class TensorSource(ArraySource):
    """Rows on a device, or rows in main memory that are copied there part by part in every pass."""

    X: Any  # (n, d) an array or a tensor
    tensor: Any  # (n, d) the same rows as a tensor on the device, or in main memory
    device: Any  # the first one if there are several
    gives_tensors: bool = False  # whether results with one value per row are tensors, as the rows of the user are
    w: Any = None  # (n,) on the device
    columns: list[str] | None = None
    y: Any = None
    others: tuple[Any, ...] = ()  # other devices; parts are dealt out, and the tensor of all rows is in main memory
    keeps_parts: bool = False  # whether each part stays on its device after its first copy
    _parts: list[_Part] = field(default_factory=list, repr=False, compare=False)

    engine = "cuda"

    @property
    def devices(self) -> tuple[Any, ...]:
        """Devices of the parts: part i is on device i modulo their number."""
        return (self.device, *self.others)

    @property
    def dtype(self) -> np.dtype[Any]:
        from coterie.kernels.cuda.device_array import NUMPY_TYPES

        return np.dtype(NUMPY_TYPES[self.tensor.dtype])

    @property
    def is_float32(self) -> bool:
        """Whether rows are stored in float32; those in half precision only have its `dtype`."""
        return bool(self.tensor.element_size() == 4)

    @property
    def is_resident(self) -> bool:
        """Whether all rows stay on the devices."""
        return self.keeps_parts or bool(self.tensor.device == self.device)

    def parts(self) -> Sequence[_Part]:
        """The parts stay the same, so that kernels can keep what they compute for the rows of a part."""
        if not self._parts:
            self._parts.extend(_Part(self, i, *bounds) for i, bounds in enumerate(pairwise(self._bounds())))
        return self._parts

    def _bounds(self) -> list[int]:
        n, d = self.shape
        size = PART_ROWS if self.is_resident else max(1, STREAMED_PART // (d * self.tensor.element_size()))
        count = max(1, -(-n // size))
        count = min(n, -(-count // len(self.devices)) * len(self.devices))
        return [n * i // count for i in range(count + 1)]

    def pick(self, rows: Any) -> Chunk:
        from coterie.kernels.cuda.device_array import DeviceArray

        w, y = (None if values is None else np.asarray(values) for values in self._row_values(rows))
        return Chunk(np.asarray(DeviceArray(self.tensor)[rows]), w, 0, y)

    def gather(self, rows: Any) -> Chunk:
        """Rows on the device."""
        from coterie.kernels.cuda.device_array import DeviceArray, as_tensor

        index = rows if isinstance(rows, slice) else as_tensor(np.asarray(rows), self.tensor.device)
        w, y = (
            None if values is None else DeviceArray(as_tensor(values, self.device)[_moved(index, self.device)])
            for values in (self.w, self.y)
        )
        return Chunk(DeviceArray(self.tensor[index].to(self.device)), w, 0, y)

    def subset(self, rows: Any) -> TensorSource:
        import torch

        w, y = self._row_values(rows)
        tensor = self.tensor[torch.as_tensor(np.asarray(rows), device=self.tensor.device)]
        source = _on_device(tensor, tensor, self.devices, w, self.columns, y)
        return replace(source, gives_tensors=self.gives_tensors)

    def map_rows(self, function: Callable[[Any], Any], engine: Engine) -> TensorSource:
        """The function is applied to blocks of rows on the device."""
        import torch

        from coterie.kernels.cuda.device_array import TORCH_TYPES, DeviceArray, as_tensor

        tensor = torch.empty(self.shape, dtype=TORCH_TYPES[self.dtype], device=self.tensor.device)
        size = max(1, MAPPED_VALUES // self.shape[1])
        for start in range(0, len(tensor), size):
            rows = DeviceArray(self.tensor[start : start + size].to(self.device).to(tensor.dtype))
            tensor[start : start + size] = as_tensor(function(rows), tensor.device)
        return replace(self, X=tensor, tensor=tensor, _parts=[])

    def allocate(self, fill: Any, dtype: Any) -> list[Any]:
        import torch

        from coterie.kernels.cuda.device_array import TORCH_TYPES, DeviceArray

        kind = TORCH_TYPES[np.dtype(dtype)]
        return [
            DeviceArray(torch.full((stop - start,), fill, dtype=kind, device=self.devices[i % len(self.devices)]))
            for i, (start, stop) in enumerate(pairwise(self._bounds()))
        ]

    def join(self, pieces: list[Any]) -> Any:
        """A tensor on the device if the rows of the user are there, otherwise an array."""
        import torch

        from coterie.kernels.cuda.device_array import as_numpy, as_tensor

        whole = torch.cat([as_tensor(piece, self.device) for piece in pieces])
        return whole if self.gives_tensors else as_numpy(whole)


class _Part:
    """Rows `start` to `stop` of a source. Rows in main memory are copied to the device when they are needed."""

    def __init__(self, source: TensorSource, index: int, start: int, stop: int) -> None:
        from coterie.kernels.cuda.device_array import DeviceArray, as_tensor

        self.index, self.first, self.rows = index, start, source.tensor[start:stop]
        self.device = source.devices[index % len(source.devices)]
        self.w, self.y = (
            None if values is None else DeviceArray(as_tensor(values)[start:stop].to(self.device))
            for values in (source.w, source.y)
        )
        self.resident: Any = None
        if source.is_resident:
            self.resident = DeviceArray(self.rows.to(self.device))
        self.copy: Any = None  # of the rows on the device, while it is made
        self.is_copied: Any = None  # event

    def start_copy(self) -> None:
        """Begin to copy the rows to the device, from pinned memory, while the device computes."""
        if self.resident is not None or self.copy is not None:
            return
        import torch

        pinned = self.rows if self.rows.is_pinned() else self.rows.pin_memory()
        stream = _copy_stream(self.device)
        with torch.cuda.stream(stream):
            self.copy = pinned.to(self.device, non_blocking=True)
            self.is_copied = stream.record_event()

    def __call__(self) -> Chunk:
        if self.resident is not None:
            return Chunk(self.resident, self.w, self.index, self.y, self.first)
        import torch

        from coterie.kernels.cuda.device_array import DeviceArray

        self.start_copy()
        current = torch.cuda.current_stream(self.device)
        current.wait_event(self.is_copied)
        rows, self.copy = self.copy, None
        rows.record_stream(current)
        return Chunk(DeviceArray(rows), self.w, self.index, self.y, self.first)


def _moved(index: Any, device: Any) -> Any:
    return index if isinstance(index, slice) else index.to(device)


@cache
def _copy_stream(device: Any) -> Any:
    import torch

    return torch.cuda.Stream(device)


def tensor_source(X: Any, sample_weight: Any = None, y: Any = None) -> TensorSource:
    """Rows of an array or a tensor on the current CUDA device; a tensor that is on a CUDA device stays there."""
    import torch

    if is_on_device(X):
        tensor = _checked(X.detach())
        w, y = as_weights(as_array(sample_weight), len(tensor)), as_row_values(y, len(tensor))
        return _on_device(X, tensor, (tensor.device,), w, None, y)
    from coterie.data import FileSource, opened

    rows = opened(X)
    if isinstance(rows, FileSource):
        raise InputError("device='cuda' cannot read files in every pass: use scan_files(..., cache='memory') or 'disk'")
    memory = memory_source(rows, as_array(sample_weight), y)
    if is_sparse(memory.X):
        raise InputError("Input X is sparse: device='cuda' needs dense rows. Use device='cpu', or pass X.toarray()")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # rows are never modified
        tensor = torch.from_numpy(memory.X)
    return _on_device(memory.X, tensor, available_devices(), memory.w, memory.columns, memory.y)


def available_devices() -> tuple[Any, ...]:
    """The current CUDA device, then the others that this process can use."""
    import torch

    if DEVICE != "cuda":
        return (torch.device(DEVICE),)
    first = torch.cuda.current_device()
    return tuple(
        torch.device("cuda", (first + i) % torch.cuda.device_count()) for i in range(torch.cuda.device_count())
    )


def _checked(X: Any) -> Any:
    """A tensor (n, d) of floats, contiguous."""
    import torch

    _check_layout(X)
    if X.ndim != 2:
        raise InputError(f"X must have two dimensions, rows and columns; its shape is {tuple(X.shape)}")
    if 0 in X.shape:
        raise InputError(f"X has shape {tuple(X.shape)}: it needs at least one row and one column")
    if X.is_complex():
        raise InputError("Complex data not supported: pass real and imaginary parts as separate columns of X")
    kinds = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
    return (X if X.dtype in kinds else X.double()).contiguous()


def _on_device(X: Any, tensor: Any, devices: tuple[Any, ...], w: Any, columns: Any, y: Any) -> TensorSource:
    """The source of rows that are copied to the devices once if they fit; otherwise they stay in main memory.

    Many rows in main memory are dealt out to all devices. Rows that are on a device stay there.
    """
    from coterie.kernels.cuda.device_array import DeviceArray, as_tensor

    device, *others = devices
    if tensor.is_cuda or tensor.nbytes < SPREAD_BYTES * len(devices):
        others = []
    keeps_parts = bool(others) and _fits(tensor, devices)
    if tensor.device != device and not others and _fits(tensor, (device,)):
        tensor = tensor.to(device)
    elif tensor.device != device and not keeps_parts:
        _pin(tensor)
    w = None if w is None else DeviceArray(as_tensor(w, device))
    return TensorSource(X, tensor, device, is_on_device(X), w, columns, y, tuple(others), keeps_parts)


def _fits(tensor: Any, devices: tuple[Any, ...]) -> bool:
    """Whether rows fit into the free memory of the devices, with their copies in half precision."""
    import torch

    if devices[0].type != "cuda":
        return True
    n, d = tensor.shape
    free = min(torch.cuda.mem_get_info(device)[0] for device in devices) * len(devices)
    return bool(n * (d * tensor.element_size() + 4 * d + ROW_BYTES) <= FREE_FRACTION * free)


def _pin(tensor: Any) -> None:
    """Make the memory of rows accessible to the device, so that copies are fast; if this fails, they are slower."""
    import torch

    if tensor.is_pinned():
        return
    runtime, address = torch.cuda.cudart(), tensor.data_ptr()
    if int(runtime.cudaHostRegister(address, tensor.nbytes, 0)) == 0:
        weakref.finalize(tensor, runtime.cudaHostUnregister, address)
