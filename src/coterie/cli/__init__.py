"""The command line: parse, run a job, render."""

import io
import sys
import warnings
from collections.abc import Sequence
from typing import Any, cast

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``coterie`` with the arguments of the process, or `argv`, and return the exit code."""
    from coterie.cli.failures import explain
    from coterie.cli.streams import open_closed_streams

    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):  # a terminal that has no ``→`` shows ``?``, and the program continues
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    try:
        from coterie.cli.commands import call
        from coterie.cli.screen import show_warning

        with warnings.catch_warnings():
            warnings.showwarning = cast(Any, show_warning)  # without the place in the code
            code = int(call([argument for argument in arguments if argument != "--debug"]))
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        return explain(error, debug=debug)
    return code
