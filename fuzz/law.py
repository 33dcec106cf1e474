"""Laws, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from fuzz.draw import Draw


@dataclass
class Case:
    """What a law gets: the subject to check, random choices, and the options of the run."""

    subject: str
    draw: Draw
    engine: str = "both"  # the engine that estimators must use: "serial", "threads", or "both" for either
    notes: list[str] = field(default_factory=list)  # what was tried, for the report of a finding

    def note(self, text: str) -> None:
        """Keep a sentence about what is tried, to be shown with a finding."""
        self.notes.append(text)


@dataclass(frozen=True)
class Law:
    """A statement about subjects. `check` raises if it does not hold."""

    name: str
    check: Callable[[Case], None]
    subjects: tuple[str, ...]
    weight: int  # how many cases a round has for each subject
    hypothesis: bool  # whether Hypothesis may draw its cases: not where a case takes long or has its own processes


LAWS: list[Law] = []


def law(
    subjects: Iterable[str], *, weight: int = 1, hypothesis: bool = True
) -> Callable[[Callable[[Case], None]], Callable[[Case], None]]:
    """Register a function as a law over these subjects. Its name, with spaces, is the name of the law."""

    def register(check: Callable[[Case], None]) -> Callable[[Case], None]:
        LAWS.append(Law(check.__name__.replace("_", " "), check, tuple(subjects), weight, hypothesis))
        return check

    return register
