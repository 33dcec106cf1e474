"""Ctrl-C during a computation: it is recorded, and raised where no lock is held and no result is lost.

Python can run its handler of Ctrl-C between any two instructions of the main thread. Some of these belong to Numba,
which calls Python functions to unpack results and then ignores their exceptions: a `KeyboardInterrupt` raised there
becomes a `SystemError`. Others hold locks, or have a result that is not stored yet. Within `deferred` the handler only
records Ctrl-C. `check` raises it between two parts of the computation, and so does every compiled kernel at its end. A
second Ctrl-C before that is raised at once. A handler other than Python's own is never replaced.

A computation in another thread is interrupted in the same way by the `Request` with which it runs.
"""

import os
import threading
import warnings
from _signal import SIGINT, default_int_handler  # type: ignore[import-not-found]  # without the enums of `signal`: faster
from _signal import getsignal as get_handler
from _signal import signal as set_handler
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, TypeVar

from coterie.errors import FitInterruptedWarning

Function = TypeVar("Function", bound=Callable[..., Any])


class Cancelled(BaseException):
    """Raised in a worker thread when the thread that waits for its result has stopped waiting."""


class Group:
    """Calls in several threads that one caller waits for, and can cancel together."""

    def __init__(self) -> None:
        self.parent, self.cancelled = _thread.group, False

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return ``function(*args)``, computed as one of the calls."""
        previous = _thread.group
        _thread.group = self
        try:
            check()
            return function(*args)
        finally:
            _thread.group = previous


class Request:
    """An interrupt of the computation in one thread, which other threads make: ``request.pending = True``."""

    def __init__(self, thread: int | None = None) -> None:
        self.pending, self.thread = False, thread

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Context in which this request interrupts the computation of this thread."""
        previous, _thread.request, self.thread = _thread.request, self, threading.get_ident()
        try:
            yield
        finally:
            _thread.request = previous


class _Thread(threading.local):
    group: Group | None = None  # of the call that this thread computes
    request: Request | None = None  # that interrupts this thread, if it is not Ctrl-C
    keeps = False  # whether a computation is running that keeps its best result after Ctrl-C


_thread, _request = _Thread(), Request(threading.main_thread().ident)  # Ctrl-C, which the main thread receives
_critical: set[CodeType] = set()


def critical(function: Function) -> Function:
    """Decorator of functions that a second Ctrl-C must not interrupt, because they acquire and release locks."""
    _critical.add(function.__code__)
    return function


class deferred:
    """Context in which Ctrl-C is raised only by `check`, or at its end. It can be nested.

    It has no effect outside the main thread, or if the program has installed its own handler of Ctrl-C.
    """

    @critical
    def __enter__(self) -> None:
        self._installed = can_defer()
        if self._installed:
            _request.pending = False
            set_handler(SIGINT, _record)

    @critical
    def __exit__(self, *_: object) -> None:
        if self._installed:
            _restore()
            if _request.pending:
                _request.pending = False
                raise KeyboardInterrupt


def can_defer() -> bool:
    """Whether this is the main thread, and Python's own handler of Ctrl-C is installed."""
    return threading.get_ident() == _request.thread and get_handler(SIGINT) is default_int_handler


def check() -> None:
    """Raise `KeyboardInterrupt` after Ctrl-C or a request, or `Cancelled` if the caller has stopped waiting."""
    group = _thread.group
    while group is not None:
        if group.cancelled:
            raise Cancelled
        group = group.parent
    request = _thread.request or _request
    if request.pending and threading.get_ident() == request.thread:
        request.pending = False
        raise KeyboardInterrupt


def is_outermost() -> bool:
    """Whether a computation that starts now is called by the user, and is not a step of a larger one."""
    return not _thread.keeps and _thread.group is None


@contextmanager
def outermost() -> Iterator[bool]:
    """Context that yields whether the computation was called by the user, and so keeps its best result after Ctrl-C.

    Other computations are steps of a larger one, which must be interrupted, too: they raise `KeyboardInterrupt`.
    """
    previous, is_first = _thread.keeps, is_outermost()
    _thread.keeps = True
    try:
        yield is_first
    finally:
        _thread.keeps = previous


def keep_result(
    error: BaseException, is_outermost: bool, has_result: bool, kept: str = "the best result so far is kept"
) -> None:
    """Warn that an interrupted computation keeps its result; raise the error again if it cannot, or is not Ctrl-C."""
    if not (is_outermost and has_result and isinstance(error, KeyboardInterrupt)):
        raise error
    if _thread.request is None:  # who makes a request knows that the result is not complete
        warnings.warn(f"interrupted: {kept}", FitInterruptedWarning, stacklevel=5)


def cause(error: SystemError) -> BaseException:
    """The exception of a signal handler within compiled code, which Numba stores as the cause of a `SystemError`."""
    exception: BaseException = error
    while isinstance(exception, SystemError) and exception.__cause__ is not None:
        exception = exception.__cause__
    return exception


def _record(_: int, frame: FrameType | None) -> None:
    if not _request.pending or _within_critical(frame):
        _request.pending = True
        return
    _restore()
    _request.pending = False
    raise KeyboardInterrupt


def _within_critical(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code not in _critical:
        frame = frame.f_back
    return frame is not None


def _restore() -> None:
    if get_handler(SIGINT) is _record:
        set_handler(SIGINT, default_int_handler)


def _after_fork() -> None:
    """Reset the state of a child process, which starts with Python's own handler."""
    global _thread, _request
    _thread, _request = _Thread(), Request(threading.main_thread().ident)
    _restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
