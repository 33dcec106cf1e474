"""Pause Python's garbage collection while many objects are created that stay, as by a compiler."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """No collection within this context, unless a context of another thread ends meanwhile.

    It has no state that all threads share: a thread that never ends must not leave the collection off.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
