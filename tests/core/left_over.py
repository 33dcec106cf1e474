"""Temporary files as killed runs leave them."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from coterie.core import writing


@cache
def ended_process() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def left_over(path: Path) -> Path:
    """The name of a temporary file for `path`, of a process that has ended."""
    name = writing.temporary_name(path, "part")
    return name.with_name(name.name.replace(f"-{os.getpid()}-", f"-{ended_process()}-"))
