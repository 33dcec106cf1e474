"""How much memory a call needed at its highest point."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from collections.abc import Callable
from pathlib import Path

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_increase(call: Callable[[], object]) -> int:
    """Bytes by which the resident size rose, at its highest, while ``call`` ran."""
    reset_peak()
    before = peak()
    call()
    return peak() - before


def reset_peak() -> None:
    """Where the system can: give back and forget what was used before, so that freed memory hides nothing."""
    gc.collect()
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
    if CLEAR.exists():
        CLEAR.write_text("5")


def peak() -> int:
    # ru_maxrss of a child starts at the size of its parent (Linux keeps it over exec); VmHWM does not.
    if STATUS.exists():
        lines = STATUS.read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
