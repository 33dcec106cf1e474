"""The commands. Each is parse, run, render; nothing heavy is imported before a command runs."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from coterie import jobs
from coterie.algorithms import Algorithm
from coterie.cli.options import (
    FILES,
    AlgorithmOptions,
    BatchOptions,
    DataOptions,
    FitFileOptions,
    ForceOptions,
    PageOptions,
    PlaceOptions,
    PrintOptions,
    RunOptions,
    TableOptions,
    Told,
    as_number,
    flowing,
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
    help="Find the groups in a table.",
    help_format="plaintext",
    help_epilogue="Add --debug to any command to see where an error came from.",
    version=_version,
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(negative=()),
)


def call(arguments: Sequence[str]) -> None:
    """Run the command that `arguments` spell, letting every error through."""
    spelled = ["./-" if argument == "-" else argument for argument in arguments]  # a lone hyphen is no option here
    app(spelled, exit_on_error=False, print_error=False, result_action="return_value")


def _command(function: Callable[..., None]) -> Callable[..., None]:
    """Let the function be a command of its name."""
    function.__doc__ = flowing(function.__doc__)
    app.command(function)
    return function


def _do(
    work: Callable[..., Any], kind: type, inputs: Sequence[Path], printing: PrintOptions, *told: Told, **own: Any
) -> None:
    """Run a job of that kind with all that it was told, and show what it found."""
    job = kind(*inputs, **own, **{name: value for options in told for name, value in options.told().items()})
    with progress_of(printing) as progress:
        result = work(job, progress)
    show(result, printing)


@_command
def fit(
    data: Path,
    /,
    *,
    k: Annotated[str, Parameter(name="-k")] = "auto",
    algorithm: Annotated[Algorithm, Parameter(alias="-a")] = "kmeans",
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
        How to cluster.
    budget
        How much the choice of a number of clusters may cost.
    sample
        Fit so many rows drawn at random; the others get the cluster that is nearest.
    strict
        Stop with exit code 4, and write nothing, if the fit has not converged.
    """
    own = {"method": algorithm, "k": as_number(k), "budget": budget, "sample": sample, "strict": strict}
    told = (output, files, page, replacing, table, running, batches, place)
    _do(jobs.run, jobs.Job, [data], printing, *told, **own, options=options.told())


@_command
def choose_k(
    data: Path,
    /,
    *,
    k: Annotated[str, Parameter(name="-k")] = "auto",
    algorithm: Annotated[Algorithm, Parameter(alias="-a")] = "kmeans",
    methods: list[str] | None = None,
    budget: Budget = "normal",
    page: PageOptions = NO_PAGE,
    replacing: ForceOptions = CAREFUL,
    table: DataOptions = ANY_DATA,
    running: RunOptions = PLAIN,
    batches: BatchOptions = WHOLE,
    printing: PrintOptions = PRINTED,
) -> None:
    """Say how many clusters a table has.

    Parameters
    ----------
    data
        The table, as for fit.
    k
        Numbers of clusters to look at: a range (2:12), or auto.
    algorithm
        Whose clusters are judged.
    methods
        Criteria to ask, separated by commas: silhouette, gap, bic, icl, elbow, stability and others. Without it: what
        the budget says.
    budget
        How much it may cost.
    """
    own = {"method": algorithm, "k": as_number(k), "criteria": split(methods), "budget": budget}
    _do(jobs.choose, jobs.ChooseJob, [data], printing, page, replacing, table, running, batches, **own)


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
    """Say to which clusters of a fitted model the rows of a table belong.

    Parameters
    ----------
    model
        The model, as fit --model wrote it.
    data
        The table, as for fit, with the columns that the model was fitted to.
    proba
        Write the probability of every cluster, too.
    distance
        Write the distance to every center, too.
    missing
        What to do about missing values; auto does what the model does: fill or ignore them if it was fitted so, else
        refuse them.
    """
    own = {"proba": proba, "distance": distance, "missing": missing}
    _do(jobs.predict, jobs.PredictJob, [model, data], printing, output, replacing, batches, **own)


@_command
def compare(
    data: Path,
    /,
    *,
    algorithm: Annotated[list[Algorithm], Parameter(alias="-a")],
    k: Annotated[str, Parameter(name="-k")] = "auto",
    page: PageOptions = NO_PAGE,
    replacing: ForceOptions = CAREFUL,
    table: DataOptions = ANY_DATA,
    running: RunOptions = PLAIN,
    batches: BatchOptions = WHOLE,
    printing: PrintOptions = PRINTED,
) -> None:
    """Run several algorithms on the same rows: scores, times, and how far they agree.

    Parameters
    ----------
    data
        The table, as for fit.
    algorithm
        How to cluster; give it once for each.
    k
        Number of clusters: a number, a range (3:8) of which each is tried, or auto for the one that is recommended.
    """
    own = {"methods": tuple(algorithm), "k": as_number(k)}
    _do(jobs.compare, jobs.CompareJob, [data], printing, page, replacing, table, running, batches, **own)


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
    """Write a page about clusters that the rows of a table have already, from a model or from any other tool.

    Parameters
    ----------
    data
        The table, as for fit.
    labels
        The column that says the cluster of each row; a row with -1 or nothing in it has none.
    model
        In place of labels: a model, as fit --model wrote it, that says the cluster of each row.
    output
        The page (.html).
    static
        Let the page have no script.
    """
    own = {"labels": labels, "model": model, "output": output, "static": static}
    _do(jobs.report, jobs.ReportJob, [data], printing, replacing, table, running, batches, **own)


@_command
def info(file: Path, /, *, as_json: Annotated[bool, Parameter(name="--json")] = False) -> None:
    """Say what is in a file, and what fit would do with it.

    Parameters
    ----------
    file
        A table, as for fit, or a model.
    as_json
        Print it as one JSON object.
    """
    show(jobs.inspect(file), PrintOptions(as_json=as_json))


@_command
def doctor(*, as_json: Annotated[bool, Parameter(name="--json")] = False) -> None:
    """Say what this installation has, what is missing, and how to get it.

    Parameters
    ----------
    as_json
        Print it as one JSON object.
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
    """Write a small table to try things on.

    Parameters
    ----------
    name
        The table; without it, all there are are listed.
    output
        File to write (.csv or .parquet); one of the name of the table in this folder if not given.
    force
        Replace the file if it exists.
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
