"""Output: results to standard output, notes and progress to standard error."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from coterie.cli.options import PrintOptions
from coterie.cli.printable import printable, printable_lines, printable_result
from coterie.cli.streams import say
from coterie.jobs import Progress


def show(result: Any, options: PrintOptions) -> None:
    """Print notes and warnings, then the result."""
    from coterie.report import as_dict, as_text

    if not options.quiet:
        for note in getattr(result, "notes", ()):
            say(f"note: {printable(note)}")
        for warning in getattr(result, "warnings", ()):
            say(f"warning: {printable(warning)}")
    if options.as_json:
        print(json.dumps(as_dict(result), indent=2, allow_nan=False))  # it escapes all characters but printable ASCII
    else:
        print(printable_lines(as_text(printable_result(result))))


def show_warning(message: Warning | str, *_: Any) -> None:
    """Print a Python warning; control characters of data that it quotes are escaped."""
    say(f"warning: {printable(str(message))}")


@contextmanager
def progress_of(options: PrintOptions) -> Iterator[Callable[[Progress], None] | None]:
    """A progress bar with the remaining time, if standard error is a terminal."""
    if options.quiet or not sys.stderr.isatty():
        yield None
        return
    from rich import progress as bars
    from rich.console import Console

    from coterie.core.clock import Clock, time_left_text
    from coterie.kernels import compile_notice

    columns = (
        bars.SpinnerColumn(),
        bars.TextColumn("{task.description}", markup=False),  # names in brackets must not be read as markup
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("{task.fields[left]}", markup=False),
    )
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as display:
        bar = display.add_task("starting", total=None, left="")
        clock, last = Clock(), Progress("starting")

        def update(stage: Progress) -> None:
            nonlocal bar, clock, last
            if stage.done < last.done or (stage.done == 0 and stage.step != last.step):
                clock = Clock()
                display.remove_task(bar)  # the total of a task cannot be removed
                bar = display.add_task(printable(stage.step), total=stage.total, left="")
            last = stage
            left = clock.left(stage.done / stage.total) if stage.left is None and stage.total else stage.left
            words = time_left_text(left) if left else ""
            display.update(bar, description=printable(stage.step), completed=stage.done, total=stage.total, left=words)

        with compile_notice.listening(lambda message: update(Progress(message))):
            yield update
