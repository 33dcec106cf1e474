"""Files that are read as rows without being loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coterie.core.errors import InputError


def open_npy(path: str | Path) -> np.ndarray[Any, Any]:
    """An .npy file, memory-mapped."""
    path = Path(path)
    if path.suffix != ".npy":
        raise InputError(f"X is the path {str(path)!r}; only .npy files are opened by path, load others first")
    try:
        rows: np.ndarray[Any, Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return rows
    except FileNotFoundError:
        raise InputError(f"X: there is no file {str(path)!r}") from None
    except (ValueError, EOFError) as error:
        raise InputError(f"X: {str(path)!r} cannot be read as an array of numbers: {error}") from None
