"""The options `callback` and `verbose`: call the user's function, and print the progress of a fit."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from coterie.core.clock import Now, time_left_text
from coterie.core.progress import Callback, Progress, check_callback
from coterie.kernels import compile_notice

PRINT_INTERVAL = 1.0  # minimum number of seconds between two printed lines


def callbacks(callback: Any, verbose: Any, *others: Callback) -> Callback:
    """One callback that calls `others`, the user's `callback`, and, if `verbose`, a printer of progress."""
    checked = check_callback(callback)
    printer = ProgressPrinter(every=int(verbose) > 1) if verbose else None
    if verbose:
        compile_notice.print_when_compiling()
    functions = [function for function in (*others, checked, printer) if function is not None]
    return lambda progress: bool(sum(bool(function(progress)) for function in functions))


class ProgressPrinter:
    """Prints the progress of a fit: about once a second, or after `every` iteration."""

    def __init__(self, every: bool = False, now: Now = time.monotonic) -> None:
        self.every, self.now, self.last = every, now, -np.inf

    def __call__(self, progress: Progress) -> None:
        if not self.every and self.now() - self.last < PRINT_INTERVAL:
            return
        self.last = self.now()
        left = time_left_text(progress.left)
        line = f"restart {progress.run + 1}, iteration {progress.iteration}: objective {progress.objective:.6g}"
        print(f"{line}, {left}" if left else line)
