"""`verbose` of all estimators and functions: a bar in notebooks and terminals, lines in files, or every step."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from html import escape
from shutil import get_terminal_size
from typing import Any, ParamSpec, TypeVar

from coterie.core.clock import Now, time_left_text
from coterie.core.formatting import truncate
from coterie.core.progress import Callback, Progress, check_callback

INTERVALS = {"notebook": 0.2, "terminal": 0.1, "file": 1.0}  # minimum number of seconds between two updates
WIDTH = 20  # characters of the bar
ERASE = "\r\x1b[K"  # to the start of the line, and erase it

P = ParamSpec("P")
R = TypeVar("R")


class ProgressBar:
    """A callback that shows the progress of one computation in one line, which the next step replaces.

    In a notebook the line is an output that is updated. In a terminal it is a line of standard error. If standard error
    is a file, lines are added to it, about one a second. `close` shows the last step; it is also called when the
    callback of a fit is no longer used.
    """

    def __init__(self, now: Now = time.monotonic) -> None:
        self.now, self.began, self.last = now, now(), -float("inf")
        self.pending: Progress | None = None  # the last step, if it is not shown yet
        self.is_open, self.handle = False, None  # whether a line of the terminal has no end; the output of the notebook
        self.place = "notebook" if _kernel() is not None else "terminal" if sys.stderr.isatty() else "file"

    def __call__(self, progress: Progress) -> None:
        self.pending = progress
        if self.now() - self.last >= INTERVALS[self.place]:
            self._show()

    def close(self) -> None:
        """Show the last step, and end the line."""
        if self.pending is not None:
            self._show()
        if self.is_open:
            print(file=sys.stderr, flush=True)
            self.is_open = False

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self.close()

    def _show(self) -> None:
        progress, self.pending = self.pending, None
        assert progress is not None
        self.last = self.now()
        text, share = step_text(progress), self._share(progress)
        if self.place == "notebook":
            self._update(text, share)
        elif self.place == "file":
            print(text, file=sys.stderr)
        else:
            line = text if share is None else f"{_bar(share)} {text}"
            width = get_terminal_size().columns - 1
            print(f"{ERASE}{truncate(line, width)}", end="", file=sys.stderr, flush=True)
            self.is_open = True

    def _share(self, progress: Progress) -> float | None:
        """The share of the work that is done; of a fit by the estimated time left."""
        if progress.total:
            return min(1.0, progress.done / progress.total)
        elapsed = self.now() - self.began
        return None if progress.left is None else elapsed / max(elapsed + progress.left, 1e-9)

    def _update(self, text: str, share: float | None) -> None:
        from IPython.display import display

        bar = "" if share is None else f'<progress value="{share:.4f}" max="1"></progress> '
        data = {"text/plain": text, "text/html": f"<div>{bar}{escape(text)}</div>"}
        if self.handle is None:
            self.handle = display(data, raw=True, display_id=True)
        else:
            self.handle.update(data, raw=True)


def print_step(progress: Progress) -> None:
    """A callback that prints every step."""
    print(step_text(progress))


def step_text(progress: Progress) -> str:
    """A step in words: that of a fit with its objective, others with their number; and the time left."""
    if progress.objective is not None:
        text = f"restart {progress.run + 1}, iteration {progress.iteration}: objective {progress.objective:.6g}"
    else:
        text = progress.step if progress.total is None else f"{progress.step} ({progress.done:,} of {progress.total:,})"
    left = "" if progress.left == 0 else time_left_text(progress.left)
    return f"{text}, {left}" if left else text


def verbose_callback(verbose: Any) -> Callback | None:
    """The callback of `verbose`: None for 0, a bar for 1, and every step for 2."""
    return None if not verbose else print_step if int(verbose) > 1 else ProgressBar()


def both(callback: Callback | None, shown: Callback) -> Callback:
    """The callback of the user, then the one that shows progress; only the first can stop the computation."""

    def report(progress: Progress) -> bool:
        stop = callback is not None and bool(callback(progress))
        shown(progress)
        return stop

    return report


@contextmanager
def shown_progress(callback: Any, verbose: Any) -> Iterator[Callback | None]:
    """The checked callback of the user, together with that of `verbose`, for the duration of a computation."""
    checked, shown = check_callback(callback), verbose_callback(verbose)
    if shown is None:
        yield checked
        return
    try:
        yield both(checked, shown)
    finally:
        if isinstance(shown, ProgressBar):
            shown.close()


def with_verbose(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function with the arguments `callback` and `verbose`, so that `verbose` shows its progress."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        verbose = kwargs.get("verbose", 0)
        if not verbose:
            return function(*args, **kwargs)
        with shown_progress(kwargs.get("callback"), verbose) as callback:
            kwargs["callback"] = callback
            return function(*args, **kwargs)

    return call


def _bar(share: float) -> str:
    full = int(share * WIDTH)
    return f"[{'#' * full}{'.' * (WIDTH - full)}] {share:4.0%}"


def _kernel() -> Any:
    """The kernel of the notebook that runs this process; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None)
