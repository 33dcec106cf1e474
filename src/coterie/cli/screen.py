"""Output: results to standard output, notes and progress to standard error."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from coterie.cli.options import PrintOptions
from coterie.cli.printable import printable, printable_lines, printable_result
from coterie.jobs import Step


def show(result: Any, options: PrintOptions) -> None:
    """Print notes and warnings, then the result."""
    from coterie.report import as_dict, as_text

    if not options.quiet:
        for note in getattr(result, "notes", ()):
            print(f"note: {printable(note)}", file=sys.stderr)
        for warning in getattr(result, "warnings", ()):
            print(f"warning: {printable(warning)}", file=sys.stderr)
    if options.as_json:
        print(json.dumps(as_dict(result), indent=2).replace("\x7f", "\\u007f"))  # the only control character left
    else:
        print(printable_lines(as_text(printable_result(result))))


def show_warning(message: Warning | str, *_: Any) -> None:
    """Print a Python warning; control characters of data that it quotes are escaped."""
    print(f"warning: {printable(str(message))}", file=sys.stderr)


@contextmanager
def progress_of(options: PrintOptions) -> Iterator[Callable[[Step], None] | None]:
    """A progress bar with the remaining time, if standard error is a terminal."""
    if options.quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

    from coterie.core.clock import Clock, time_left_text

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),  # names in brackets must not be read as markup
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("starting", total=None, left="")
        clock, last = Clock(), Step("starting")

        def update(step: Step) -> None:
            nonlocal bar, clock, last
            if step.done < last.done or (step.done == 0 and step.what != last.what):
                clock = Clock()
                bars.remove_task(bar)  # the total of a task cannot be removed
                bar = bars.add_task(printable(step.what), total=step.total, left="")
            last = step
            left = clock.left(step.done / step.total) if step.left is None and step.total else step.left
            words = time_left_text(left) if left else ""
            bars.update(bar, description=printable(step.what), completed=step.done, total=step.total, left=words)

        yield update
