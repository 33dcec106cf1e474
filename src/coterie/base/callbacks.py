"""The options `callback` and `verbose`: call the user's function, and show the progress of a fit."""

from typing import Any

from coterie.core.progress import Callback, check_callback, silent
from coterie.core.progress_bar import verbose_callback
from coterie.kernels import compile_notice


def callbacks(callback: Any, verbose: Any, *others: Callback) -> Callback:
    """One callback that calls `others`, the user's `callback`, and, if `verbose`, one that shows the progress."""
    checked, shown = check_callback(callback), verbose_callback(verbose)
    if verbose:
        compile_notice.print_when_compiling()
    functions = [function for function in (*others, checked, shown) if function is not None]
    return (lambda progress: bool(sum(bool(function(progress)) for function in functions))) if functions else silent
