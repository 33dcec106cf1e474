"""The commands. Each is parse, run, render; nothing heavy is imported before a command runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from coterie import jobs
from coterie.cli.options import (
    AlgorithmOptions,
    DataOptions,
    RunOptions,
    WriteOptions,
    as_number,
    split,
)
from coterie.cli.screen import progress_of, show
from coterie.jobs import Budget
from coterie.jobs.methods import Algorithm

NO_DATA, NO_ALGORITHM, PLAIN, NOWHERE = DataOptions(), AlgorithmOptions(), RunOptions(), WriteOptions()


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


@app.command
def fit(
    data: Path,
    /,
    *,
    k: Annotated[str, Parameter(name="-k")] = "auto",
    algorithm: Annotated[Algorithm, Parameter(alias="-a")] = "kmeans",
    writing: WriteOptions = NOWHERE,
    model: Path | None = None,
    budget: Budget = "normal",
    sample: int | None = None,
    strict: bool = False,
    table: DataOptions = NO_DATA,
    options: AlgorithmOptions = NO_ALGORITHM,
    running: RunOptions = PLAIN,
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
    model
        Write the fitted model here (.safetensors), for predict and for coterie.load.
    budget
        How much the choice of a number of clusters may cost.
    sample
        Fit so many rows drawn at random; the others get the cluster that is nearest.
    strict
        Stop with exit code 4, and write nothing, if the fit has not converged.
    """
    job = jobs.Job(
        data,
        model=model,
        method=algorithm,
        k=as_number(k),
        options=options.told(),
        budget=budget,
        sample=sample,
        strict=strict,
        output=writing.output,
        force=writing.force,
        seed=running.seed,
        threads=running.threads,
        **table.told(),
    )
    with progress_of(running) as progress:
        result = jobs.run(job, progress)
    show(result, running)


@app.command
def choose_k(
    data: Path,
    /,
    *,
    k: Annotated[str, Parameter(name="-k")] = "auto",
    algorithm: Annotated[Algorithm, Parameter(alias="-a")] = "kmeans",
    methods: list[str] | None = None,
    budget: Budget = "normal",
    table: DataOptions = NO_DATA,
    running: RunOptions = PLAIN,
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
    job = jobs.ChooseJob(
        data,
        method=algorithm,
        k=as_number(k),
        criteria=split(methods),
        budget=budget,
        seed=running.seed,
        threads=running.threads,
        **table.told(),
    )
    with progress_of(running) as progress:
        result = jobs.choose(job, progress)
    show(result, running)


@app.command
def predict(
    model: Path,
    data: Path,
    /,
    *,
    writing: WriteOptions = NOWHERE,
    proba: bool = False,
    distance: bool = False,
    missing: Literal["error", "drop", "ignore"] = "error",
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    quiet: Annotated[bool, Parameter(alias="-q")] = False,
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
        What to do about missing values.
    as_json
        Print the result as one JSON object.
    quiet
        Print the result only: no notes, no progress.
    """
    job = jobs.PredictJob(
        model, data, proba=proba, distance=distance, missing=missing, output=writing.output, force=writing.force
    )
    running = RunOptions(as_json=as_json, quiet=quiet)
    with progress_of(running) as progress:
        result = jobs.predict(job, progress)
    show(result, running)


@app.command
def compare(
    data: Path,
    /,
    *,
    algorithm: Annotated[list[Algorithm], Parameter(alias="-a")],
    k: Annotated[str, Parameter(name="-k")] = "auto",
    table: DataOptions = NO_DATA,
    running: RunOptions = PLAIN,
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
    job = jobs.CompareJob(
        data,
        methods=tuple(algorithm),
        k=as_number(k),
        seed=running.seed,
        threads=running.threads,
        **table.told(),
    )
    with progress_of(running) as progress:
        result = jobs.compare(job, progress)
    show(result, running)


@app.command
def info(file: Path, /, *, as_json: Annotated[bool, Parameter(name="--json")] = False) -> None:
    """Say what is in a file, and what fit would do with it.

    Parameters
    ----------
    file
        A table, as for fit, or a model.
    as_json
        Print it as one JSON object.
    """
    show(jobs.inspect(file), RunOptions(as_json=as_json))


@app.command
def doctor(*, as_json: Annotated[bool, Parameter(name="--json")] = False) -> None:
    """Say what this installation has, what is missing, and how to get it.

    Parameters
    ----------
    as_json
        Print it as one JSON object.
    """
    show(jobs.examine(), RunOptions(as_json=as_json))


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
