"""What goes to the terminal: results to standard output, notes and progress to standard error."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from coterie.cli.options import PrintOptions
from coterie.jobs import Step


def show(result: Any, how: PrintOptions) -> None:
    """Print the result, and before it what there is to note."""
    from coterie.report import as_dict, as_text

    if not how.quiet:
        for note in getattr(result, "notes", ()):
            print(f"note: {note}", file=sys.stderr)
        for warning in getattr(result, "warnings", ()):
            print(f"warning: {warning}", file=sys.stderr)
    print(json.dumps(as_dict(result), indent=2) if how.as_json else as_text(result))


@contextmanager
def progress_of(how: PrintOptions) -> Iterator[Callable[[Step], None] | None]:
    """A bar with the time left, on a terminal that wants it."""
    if how.quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

    from coterie.core.clock import Clock, spoken

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("starting", total=None, left="")
        clock, last = Clock(), Step("starting")

        def tell(step: Step) -> None:
            nonlocal bar, clock, last
            if step.done < last.done or (step.done == 0 and step.what != last.what):
                clock = Clock()
                bars.remove_task(bar)  # one that has a total once keeps it
                bar = bars.add_task(escape(step.what), total=step.total, left="")
            last = step
            left = clock.left(step.done / step.total) if step.left is None and step.total else step.left
            words = spoken(left) if left else ""
            bars.update(bar, description=escape(step.what), completed=step.done, total=step.total, left=words)

        yield tell
