"""What the user did, as plain data: the table, choices for its columns, and the runs with their edits.

A state is never changed: every action makes a new one, and undo returns to an earlier one. Results are not part of it;
they are stored beside it by the id of their run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

ROLES = ("feature", "ignored", "id", "weight")
NUMBER, CATEGORY = "number", "category"
AUTO = "auto"
KINDS = ("fit", "choose", "open", "cut", "merge")  # of runs
MAX_UNDO = 100


@dataclass(frozen=True)
class Source:
    """The file of the table; `size` and `modified` tell whether it has changed."""

    path: str
    name: str
    size: int
    modified: int
    is_copy: bool = False  # whether the file is in the folder of the workspace


@dataclass(frozen=True)
class Run:
    """A request for clusters, with the options that repeat it exactly, and the edits of its clusters."""

    id: str
    kind: str  # of `KINDS`; "open" is one K of a choice, and "cut" one of a tree
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


@dataclass(frozen=True)
class State:
    """The choices and runs of a workspace."""

    columns: dict[str, dict[str, str]] = field(default_factory=dict)  # role, as and transform, where they were set
    preparation: dict[str, str] = field(default_factory=dict)  # scale, missing, dates and decimal, where they were set
    runs: tuple[Run, ...] = ()
    current: str | None = None

    @property
    def is_consistent(self) -> bool:
        """Whether runs have different ids and come from earlier ones, and the current one is among them."""
        ids = [run.id for run in self.runs]
        are_older = all(run.parent is None or int(run.parent[1:]) < int(run.id[1:]) for run in self.runs)
        return are_older and len(set(ids)) == len(ids) and self.current in (None, *ids)

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

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        return cls(**{**values, "runs": tuple(Run(**run) for run in values.get("runs", ()))})


@dataclass(frozen=True)
class History:
    """The state now, and those to which undo and redo return, each with the action between them."""

    now: State = field(default_factory=State)
    before: tuple[tuple[str, State], ...] = ()
    after: tuple[tuple[str, State], ...] = ()
    last_id: int = 0

    def change(self, action: str, state: State) -> Self:
        """Go to a new state; the action can be undone."""
        last_id = max([self.last_id, *(int(run.id[1:]) for run in state.runs)])
        before = (*self.before, (action, self.now))[-MAX_UNDO:]
        return replace(self, now=state, before=before, after=(), last_id=last_id)

    @property
    def new_id(self) -> str:
        """An id for a run that no run of any state has."""
        return f"r{self.last_id + 1}"

    def undo(self) -> Self:
        action, state = self.before[-1]
        return replace(self, now=state, before=self.before[:-1], after=(*self.after, (action, self.now)))

    def redo(self) -> Self:
        action, state = self.after[-1]
        return replace(self, now=state, before=(*self.before, (action, self.now)), after=self.after[:-1])

    @property
    def states(self) -> list[State]:
        """The state now, then the others, from the nearest one."""
        return [self.now, *(state for _, state in (*self.before[::-1], *self.after[::-1]))]

    def known_runs(self) -> set[str]:
        """Ids of all runs to which the user can return."""
        return {run.id for state in self.states for run in state.runs}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        before, after = (
            tuple((str(action), State.from_dict(state)) for action, state in values.get(name, ()))
            for name in ("before", "after")
        )
        history = cls(State.from_dict(values["now"]), before, after)
        last_id = max([int(values.get("last_id", 0)), *(int(run_id[1:]) for run_id in history.known_runs())])
        return replace(history, last_id=last_id)
