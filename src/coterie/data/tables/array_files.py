"""Arrays in .npy, .npz and .safetensors files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import is_zipfile

import numpy as np
from numpy.lib.format import MAGIC_PREFIX

from coterie.data.tables.table_size import check_arrays
from coterie.errors import InputError

if TYPE_CHECKING:
    import polars as pl


def load_array(path: Path, mmap_mode: Any = None) -> np.ndarray[Any, Any]:
    """The array in an .npy, .npz or .safetensors file; `mmap_mode` applies to .npy only."""
    suffix = path.suffix.lower()
    if suffix == ".npz":
        if not is_zipfile(path):
            raise ValueError("it is not an .npz file.")
        check_arrays(path)
        with np.load(path, allow_pickle=False) as arrays:
            return _only_table(path, dict(arrays))
    if suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            return _only_table(path, load(path.read_bytes()))
        except SafetensorError as error:
            raise InputError(f'cannot read "{path}": {error}') from error
        except KeyError as error:  # a type that NumPy does not have
            raise InputError(f'"{path}" holds numbers of the type {error.args[0]}: convert them to F32.') from error
    with path.open("rb") as file:
        if file.read(len(MAGIC_PREFIX)) != MAGIC_PREFIX:  # otherwise the error of NumPy is about pickles
            raise ValueError("it is not an .npy file.")
    array: np.ndarray[Any, Any] = np.load(path, mmap_mode=mmap_mode, allow_pickle=False)
    return array


def array_frame(array: np.ndarray[Any, Any], file_name: str) -> pl.DataFrame:
    """An array as a frame with columns x0, x1, and so on."""
    import polars as pl

    if array.ndim != 2:
        raise InputError(f"{file_name} has {array.ndim} dimensions; it needs two, rows and columns.")
    if array.dtype.char not in "efd" and array.dtype.kind not in "iub":
        raise InputError(f"{file_name} holds {array.dtype.name}, not numbers.")
    native = array.dtype.newbyteorder("=")
    array = array.astype(np.float32 if native == np.float16 else native, copy=False)
    return pl.DataFrame({f"x{j}": array[:, j] for j in range(array.shape[1])})


def _only_table(path: Path, arrays: dict[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """The only two-dimensional array of a file."""
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    if len(tables) != 1:
        content = ", ".join(f"{name} {array.shape}" for name, array in sorted(arrays.items())) or "nothing"
        raise InputError(f"{path.name} must hold one array of rows and columns; it holds {content}.")
    return arrays[tables[0]]
