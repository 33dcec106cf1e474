"""One message per process when kernels have to be compiled, because the first call then takes seconds."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MESSAGE = "compiling kernels for this machine, once: about 10 s"

_listeners: list[Callable[[str], object]] = []
_is_sent = False


@contextmanager
def listening(listener: Callable[[str], object]) -> Iterator[None]:
    """Call the listener if a kernel is compiled within this context."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def print_when_compiling() -> None:
    """Print the message when the next kernel is compiled."""
    if print not in _listeners:
        _listeners.append(print)


def send() -> None:
    """Send the message, unless it was sent before: to the listener added last, and to the log of the package."""
    global _is_sent
    if not _is_sent:
        _is_sent = True
        logging.getLogger("coterie").info(MESSAGE)
        for listener in _listeners[-1:]:
            listener(MESSAGE)
