"""Options that are never right, whatever the data."""

from typing import get_args

from coterie.core.errors import ParameterError
from coterie.jobs import Budget, Missing, Number, Scale, TableJob

LARGEST_SEED = 2**32 - 1  # of scikit-learn's random states


def check_table_options(job: TableJob) -> None:
    one_of("scale", job.scale, get_args(Scale))
    one_of("missing", job.missing, get_args(Missing))
    at_least("seed", job.seed, 0)
    if job.seed > LARGEST_SEED:
        raise ParameterError(f"seed must be at most {LARGEST_SEED}; got {job.seed}.")
    if job.threads is not None:
        at_least("threads", job.threads, 1)


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
