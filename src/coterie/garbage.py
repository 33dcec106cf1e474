"""Pause Python's garbage collection while many objects are created that stay: imports and compilers.

A collection looks at all objects of the process, and finds next to nothing to delete at such times.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_n_pauses, _was_enabled = 0, False


@contextmanager
def no_collection() -> Iterator[None]:
    """No collection within this context, in any thread. It is on again after the last of several contexts."""
    global _n_pauses, _was_enabled
    with _lock:
        if _n_pauses == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _n_pauses += 1
    try:
        yield
    finally:
        with _lock:
            _n_pauses -= 1
            if _n_pauses == 0 and _was_enabled:
                gc.enable()
