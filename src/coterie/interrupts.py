"""Ctrl-C during a computation: noted at once, raised where no lock is held and no result is lost.

Python runs its handler of Ctrl-C between any two instructions of the main thread. Some of these belong to Numba, which
calls Python functions to unpack results and then ignores their exceptions: a `KeyboardInterrupt` raised there ends as
`SystemError`. Others hold locks, or have a result that is not stored yet. Within `deferred` the handler only notes
Ctrl-C; `check` raises it between two parts of the work, and so does every compiled kernel when it is done. A second
Ctrl-C before that is raised at once. A handler other than Python's own is never replaced.
"""

from __future__ import annotations

import os
import threading
from _signal import SIGINT, default_int_handler  # type: ignore[import-not-found]  # without the enums of `signal`: faster
from _signal import getsignal as get_handler
from _signal import signal as set_handler
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class Cancelled(BaseException):
    """Raised in a worker thread when the thread that waits for its result has stopped waiting."""


class Group:
    """Calls that run in several threads for one caller, who may cancel them all."""

    def __init__(self) -> None:
        self.parent, self.cancelled = _thread.group, False

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """``function(*args)`` as one of the calls."""
        before = _thread.group
        _thread.group = self
        try:
            check()
            return function(*args)
        finally:
            _thread.group = before


class _Thread(threading.local):
    group: Group | None = None  # that this thread is working for
    keeps = False  # whether a computation that keeps its best result is under way


class _Request:
    """Whether Ctrl-C was pressed and is not raised yet, and which thread receives it."""

    def __init__(self) -> None:
        self.pending, self.main = False, threading.main_thread().ident


_thread, _request = _Thread(), _Request()
_critical: set[CodeType] = set()


def critical(function: Function) -> Function:
    """Decorator of functions that even a second Ctrl-C must not leave halfway: they take and give back locks."""
    _critical.add(function.__code__)
    return function


class deferred:
    """Context in which Ctrl-C is raised by `check`, or at the end, and nowhere else. It can be nested.

    It does nothing outside the main thread, or if the program has a handler of Ctrl-C of its own.
    """

    @critical
    def __enter__(self) -> None:
        self._installed = can_defer()
        if self._installed:
            _request.pending = False
            set_handler(SIGINT, _note)

    @critical
    def __exit__(self, *_: object) -> None:
        if self._installed:
            _restore()
            if _request.pending:
                _request.pending = False
                raise KeyboardInterrupt


def can_defer() -> bool:
    """Whether Ctrl-C would be raised here by Python's own handler."""
    return threading.get_ident() == _request.main and get_handler(SIGINT) is default_int_handler


def check() -> None:
    """Raise `KeyboardInterrupt` if Ctrl-C was pressed in this context, `Cancelled` if the caller stopped waiting."""
    group = _thread.group
    while group is not None:
        if group.cancelled:
            raise Cancelled
        group = group.parent
    if _request.pending and threading.get_ident() == _request.main:
        _request.pending = False
        raise KeyboardInterrupt


@contextmanager
def outermost() -> Iterator[bool]:
    """Whether the computation within is the one that the user called, and so keeps its best result after Ctrl-C.

    Others are steps of a larger computation, which must hear of it: they raise `KeyboardInterrupt`.
    """
    before = _thread.keeps
    _thread.keeps = True
    try:
        yield not before and _thread.group is None
    finally:
        _thread.keeps = before


def cause(error: SystemError) -> BaseException:
    """What a signal handler raised within compiled code, which comes out of it as the cause of a `SystemError`."""
    found: BaseException = error
    while isinstance(found, SystemError) and found.__cause__ is not None:
        found = found.__cause__
    return found


def _note(_: int, frame: FrameType | None) -> None:
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
    if get_handler(SIGINT) is _note:
        set_handler(SIGINT, default_int_handler)


def _after_fork() -> None:
    """A child process starts with Python's own handler."""
    global _thread, _request
    _thread, _request = _Thread(), _Request()
    _restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
