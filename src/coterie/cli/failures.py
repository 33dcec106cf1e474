"""Error messages of the command line, and exit codes."""

import sys
import traceback
from enum import IntEnum

from coterie.cli.printable import printable_lines, printable_message
from coterie.cli.streams import say, silence

EXTRA_PACKAGES = ("cyclopts", "polars", "rich")
APP_PACKAGES = ("starlette", "uvicorn")


class Exit(IntEnum):
    """Exit codes of the command line."""

    DONE = 0
    BUG = 1
    USAGE = 2
    DATA = 3
    NOT_CONVERGED = 4
    NOT_CLEAR = 5
    INTERRUPTED = 130
    CLOSED_PIPE = 141


def explain(error: BaseException, *, debug: bool) -> int:
    """Print the message of `error` to standard error, and return the exit code."""
    if isinstance(error, BrokenPipeError):
        silence(sys.stdout)
        return Exit.CLOSED_PIPE
    code, *lines = _verdict(error)
    if debug:
        say(printable_lines("".join(traceback.format_exception(error))))
    for line in lines:
        say(printable_message(line))
    return code


def _verdict(error: BaseException) -> tuple[Exit, *tuple[str, ...]]:
    """The exit code and the lines of the message."""
    interrupt = _interrupt(error)
    if interrupt is not None:
        return Exit.INTERRUPTED, f"Interrupted. {interrupt}".rstrip()
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRA_PACKAGES:
        return Exit.USAGE, 'The command line needs a few more packages. Run: pip install "coterie[cli]"'
    if isinstance(error, ModuleNotFoundError) and error.name in APP_PACKAGES:
        return Exit.USAGE, 'The app needs two more packages. Run: pip install "coterie[app]"'
    if isinstance(error, FileExistsError):
        advice = "Use --force to overwrite it, or choose another file name."
        return Exit.USAGE, f"Error: {error.filename} already exists. {advice}"
    from cyclopts import CycloptsError

    from coterie.errors import ClusterError, InputError, NotConvergedError, ParameterError

    if isinstance(error, CycloptsError | ParameterError):
        return Exit.USAGE, f"Error: {error}"
    if isinstance(error, InputError | ClusterError):
        return Exit.DATA, f"Error: {error}"
    if isinstance(error, NotConvergedError):
        return Exit.NOT_CONVERGED, f"Error: {error}"
    if isinstance(error, MemoryError):
        return Exit.DATA, "Error: there is not enough memory. Use fewer columns or clusters, or --sample."
    if isinstance(error, OSError) and error.filename is not None:
        return Exit.DATA, f'Error: cannot use "{error.filename}": {error.strerror}.'
    if isinstance(error, OSError) and _output_fails():
        return Exit.DATA, f"Error: cannot write to standard output: {error.strerror}. Write it to another place."
    return (
        Exit.BUG,
        f"Error: {type(error).__name__}: {error}",
        "  This is a bug in coterie: please report it with the command you ran. --debug shows the traceback.",
    )


def _output_fails() -> bool:
    """Whether standard output takes nothing; what could not be written is lost, so that a flush alone succeeds."""
    try:
        print(flush=True)
    except OSError:
        silence(sys.stdout)
        return True
    return False


def _interrupt(error: BaseException | None) -> KeyboardInterrupt | None:
    """The `KeyboardInterrupt` that caused the error, if any; compiled code turns it into a `SystemError`."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error
