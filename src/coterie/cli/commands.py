"""The commands: each parses its options, runs a job and prints the result. Heavy imports happen in the job."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

import coterie
from coterie import jobs
from coterie.algorithms import AlgorithmName
from coterie.cli import options as cli
from coterie.cli.failures import Exit
from coterie.cli.printable import printable
from coterie.cli.screen import progress_of, show
from coterie.cli.sklearn_import import import_sklearn
from coterie.jobs import Budget, Dialect, ExportFormat, ModelMissing

DATA, ALGORITHM, RUNNING, PRINTING = cli.DataOptions(), cli.AlgorithmOptions(), cli.RunOptions(), cli.PrintOptions()
TABLE, FILES, PAGE, PLACE = cli.TableOptions(), cli.FitFileOptions(), cli.PageOptions(), cli.PlaceOptions()
SOURCE = cli.SourceOptions()
REPORT = Path("report.html")

app = App(
    name="coterie",
    help="Cluster the rows of a table.",
    help_format="plaintext",
    help_epilogue="Add --debug to any command to see where an error came from.",
    version=lambda: coterie.__version__,
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(negative=()),
)

Table = Annotated[Path, Parameter(help="The table, as for fit.")]


def call(arguments: Sequence[str]) -> int:
    """Run the command in `arguments`, and return its exit code; errors are raised."""
    arguments = ["./-" if argument == "-" else argument for argument in arguments]  # "-" is a path, not an option
    return app(arguments, exit_on_error=False, print_error=False, result_action="return_value") or Exit.DONE


def _run(
    function: Callable[..., Any], job: Callable[..., Any], printing: cli.PrintOptions, *groups: cli.OptionGroup,
    **options: Any,
) -> int:  # fmt: skip
    """Run a job with all options, print its result, and return the exit code."""
    for group in groups:
        options |= group.as_dict()
    import_sklearn()
    with progress_of(printing) as progress:
        result = function(job(**options), progress)
    show(result, printing)
    choice = getattr(result, "choice", None)
    is_clear = choice is None or choice.strength != "none" or choice.recommended == 1
    return Exit.DONE if is_clear else Exit.NOT_CLEAR


@app.command
def fit(
    data: Annotated[Path, Parameter(
        help="The table: .csv, .tsv, .parquet, .arrow, .feather, .ndjson, .xlsx, .npy, .npz, .safetensors, or - for "
        "CSV from standard input.",
    )],
    /,
    *,
    k: Annotated[str, Parameter(
        name="-k", help="Number of clusters: a number, a range (2:12) to choose from, or auto.",
    )] = "auto",
    algorithm: Annotated[AlgorithmName, Parameter(alias="-a", help="Clustering algorithm.")] = "kmeans",
    budget: Annotated[Budget, Parameter(help="Effort spent on choosing K.")] = "normal",
    sample: Annotated[int | None, Parameter(
        help="Fit on N random rows; assign the others to the nearest cluster.",
    )] = None,
    names: Annotated[list[str] | None, Parameter(
        help="Names of the clusters, separated by commas, in the order of their numbers; or auto, from their rules.",
    )] = None,
    strict: Annotated[bool, Parameter(
        help="If the fit has not converged, stop with exit code 4 and write nothing.",
    )] = False,
    output: cli.TableOptions = TABLE,
    files: cli.FitFileOptions = FILES,
    page: cli.PageOptions = PAGE,
    map: cli.Map = "auto",
    table: cli.DataOptions = DATA,
    options: cli.AlgorithmOptions = ALGORITHM,
    running: cli.RunOptions = RUNNING,
    place: cli.PlaceOptions = PLACE,
    printing: cli.PrintOptions = PRINTING,
) -> int:  # fmt: skip
    """Cluster the rows of a table."""
    return _run(
        jobs.run, jobs.Job, printing, output, files, page, table, running, place, path=data, algorithm=algorithm,
        k=cli.as_number(k), budget=budget, sample=sample, strict=strict, names=cli.split(names),
        options=options.as_dict(), map=map,
    )  # fmt: skip


@app.command
def choose_k(
    data: Table,
    /,
    *,
    k: Annotated[str, Parameter(
        name="-k", help="Numbers of clusters to compare: a range (2:12), or auto.",
    )] = "auto",
    algorithm: Annotated[AlgorithmName, Parameter(alias="-a", help="Algorithm to evaluate.")] = "kmeans",
    criteria: Annotated[list[str] | None, Parameter(
        help="Criteria, separated by commas: silhouette, gap, bic, icl, elbow, stability and others. Default: depends "
        "on the budget.",
    )] = None,
    budget: Annotated[Budget, Parameter(help="Effort to spend.")] = "normal",
    page: cli.PageOptions = PAGE,
    table: cli.DataOptions = DATA,
    running: cli.RunOptions = RUNNING,
    printing: cli.PrintOptions = PRINTING,
) -> int:  # fmt: skip
    """Choose the number of clusters of a table."""
    return _run(
        jobs.choose, jobs.ChooseJob, printing, page, table, running, path=data, algorithm=algorithm, k=cli.as_number(k),
        criteria=cli.split(criteria), budget=budget,
    )  # fmt: skip


@app.command
def predict(
    model: Annotated[Path, Parameter(help="Model file, written by fit --model.")],
    data: Annotated[Path, Parameter(
        help="The table, as for fit, with the columns that the model was fitted to.",
    )],
    /,
    *,
    proba: Annotated[bool, Parameter(help="Also write the probability of every cluster.")] = False,
    distance: Annotated[bool, Parameter(help="Also write the distance to every center.")] = False,
    missing: Annotated[ModelMissing, Parameter(
        help="Missing values. auto: fill or ignore them if the model was fitted so, otherwise stop with an error.",
    )] = "auto",
    output: cli.TableOptions = TABLE,
    force: cli.Force = False,
    source: cli.SourceOptions = SOURCE,
    batch_rows: cli.BatchRows = None,
    printing: cli.PrintOptions = PRINTING,
) -> None:  # fmt: skip
    """Assign the rows of a table to the clusters of a fitted model."""
    _run(
        jobs.predict, jobs.PredictJob, printing, output, source, model=model, path=data, proba=proba, distance=distance,
        missing=missing, force=force, batch_rows=batch_rows,
    )  # fmt: skip


@app.command
def compare(
    data: Table,
    /,
    *,
    algorithm: Annotated[list[AlgorithmName] | None, Parameter(
        alias="-a", help="Clustering algorithm; repeat the option for each. Default: some that suit the table.",
    )] = None,
    k: Annotated[str, Parameter(
        name="-k", help="Number of clusters: a number, a range (3:8) to try, or auto for the recommended number.",
    )] = "auto",
    page: cli.PageOptions = PAGE,
    table: cli.DataOptions = DATA,
    running: cli.RunOptions = RUNNING,
    printing: cli.PrintOptions = PRINTING,
) -> None:  # fmt: skip
    """Compare algorithms on the same rows: scores, times and agreement."""
    _run(
        jobs.compare, jobs.CompareJob, printing, page, table, running, path=data, algorithms=tuple(algorithm or ()),
        k=cli.as_number(k),
    )  # fmt: skip


@app.command
def compare_labels(
    first: Annotated[Path, Parameter(help="A table with a column of labels.")],
    second: Annotated[Path, Parameter(help="Another table with labels of the same rows.")],
    /,
    *,
    labels: Annotated[str | None, Parameter(
        help="Column with the cluster of each row, in both tables. Default: cluster, the column that fit writes.",
    )] = None,
    id: Annotated[str | None, Parameter(
        help="Column that identifies the rows in both tables. Default: rows are matched in their order.",
    )] = None,
    output: Annotated[Path | None, Parameter(
        alias="-o", group=cli.FILES, help="Write the rows that moved: .csv, .tsv, .parquet, ...",
    )] = None,
    force: cli.Force = False,
    printing: cli.PrintOptions = PRINTING,
) -> None:  # fmt: skip
    """Compare two clusterings of the same rows: agreement, matched clusters, and rows that moved."""
    _run(
        jobs.compare_labels, jobs.CompareLabelsJob, printing, path=first, other=second, labels=labels, id=id,
        output=output, force=force,
    )  # fmt: skip


@app.command
def report(
    data: Table,
    /,
    *,
    labels: Annotated[str | None, Parameter(
        help="Column with the cluster of each row; -1 or an empty cell means no cluster.",
    )] = None,
    model: Annotated[Path | None, Parameter(
        help="Instead of labels: model file, written by fit --model, that assigns the rows.",
    )] = None,
    output: Annotated[Path, Parameter(alias="-o", group=cli.FILES, help="The report (.html).")] = REPORT,
    static: Annotated[bool, Parameter(group=cli.FILES, help="Write the report without JavaScript.")] = False,
    map: cli.Map = "auto",
    force: cli.Force = False,
    table: cli.DataOptions = DATA,
    running: cli.RunOptions = RUNNING,
    printing: cli.PrintOptions = PRINTING,
) -> None:  # fmt: skip
    """Write a report about existing clusters, from a model or from any other tool."""
    _run(
        jobs.report, jobs.ReportJob, printing, table, running, path=data, labels=labels, model=model, output=output,
        static=static, map=map, force=force,
    )  # fmt: skip


@app.command
def export(
    model: Annotated[Path, Parameter(help="Model file, written by fit --model.")],
    /,
    *,
    to: Annotated[ExportFormat, Parameter(help="Format of the export.")],
    output: Annotated[Path, Parameter(alias="-o", group=cli.FILES, help="File to write: .sql, .onnx or .py.")],
    table: Annotated[str, Parameter(help="sql: name of the table; a dot separates a schema from a table.")] = "data",
    dialect: Annotated[Dialect, Parameter(help="sql: dialect of the database.")] = "duckdb",
    force: cli.Force = False,
    as_json: cli.Json = False,
) -> None:
    """Write a fitted model as SQL, ONNX or Python code, which predicts without coterie."""
    import_sklearn()
    result = jobs.export(jobs.ExportJob(model, to, output, table, dialect, force))
    show(result, cli.PrintOptions(as_json=as_json))


@app.command(name="app")
def open_app(
    data: Annotated[Path | None, Parameter(
        help="The table to open, as for fit. Default: the last workspace, if there is one.",
    )] = None,
    /,
    *,
    port: Annotated[int, Parameter(help="Port of the server; 0: any free port.")] = 0,
    no_browser: Annotated[bool, Parameter(help="Print the address, and open no browser.")] = False,
    host: Annotated[str, Parameter(
        help="Address to listen on. With another than the default, other machines can connect.",
    )] = "127.0.0.1",
) -> None:  # fmt: skip
    """Open the app in the browser: cluster a table, watch, choose K, inspect, export."""
    from coterie.app.server import serve

    serve(data, host=host, port=port, browser=not no_browser)


@app.command
def info(
    file: Annotated[Path, Parameter(help="A table, as for fit, or a model.")], /, *, as_json: cli.Json = False
) -> None:
    """Describe a file, and what fit would do with it."""
    import_sklearn()
    show(jobs.inspect(file), cli.PrintOptions(as_json=as_json))


@app.command
def doctor(*, as_json: cli.Json = False) -> None:
    """Check this installation: what is available, what is missing, and how to install it."""
    show(jobs.examine(), cli.PrintOptions(as_json=as_json))


@app.command
def warm(*, printing: cli.PrintOptions = PRINTING) -> None:
    """Compile all kernels for this machine, so that later commands and Python programs start at once."""
    with progress_of(printing) as progress:
        result = jobs.warm(progress)
    show(result, printing)


@app.command
def demo(
    name: Annotated[str | None, Parameter(
        help="Name of the table. Without a name, list the available tables.",
    )] = None,
    /,
    *,
    output: Annotated[Path | None, Parameter(
        alias="-o", help="File to write (.csv or .parquet). Default: the name of the table, in the current folder.",
    )] = None,
    force: Annotated[bool, Parameter(help="Overwrite an existing file.")] = False,
) -> None:  # fmt: skip
    """Write a small demo table."""
    from coterie.datasets import DEMOS, demo_file, load_demo, write_demo

    if name is None:
        width = max(map(len, DEMOS))
        print("\n".join(f"{name:{width}}  {about}" for name, about in DEMOS.items()))
        return
    path = write_demo(name, output or demo_file(name), overwrite=force)
    table = load_demo(name)
    size = f"{len(table):,} rows · {len(table.columns):,} columns"
    print(f"wrote {printable(str(path))} ({size}) · licence: {table.licence}")
