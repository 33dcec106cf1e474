"""The commands: each parses its options, runs a job and prints the result. Heavy imports happen in the job."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from coterie import jobs
from coterie.algorithms import AlgorithmName
from coterie.cli.options import (
    FILES,
    AlgorithmOptions,
    BatchOptions,
    DataOptions,
    FitFileOptions,
    ForceOptions,
    OptionGroup,
    PageOptions,
    PlaceOptions,
    PrintOptions,
    RunOptions,
    TableOptions,
    as_number,
    join_lines,
    split,
)
from coterie.cli.printable import printable
from coterie.cli.screen import progress_of, show
from coterie.jobs import Budget, ModelMissing

ANY_DATA, ANY_ALGORITHM, PLAIN, PRINTED = DataOptions(), AlgorithmOptions(), RunOptions(), PrintOptions()
NO_TABLE, NO_FILES, NO_PAGE = TableOptions(), FitFileOptions(), PageOptions()
CAREFUL, HERE, WHOLE = ForceOptions(), PlaceOptions(), BatchOptions()
PAGE = Path("report.html")


def _version() -> str:
    import coterie

    return coterie.__version__


app = App(
    name="coterie",
    help="Cluster the rows of a table.",
    help_format="plaintext",
    help_epilogue="Add --debug to any command to see where an error came from.",
    version=_version,
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(negative=()),
)


def call(arguments: Sequence[str]) -> None:
    """Run the command in `arguments`; errors are raised."""
    arguments = ["./-" if argument == "-" else argument for argument in arguments]  # "-" is a path, not an option
    app(arguments, exit_on_error=False, print_error=False, result_action="return_value")


def _command(function: Callable[..., None]) -> Callable[..., None]:
    """Register the function as a command with its name."""
    function.__doc__ = join_lines(function.__doc__)
    app.command(function)
    return function


def _run(
    function: Callable[..., Any],
    job_type: type,
    inputs: Sequence[Path],
    printing: PrintOptions,
    *groups: OptionGroup,
    **options: Any,
) -> None:
    """Run a job with all options, and print its result."""
    for group in groups:
        options |= group.as_dict()
    job = job_type(*inputs, **options)
    with progress_of(printing) as progress:
        result = function(job, progress)
    show(result, printing)


@_command
def fit(
    data: Path,
    /,
    *,
    k: Annotated[str, Parameter(name="-k")] = "auto",
    algorithm: Annotated[AlgorithmName, Parameter(alias="-a")] = "kmeans",
    budget: Budget = "normal",
    sample: int | None = None,
    strict: bool = False,
    output: TableOptions = NO_TABLE,
    files: FitFileOptions = NO_FILES,
    page: PageOptions = NO_PAGE,
    replacing: ForceOptions = CAREFUL,
    table: DataOptions = ANY_DATA,
    options: AlgorithmOptions = ANY_ALGORITHM,
    running: RunOptions = PLAIN,
    batches: BatchOptions = WHOLE,
    place: PlaceOptions = HERE,
    printing: PrintOptions = PRINTED,
) -> None:
    """Cluster the rows of a table.

    Parameters
    ----------
    data
        The table: .csv, .tsv, .parquet, .arrow, .feather, .ndjson, .xlsx, .npy, .npz, .safetensors, or - for CSV from
        standard input.
    k
        Number of clusters: a number, a range (2:12) to choose from, or auto.
    algorithm
        Clustering algorithm.
    budget
        Effort spent on choosing K.
    sample
        Fit on N random rows; assign the others to the nearest cluster.
    strict
        If the fit has not converged, stop with exit code 4 and write nothing.
    """
    groups = (output, files, page, replacing, table, running, batches, place)
    _run(
        jobs.run,
        jobs.Job,
        [data],
        printing,
        *groups,
        method=algorithm,
        k=as_number(k),
        budget=budget,
        sample=sample,
        strict=strict,
        options=options.as_dict(),
    )


@_command
def choose_k(
    data: Path,
    /,
    *,
    k: Annotated[str, Parameter(name="-k")] = "auto",
    algorithm: Annotated[AlgorithmName, Parameter(alias="-a")] = "kmeans",
    criteria: list[str] | None = None,
    budget: Budget = "normal",
    page: PageOptions = NO_PAGE,
    replacing: ForceOptions = CAREFUL,
    table: DataOptions = ANY_DATA,
    running: RunOptions = PLAIN,
    batches: BatchOptions = WHOLE,
    printing: PrintOptions = PRINTED,
) -> None:
    """Choose the number of clusters of a table.

    Parameters
    ----------
    data
        The table, as for fit.
    k
        Numbers of clusters to compare: a range (2:12), or auto.
    algorithm
        AlgorithmName to evaluate.
    criteria
        Criteria, separated by commas: silhouette, gap, bic, icl, elbow, stability and others. Default: depends on the
        budget.
    budget
        Effort to spend.
    """
    options = {"method": algorithm, "k": as_number(k), "criteria": split(criteria), "budget": budget}
    _run(jobs.choose, jobs.ChooseJob, [data], printing, page, replacing, table, running, batches, **options)


@_command
def predict(
    model: Path,
    data: Path,
    /,
    *,
    proba: bool = False,
    distance: bool = False,
    missing: ModelMissing = "auto",
    output: TableOptions = NO_TABLE,
    replacing: ForceOptions = CAREFUL,
    batches: BatchOptions = WHOLE,
    printing: PrintOptions = PRINTED,
) -> None:
    """Assign the rows of a table to the clusters of a fitted model.

    Parameters
    ----------
    model
        Model file, written by fit --model.
    data
        The table, as for fit, with the columns that the model was fitted to.
    proba
        Also write the probability of every cluster.
    distance
        Also write the distance to every center.
    missing
        Missing values. auto: fill or ignore them if the model was fitted so, otherwise stop with an error.
    """
    options = {"proba": proba, "distance": distance, "missing": missing}
    _run(jobs.predict, jobs.PredictJob, [model, data], printing, output, replacing, batches, **options)


@_command
def compare(
    data: Path,
    /,
    *,
    algorithm: Annotated[list[AlgorithmName], Parameter(alias="-a")],
    k: Annotated[str, Parameter(name="-k")] = "auto",
    page: PageOptions = NO_PAGE,
    replacing: ForceOptions = CAREFUL,
    table: DataOptions = ANY_DATA,
    running: RunOptions = PLAIN,
    batches: BatchOptions = WHOLE,
    printing: PrintOptions = PRINTED,
) -> None:
    """Compare algorithms on the same rows: scores, times and agreement.

    Parameters
    ----------
    data
        The table, as for fit.
    algorithm
        Clustering algorithm; repeat the option for each.
    k
        Number of clusters: a number, a range (3:8) to try, or auto for the recommended number.
    """
    options = {"methods": tuple(algorithm), "k": as_number(k)}
    _run(jobs.compare, jobs.CompareJob, [data], printing, page, replacing, table, running, batches, **options)


@_command
def report(
    data: Path,
    /,
    *,
    labels: str | None = None,
    model: Path | None = None,
    output: Annotated[Path, Parameter(alias="-o", group=FILES)] = PAGE,
    static: Annotated[bool, Parameter(group=FILES)] = False,
    replacing: ForceOptions = CAREFUL,
    table: DataOptions = ANY_DATA,
    running: RunOptions = PLAIN,
    batches: BatchOptions = WHOLE,
    printing: PrintOptions = PRINTED,
) -> None:
    """Write a report about existing clusters, from a model or from any other tool.

    Parameters
    ----------
    data
        The table, as for fit.
    labels
        Column with the cluster of each row; -1 or an empty cell means no cluster.
    model
        Instead of labels: model file, written by fit --model, that assigns the rows.
    output
        The report (.html).
    static
        Write the report without JavaScript.
    """
    options = {"labels": labels, "model": model, "output": output, "static": static}
    _run(jobs.report, jobs.ReportJob, [data], printing, replacing, table, running, batches, **options)


@_command
def info(file: Path, /, *, as_json: Annotated[bool, Parameter(name="--json")] = False) -> None:
    """Describe a file, and what fit would do with it.

    Parameters
    ----------
    file
        A table, as for fit, or a model.
    as_json
        Print the result as one JSON object.
    """
    show(jobs.inspect(file), PrintOptions(as_json=as_json))


@_command
def doctor(*, as_json: Annotated[bool, Parameter(name="--json")] = False) -> None:
    """Check this installation: what is available, what is missing, and how to install it.

    Parameters
    ----------
    as_json
        Print the result as one JSON object.
    """
    show(jobs.examine(), PrintOptions(as_json=as_json))


@_command
def demo(
    name: str | None = None,
    /,
    *,
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    force: bool = False,
) -> None:
    """Write a small demo table.

    Parameters
    ----------
    name
        Name of the table. Without a name, list the available tables.
    output
        File to write (.csv or .parquet). Default: the name of the table, in the current folder.
    force
        Overwrite an existing file.
    """
    from coterie.datasets import DEMOS, demo_file, load_demo, write_demo

    if name is None:
        width = max(map(len, DEMOS))
        print("\n".join(f"{name:{width}}  {about}" for name, about in DEMOS.items()))
        return
    path = write_demo(name, output or demo_file(name), overwrite=force)
    table = load_demo(name)
    size = f"{len(table):,} rows · {len(table.columns):,} columns"
    print(f"wrote {printable(str(path))} ({size}) · licence: {table.licence}")
