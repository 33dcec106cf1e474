"""State of a search, from which it can resume, and its limit of work."""

import re
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from coterie.core.arguments import is_number
from coterie.core.stored import stored
from coterie.errors import CheckpointError, ParameterError


@stored(
    "checkpoint.Search",
    in_checkpoints=True,
    best="real K D",
    steps="count",
    rng="generator",
    population="tuple",
)
@dataclass(frozen=True)
class SearchState:
    """State of a search between two jumps, or between two children."""

    best: np.ndarray  # (k, d) best centers so far
    best_objective: float
    steps: int
    spent: float  # multiply-adds
    allowed: float  # multiply-adds
    seconds: float  # remaining time
    rng: np.random.Generator
    population: tuple[tuple[float, Any], ...]  # objectives and centers


def check_state_matches(state: SearchState, centers: np.ndarray) -> None:
    """Raise an error if the arrays of `state` do not fit the arrays of this search."""
    arrays = [state.best, *(member for _, member in state.population)]
    if not all(
        isinstance(array, np.ndarray)
        and (array.shape, array.dtype) == (centers.shape, centers.dtype)
        and np.isfinite(array).all()
        for array in arrays
    ):
        raise CheckpointError(
            "the state of the search in the checkpoint does not match these rows: delete the file to start again"
        )


# Budget of a search: an amount of counted work, or seconds.

RUNS = 200.0  # default of `search_budget`, in multiples of the work of one run
FLOOR = 1.5e8  # multiply-adds, about 150 ms, that the default may always spend
# A search continues for LATE times the work at which its best solution was found, up to CEILING multiply-adds.
LATE, CEILING = 10.0, 1.5e9


class Budget(NamedTuple):
    """Length of a search, in runs of k-means++ and Lloyd, or in seconds."""

    runs: float
    seconds: float = np.inf
    floor: float = 0.0  # multiply-adds that may be spent in any case
    ceiling: float = 0.0  # multiply-adds that may be spent if the best solution was found late


def as_budget(budget: Any) -> Budget:
    """Convert `search_budget` to a `Budget`; raise `ParameterError` if it is invalid."""
    if budget is None:
        return Budget(RUNS, floor=FLOOR, ceiling=CEILING)
    if isinstance(budget, str):
        seconds = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*s\s*", budget)
        if seconds and float(seconds[1]) > 0:
            return Budget(np.inf, float(seconds[1]))
    elif is_number(budget) and 0 < budget < np.inf:
        return Budget(float(budget))
    raise ParameterError(
        "search_budget must be None, a number above 0 (multiples of one k-means++ and Lloyd run) or seconds as text "
        f"such as '2.5s'; got {budget!r}"
    )


@dataclass
class WorkLimit:
    """Limit of the work of a search, in counted multiply-adds and in time."""

    allowed: float
    deadline: float
    ceiling: float = 0.0
    seconds: float = np.inf  # from the start to the deadline
    spent: np.ndarray = field(default_factory=lambda: np.zeros(1))

    def improved(self) -> None:
        """Extend the limit: if a better solution was found late, more may follow."""
        self.allowed = max(self.allowed, min(LATE * float(self.spent[0]), self.ceiling))

    @property
    def is_reached(self) -> bool:
        return bool(self.spent[0] >= self.allowed) or time.perf_counter() >= self.deadline

    @property
    def share(self) -> float:
        """Fraction of the limit that is used."""
        work, left = float(self.spent[0]) / self.allowed, self.deadline - time.perf_counter()
        return min(1.0, max(work, 1 - left / self.seconds if self.seconds < np.inf else 0.0))


def work_limit(budget: Budget, run: float, n: int, d: int, k: int) -> WorkLimit:
    """Limit of a search over n rows of d columns, if one run takes `run` passes."""
    from coterie.kernels.cpu.incremental_lloyd import PAIR

    allowed = max(budget.runs * run * n * k * (d + PAIR), budget.floor)
    return WorkLimit(allowed, time.perf_counter() + budget.seconds, budget.ceiling, budget.seconds)
