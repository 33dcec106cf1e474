"""What the user did, as plain data: the table, choices for its columns, and the runs with their edits.

A state is never changed: every action makes a new one, and undo returns to an earlier one. Results are not part of it;
they are stored beside it by the id of their run.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self

ROLES = ("feature", "ignored", "id", "weight")
NUMBER, CATEGORY = "number", "category"
AUTO = "auto"
MAX_UNDO = 100


@dataclass(frozen=True)
class Source:
    """The file of the table; `size` and `modified` tell whether it has changed."""

    path: str
    name: str
    size: int
    modified: int
    is_copy: bool = False  # whether the file is in the folder of the workspace

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        return _build(cls, values)


@dataclass(frozen=True)
class Run:
    """A request for clusters, with the options that repeat it exactly, and the edits of its clusters."""

    id: str
    kind: str  # fit, choose, open (one K of a choice), cut (of a tree), merge
    algorithm: str
    k: Any  # a number, two numbers, or "auto"
    options: dict[str, Any] = field(default_factory=dict)
    preparation: dict[str, Any] = field(default_factory=dict)  # fields of `PreparationOptions`
    seed: int = 0
    sample: int | None = None
    budget: Any = "normal"  # effort spent on choosing K
    parent: str | None = None
    groups: list[int] | None = None  # of a merge: the new label of each label of the parent
    names: dict[str, str] = field(default_factory=dict)  # by label
    colors: dict[str, str] = field(default_factory=dict)  # by label

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        return _build(cls, values)


@dataclass(frozen=True)
class State:
    """The choices and runs of a workspace."""

    columns: dict[str, dict[str, str]] = field(default_factory=dict)  # role, as and transform, where they were set
    preparation: dict[str, str] = field(default_factory=dict)  # scale, missing, dates and decimal, where they were set
    runs: tuple[Run, ...] = ()
    current: str | None = None

    def run(self, run_id: str) -> Run | None:
        return next((run for run in self.runs if run.id == run_id), None)

    def with_run(self, run: Run) -> Self:
        """Add a run, or replace the one with its id."""
        if self.run(run.id) is None:
            return replace(self, runs=(*self.runs, run), current=run.id)
        return replace(self, runs=tuple(run if each.id == run.id else each for each in self.runs))

    def without_run(self, run_id: str) -> Self:
        runs = tuple(run for run in self.runs if run.id != run_id)
        current = self.current if self.current != run_id else (runs[-1].id if runs else None)
        return replace(self, runs=runs, current=current)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        runs = tuple(Run.from_dict(run) for run in values.get("runs", ()))
        return replace(_build(cls, values), runs=runs)


@dataclass
class History:
    """The state now, and those to which undo and redo return, each with the action between them."""

    now: State = field(default_factory=State)
    before: list[tuple[str, State]] = field(default_factory=list)
    after: list[tuple[str, State]] = field(default_factory=list)
    last_id: int = 0

    def change(self, action: str, state: State) -> None:
        """Go to a new state; the action can be undone."""
        self.before = [*self.before, (action, self.now)][-MAX_UNDO:]
        self.after, self.now = [], state

    def new_id(self) -> str:
        """An id for a run that no run of any state has."""
        self.last_id += 1
        return f"r{self.last_id}"

    def undo(self) -> bool:
        return self._move(self.before, self.after)

    def redo(self) -> bool:
        return self._move(self.after, self.before)

    def known_runs(self) -> set[str]:
        """Ids of all runs to which the user can return."""
        states = (self.now, *(state for _, state in (*self.before, *self.after)))
        return {run.id for state in states for run in state.runs}

    def _move(self, source: list[tuple[str, State]], target: list[tuple[str, State]]) -> bool:
        if not source:
            return False
        action, state = source.pop()
        target.append((action, self.now))
        self.now = state
        return True

    def as_dict(self) -> dict[str, Any]:
        return {
            "now": self.now.as_dict(), "last_id": self.last_id,
            "before": [[action, state.as_dict()] for action, state in self.before],
            "after": [[action, state.as_dict()] for action, state in self.after],
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        stacks = {
            name: [(str(action), State.from_dict(state)) for action, state in values.get(name, ())]
            for name in ("before", "after")
        }
        return cls(State.from_dict(values.get("now", {})), **stacks, last_id=int(values.get("last_id", 0)))


def _build(cls: Any, values: Mapping[str, Any]) -> Any:
    """An instance from the known fields of a dictionary."""
    known = {each.name for each in fields(cls)}
    return cls(**{name: value for name, value in values.items() if name in known})
