"""The commands. Each is parse, run, render; nothing heavy is imported before a command runs."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from coterie.jobs import Job, Missing, Scale, run
from coterie.report import JobResult, as_dict, as_text


def _version() -> str:
    import coterie

    return coterie.__version__


app = App(
    name="coterie",
    help="Find the groups in a table.",
    help_epilogue="Add --debug to any command to see where an error came from.",
    version=_version,
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(negative=()),
)


def call(arguments: Sequence[str]) -> None:
    """Run the command that `arguments` spell, letting every error through."""
    app(arguments, exit_on_error=False, print_error=False, result_action="return_value")


@app.command
def fit(
    data: Path,
    /,
    *,
    k: Annotated[str, Parameter(name="-k")] = "8",
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    columns: Annotated[list[str] | None, Parameter(alias="-c")] = None,
    exclude: list[str] | None = None,
    scale: Scale = "auto",
    missing: Missing = "error",
    seed: int = 0,
    n_init: int = 10,
    force: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    quiet: Annotated[bool, Parameter(alias="-q")] = False,
) -> None:
    """Cluster the rows of a table with K-means.

    Parameters
    ----------
    data
        The table: .csv, .tsv, .parquet or .npy.
    k
        Number of clusters.
    output
        Write the table with its clusters here: .csv, .tsv or .parquet.
    columns
        Columns to use, separated by commas. Without it: every numeric column but identifiers.
    exclude
        Columns to leave out, separated by commas.
    scale
        How to make columns comparable; auto is standard for tables and none for .npy.
    missing
        What to do about missing values.
    seed
        Seed of the random starts; the same seed gives the same clusters.
    n_init
        Number of random starts; the best one counts.
    force
        Replace the output file if it exists.
    as_json
        Print the result as one JSON object.
    quiet
        Print the result only: no notes, no progress.
    """
    job = Job(
        data,
        k=_cluster_count(k),
        columns=_names(columns),
        exclude=_names(exclude),
        scale=scale,
        missing=missing,
        seed=seed,
        n_init=n_init,
        output=output,
        force=force,
    )
    with _progress(quiet) as progress:
        result = run(job, progress)
    if not quiet:
        _print_notes(result)
    print(json.dumps(as_dict(result), indent=2) if as_json else as_text(result))


@app.command
def demo(
    name: str,
    /,
    *,
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    force: bool = False,
) -> None:
    """Write a small table to try things on.

    Parameters
    ----------
    name
        The table: penguins.
    output
        File to write; NAME.csv in this folder if not given.
    force
        Replace the file if it exists.
    """
    from coterie.datasets import load_demo, write_demo

    path = write_demo(name, output or Path(f"{name}.csv"), overwrite=force)
    table = load_demo(name)
    print(f"wrote {path} ({len(table):,} rows · {len(table.columns):,} columns) · licence: {table.licence}")


def _cluster_count(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        from coterie.core.errors import ParameterError

        raise ParameterError(f'-k takes a number (8), not "{text}".') from None


def _names(options: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(name.strip() for option in options or () for name in option.split(",") if name.strip())


def _print_notes(result: JobResult) -> None:
    for note in result.notes:
        print(f"note: {note}", file=sys.stderr)
    for warning in result.warnings:
        print(f"warning: {warning}", file=sys.stderr)


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str], None] | None]:
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status("starting") as status:
        yield lambda stage: status.update(escape(stage))
