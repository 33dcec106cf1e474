"""Standard streams that are closed or full."""

import os
import sys
from typing import TextIO


def open_closed_streams() -> None:
    """Open the null device in place of closed standard streams, so that no other file gets their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def silence(stream: TextIO) -> None:
    """Send all further output of a stream to the null device: the interpreter flushes it once more at exit."""
    with open(os.devnull, "w") as null:
        os.dup2(null.fileno(), stream.fileno())


def say(text: str) -> None:
    """Print to standard error; if it is full, the message is lost, but not the result."""
    try:
        print(text, file=sys.stderr)
    except OSError:
        silence(sys.stderr)
