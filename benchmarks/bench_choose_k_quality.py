"""How often `choose_k` finds the number of clusters, beside each of its criteria alone, on tables where it is known.

Right: the number is the known one; 1 for tables without clusters. Honest: right, or said to be weak or none. A single
criterion has no strength, so it is honest only where it is right. Both halves of the tables are shown: the rule was
tuned on the first.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.choose_k_tables import HELD_OUT, TUNED, Table, tables
from benchmarks.harness import Options, main
from benchmarks.report import Result
from benchmarks.report import Table as Summary
from coterie import choose_k
from coterie.selection.votes import NAMES

BUDGETS = ("quick", "normal", "thorough")
OURS = "recommended"
THOROUGH_ROWS = 1_000  # larger tables are sampled for the budget "thorough", whose time grows with the rows
N_QUICK = 3  # tables of each half


@dataclass(frozen=True)
class Answer:
    """The answers for one table: of `choose_k` and of each criterion."""

    table: str
    half: str
    k: int
    strength: str
    runner_up: int | None
    seconds: float  # CPU time
    answers: dict[str, int | None] = field(default_factory=dict)

    def is_right(self, criterion: str, within: int = 0) -> bool:
        answer = self.answers.get(criterion)
        return answer is not None and abs(answer - self.k) <= within

    def is_honest(self) -> bool:
        return self.is_right(OURS) or self.strength != "clear"


def answer(table: Table, budget: str) -> Answer:
    X, start = table.load(), time.process_time()
    if budget == "thorough" and len(X) > THOROUGH_ROWS:
        X = X[:: -(-len(X) // THOROUGH_ROWS)]
    result = choose_k(X, budget=budget, random_state=0)
    seconds = time.process_time() - start
    votes = {vote.criterion: vote.k for vote in result.votes if vote.criterion != "tendency"}
    return Answer(
        table.name, table.half, table.k, result.strength, result.runner_up, seconds,
        {OURS: result.recommended} | votes,
    )  # fmt: skip


def summary(answers: Sequence[Answer], budget: str) -> Summary:
    """A row for each criterion; right, within one and honest for both halves."""
    halves = {half: [each for each in answers if each.half == half] for half in (TUNED, HELD_OUT)}
    criteria = dict.fromkeys(name for each in answers for name in each.answers)
    header = [f"budget {budget}"]
    for half, members in halves.items():
        header += [f"{half}: right of {len(members)}", "within one", "honest"]
    rows = []
    for name in sorted(criteria, key=lambda name: (name != OURS, -count_right(answers, name))):
        cells = [f"**{OURS}**" if name == OURS else NAMES[name]]
        for members in halves.values():
            honest = sum(each.is_honest() for each in members) if name == OURS else count_right(members, name)
            cells += [str(count_right(members, name)), str(count_right(members, name, 1)), str(honest)]
        rows.append(cells)
    clear = [each for each in answers if each.strength == "clear"]
    strengths = [each.strength for each in answers]
    notes = [
        f"strength: {', '.join(f'{name} {strengths.count(name)}' for name in ('clear', 'weak', 'none'))}; "
        f"{count_right(clear, OURS)} of the {len(clear)} clear ones are right",
        f"{sum(each.seconds for each in answers):.0f} CPU seconds",
    ]
    return Summary(f"Number of clusters, budget {budget}", header, rows, notes)


def count_right(answers: Iterable[Answer], criterion: str, within: int = 0) -> int:
    return sum(each.is_right(criterion, within) for each in answers)


def run(options: Options) -> Result:
    budgets, chosen = BUDGETS, tables()
    if options.quick:
        budgets, small = ("quick",), [table for table in chosen if table.k < 5]
        chosen = [table for half in (TUNED, HELD_OUT) for table in [t for t in small if t.half == half][-N_QUICK:]]
    answers = {budget: [answer(table, budget) for table in chosen] for budget in budgets}
    raw = {budget: [vars(each) for each in each_budget] for budget, each_budget in answers.items()}
    return Result([summary(found, budget) for budget, found in answers.items()], raw={"choose_k quality": raw})


if __name__ == "__main__":
    main("choose_k quality", run)
