"""Progress of a job: the current stage, and how much of it is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Step:
    """The current stage of a job, and how much of it is done, if known."""

    what: str
    done: int = 0
    total: int | None = None
    left: float | None = field(default=None, compare=False)  # estimated remaining seconds


Progress: TypeAlias = Callable[[Step], None]


def silent(step: Step) -> None:
    """Ignore progress."""
