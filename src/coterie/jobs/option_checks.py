"""Checks of options that do not depend on the data."""

from collections.abc import Callable
from importlib.util import find_spec
from numbers import Integral
from shutil import which
from typing import Any, Literal, get_args, get_origin, get_type_hints

from coterie.algorithms import ALGORITHMS, Algorithm, algorithm_of
from coterie.core.formatting import join_words
from coterie.core.protocols import Traceable
from coterie.data.tensors import device_problem
from coterie.errors import InputError, ParameterError
from coterie.jobs import ChooseJob, CompareJob, Job, Number, PredictJob, TableJob
from coterie.preparation.long_series import check_series

LARGEST_SEED = 2**32 - 1  # of random states of scikit-learn


def check_choices(job: Any) -> None:
    """Reject values of options that are not among those of their types."""
    for name, kind in get_type_hints(type(job)).items():
        if get_origin(kind) is Literal and getattr(job, name) not in get_args(kind):
            raise ParameterError(f"{name} must be one of {', '.join(get_args(kind))}; got {getattr(job, name)!r}.")


def check_table_options(job: TableJob) -> None:
    check_choices(job)
    at_least("seed", job.seed, 0)
    if job.seed > LARGEST_SEED:
        raise ParameterError(f"seed must be at most {LARGEST_SEED}; got {job.seed}.")
    at_least("threads", job.threads, 1)
    at_least("batch_rows", job.batch_rows, 1)
    at_least("header_row", job.header_row, 1)
    if job.series:
        check_series_job(job)
    if job.device == "cuda":
        check_gpu(job)


def check_gpu(job: TableJob) -> None:
    """Reject --device cuda if the command does not support it, or if there is no GPU."""
    if not isinstance(job, Job) or not algorithm_of(job.algorithm).on_gpu or not isinstance(job.k, int):
        names = join_words([name for name, algorithm in ALGORITHMS.items() if algorithm.on_gpu], "or")
        raise ParameterError(f"--device cuda is for coterie fit -k with a number, such as 8, and -a {names}.")
    if job.animate is not None or job.engine != "local":
        option = "--animate" if job.animate is not None else "--engine"
        raise ParameterError(f"{option} is not supported with --device cuda: leave one of them out.")
    if problem := device_problem():
        raise ParameterError(f"--device cuda {problem}, or leave the option out.")


def check_series_job(job: TableJob) -> None:
    """Reject --series with other columns, or for algorithms whose rows are not series."""
    check_series(job.series, job)
    algorithm = getattr(job, "algorithm", None)
    if algorithm is not None and not algorithm_of(algorithm).series:
        names = join_words([name for name, each in ALGORITHMS.items() if each.series], "or")
        raise ParameterError(f"--series is for -a {names}; {algorithm} needs a table with one row for each series.")


def check_batches(batch_rows: int | None, mixed: bool) -> None:
    """Reject --batch-rows for a mixture of mixed columns, which needs the whole table."""
    if batch_rows is not None and mixed:
        raise ParameterError("--batch-rows is not for mixture, which takes the table as it is: leave it out.")


def check_engine(engine: str, method: str) -> None:
    """Reject an unknown engine, or one that the algorithm does not support."""
    name, colon, address = engine.partition(":")
    if name not in ("local", "dask", "ray") or (colon and (name == "local" or not address)):
        raise ParameterError(
            f'--engine takes local, dask, dask:tcp://host:8786, ray or ray://host:10001, not "{engine}".'
        )
    if name != "local" and not algorithm_of(method).distributed:
        others = ", ".join(other for other, each in ALGORITHMS.items() if each.distributed)
        raise ParameterError(f"--engine {name} is for {others}; {method} needs all rows in one memory.")


def check_long_work(job: Job) -> None:
    """Reject --checkpoint and --animate if the algorithm or the installation does not support them."""
    supported: dict[str, Callable[[Algorithm], bool]] = {
        "checkpoint": lambda method: "checkpoint" in method.build().get_params(deep=False),
        "animate": lambda method: isinstance(method.build(), Traceable) and not method.mixed,  # numeric columns only
    }
    suffix = "" if job.animate is None else job.animate.suffix.lower()
    if suffix in (".gif", ".mp4") and find_spec("matplotlib") is None:
        raise ParameterError(f'a {suffix} needs one more package. Run: pip install "coterie[plot]", or write an .html.')
    if suffix == ".mp4" and which("ffmpeg") is None:
        raise ParameterError("an .mp4 needs the program ffmpeg, which is not installed: write a .gif or an .html.")
    for option, supports in supported.items():
        if getattr(job, option) is not None and not supports(algorithm_of(job.algorithm)):
            others = ", ".join(name for name, method in ALGORITHMS.items() if supports(method))
            raise ParameterError(f"--{option} belongs to {others}; not to {job.algorithm}.")
    if job.animate is not None and job.checkpoint is not None:
        raise ParameterError("--animate plays a fit from its start: leave out --checkpoint.")


def check_static(job: Job | ChooseJob | CompareJob) -> None:
    """Reject `--static` without `--report`."""
    if job.static and job.report is None:
        raise ParameterError("--static needs a report: add --report FILE.html, or leave it out.")


def check_map(job: Job) -> None:
    """Reject `--map` without `--report`."""
    if job.map != "auto" and job.report is None:
        raise ParameterError(f"--map {job.map} needs a report: add --report FILE.html, or leave it out.")


def check_safe_csv(job: Job | PredictJob) -> None:
    """Reject `--safe-csv` without output in CSV."""
    if job.safe_csv and (job.output is None or job.output.suffix.lower() not in (".csv", ".tsv")):
        raise ParameterError("--safe-csv is for output in .csv or .tsv: name such a file with -o, or leave it out.")


def check_k_can_be_chosen(method: str) -> None:
    """Reject mixed columns, because criteria need rows of numbers, or series; and algorithms without a number K."""
    algorithm = algorithm_of(method)
    if algorithm.finds_k:
        raise ParameterError(f"{method} finds the number of clusters itself: run coterie fit -a {method}.")
    if algorithm.mixed:
        raise ParameterError(f"K cannot be chosen for mixed column types: set it for {method}, for example -k 3.")


def check_no_k(k: Number, method: str) -> None:
    """Reject -k for an algorithm that finds the number of clusters itself."""
    if algorithm_of(method).finds_k and k != "auto":
        options = " and ".join(f"--{name.replace('_', '-')}" for name in algorithm_of(method).options[:2])
        raise ParameterError(
            f"-k is not for {method}, which finds the number of clusters: leave it out. See {options}."
        )


def check_k(k: Number) -> None:
    """Reject numbers of clusters below 1, and descending ranges."""
    if k == "auto":
        return
    if isinstance(k, tuple) and len(k) == 2:
        first, last = k
        at_least("k", first, 1)
        if last <= first:
            raise ParameterError(f"-k {first}:{last} is not a range: the last number must be larger than the first.")
    elif isinstance(k, Integral):
        at_least("k", int(k), 1)
    else:
        raise ParameterError(f'k must be a number, two numbers such as (2, 12), or "auto"; got {k!r}.')


def check_rows_for_k(k: Number, n: int) -> None:
    """Reject more clusters than rows."""
    largest = k[1] if isinstance(k, tuple) else k
    if isinstance(largest, Integral) and largest > n:
        raise InputError(f"-k {largest:,} asks for more clusters than there are rows ({n:,}).")


def at_least(name: str, value: int | None, minimum: int) -> None:
    """Reject a number below the minimum; None is an option that was not set."""
    if value is not None and value < minimum:
        raise ParameterError(f"{name} must be at least {minimum}; got {value}.")
