"""Options that are never right, whatever the data."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import get_args

from coterie.algorithms import METHODS, Method, method_of
from coterie.core.errors import ParameterError
from coterie.jobs import Budget, ChooseJob, CompareJob, Device, Job, Missing, Number, PredictJob, Scale, TableJob

LARGEST_SEED = 2**32 - 1  # of scikit-learn's random states


def check_table_options(job: TableJob) -> None:
    one_of("scale", job.scale, get_args(Scale))
    one_of("missing", job.missing, get_args(Missing))
    at_least("seed", job.seed, 0)
    if job.seed > LARGEST_SEED:
        raise ParameterError(f"seed must be at most {LARGEST_SEED}; got {job.seed}.")
    if job.threads is not None:
        at_least("threads", job.threads, 1)
    if job.batch_rows is not None:
        at_least("batch_rows", job.batch_rows, 1)
    one_of("device", job.device, get_args(Device))
    if job.device == "cuda":
        raise ParameterError("--device cuda: there is no engine for GPUs yet. Use --device cpu, or leave it out.")


def check_batches(batch_rows: int | None, mixed: bool) -> None:
    """Refuse to read a table in parts for an algorithm that takes it as it is."""
    if batch_rows is not None and mixed:
        raise ParameterError("--batch-rows is not for mixture, which takes the table as it is: leave it out.")


def check_long_work(job: Job) -> None:
    """Refuse a file to go on from, and a way to be played, where an algorithm has none."""
    able: dict[str, Callable[[Method], bool]] = {
        "checkpoint": lambda how: "checkpoint" in how.made().get_params(deep=False),
        "animate": lambda how: hasattr(how.made(), "fit_trace") and not how.mixed,  # it plays columns of numbers
    }
    check_film(job.animate)
    for option, has in able.items():
        if getattr(job, option) is not None and not has(method_of(job.method)):
            owners = ", ".join(name for name, how in METHODS.items() if has(how))
            raise ParameterError(f"--{option} belongs to {owners}; not to {job.method}.")
    if job.animate is not None and job.checkpoint is not None:
        raise ParameterError("--animate plays a fit from its start: leave out --checkpoint.")


def check_film(path: Path | None) -> None:
    """Refuse a film where what makes films is not installed; a page that plays a fit needs nothing."""
    suffix = "" if path is None else path.suffix.lower()
    if suffix not in (".gif", ".mp4"):
        return
    if find_spec("matplotlib") is None:
        raise ParameterError(f'a {suffix} needs one more package. Run: pip install "coterie[plot]", or write an .html.')
    if suffix == ".mp4" and which("ffmpeg") is None:
        raise ParameterError("an .mp4 needs the program ffmpeg, which is not installed: write a .gif or an .html.")


def check_page(job: Job | ChooseJob | CompareJob) -> None:
    """Refuse to say how a page is written that is not."""
    if job.static and job.report is None:
        raise ParameterError("--static is about a page: name it with --report.")


def check_safe_csv(job: Job | PredictJob) -> None:
    """Reject an option of CSV files where none is written."""
    if job.safe_csv and (job.output is None or job.output.suffix.lower() not in (".csv", ".tsv")):
        raise ParameterError("--safe-csv is for output in .csv or .tsv: name such a file with -o, or leave it out.")


def check_budget(budget: Budget) -> None:
    one_of("budget", budget, get_args(Budget))


def check_number(k: Number) -> None:
    """A number of clusters is at least 1, and a range of them goes up."""
    if isinstance(k, str):
        one_of("k", k, ("auto",))
    elif isinstance(k, tuple):
        first, last = k
        at_least("k", first, 1)
        if last <= first:
            raise ParameterError(f"-k {first}:{last} is no range: the last number must be larger than the first.")
    else:
        at_least("k", k, 1)


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ParameterError(f"{name} must be one of {', '.join(allowed)}; got {value!r}.")


def at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ParameterError(f"{name} must be at least {least}; got {value}.")
