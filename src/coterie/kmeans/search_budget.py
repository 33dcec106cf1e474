"""How long a search may take: in work that is counted, or in seconds."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from coterie.core.errors import ParameterError

MULTIPLES = {"fast": 10.0, "global": 200.0}  # of the work of one run, where nothing else is said
FLOOR = 1.5e8  # multiply-adds, about 150 ms, that the default may always spend
LATE, CEILING = 10.0, 1.5e9  # a global search of up to that much goes on for that multiple of what its best took


class Budget(NamedTuple):
    """How long to search: in runs of k-means++ and Lloyd, or in seconds."""

    runs: float
    seconds: float = np.inf
    floor: float = 0.0  # multiply-adds that may be spent in any case
    ceiling: float = 0.0  # that may be spent while the best is still young


def as_budget(search: str, budget: Any) -> Budget:
    """What `search_budget` means; `ParameterError` if nothing."""
    if search == "none" and budget is not None:
        raise ParameterError(f"search_budget={budget!r} needs search='fast' or 'global' to spend it")
    if budget is None:
        return Budget(MULTIPLES[search], floor=FLOOR, ceiling=CEILING if search == "global" else 0.0)
    if isinstance(budget, str):
        seconds = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*s\s*", budget)
        if seconds and float(seconds[1]) > 0:
            return Budget(np.inf, float(seconds[1]))
    elif isinstance(budget, int | float | np.number) and not isinstance(budget, bool) and 0 < budget < np.inf:
        return Budget(float(budget))
    raise ParameterError(
        "search_budget must be None, a number above 0 (multiples of one k-means++ and Lloyd run) or seconds as text "
        f"such as '2.5s'; got {budget!r}"
    )


@dataclass
class Purse:
    """Work that may be done, counted in multiply-adds, or until the clock says so."""

    allowed: float
    deadline: float
    ceiling: float = 0.0
    seconds: float = np.inf  # until the deadline, at first
    spent: np.ndarray = field(default_factory=lambda: np.zeros(1))

    def improved(self) -> None:
        """Where a better solution came late, more may come."""
        self.allowed = max(self.allowed, min(LATE * float(self.spent[0]), self.ceiling))

    @property
    def empty(self) -> bool:
        return bool(self.spent[0] >= self.allowed) or time.perf_counter() >= self.deadline

    @property
    def share(self) -> float:
        """How much of it is gone."""
        work, left = float(self.spent[0]) / self.allowed, self.deadline - time.perf_counter()
        return min(1.0, max(work, 1 - left / self.seconds if self.seconds < np.inf else 0.0))


def purse_for(budget: Budget, run: float, n: int, d: int, k: int) -> Purse:
    """What a search of n rows of d columns may spend, where one run takes `run` passes."""
    from coterie.kernels.cpu.solution import PAIR

    allowed = max(budget.runs * run * n * k * (d + PAIR), budget.floor)
    return Purse(allowed, time.perf_counter() + budget.seconds, budget.ceiling, budget.seconds)
