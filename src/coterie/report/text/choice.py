"""The choice of the number of clusters as plain text for a terminal."""

from collections.abc import Callable
from typing import Any

from coterie.report.choice import Choice, ChoiceResult
from coterie.report.text.heading import heading, page_lines
from coterie.report.text.layout import columns, number, two_places

MARK = " ◀"


def choice_text(result: ChoiceResult) -> str:
    """The data, the table of criteria, the reason, and the votes."""
    votes = [
        [vote.criterion, "–" if vote.k is None else str(vote.k), two_places(vote.confidence), f"{vote.weight:g}"]
        for vote in result.choice.votes
    ]
    header = ["criterion", "K", "margin", "weight"]
    vote_lines = [*columns([header, *votes], left=[0]), *_notes(result)]
    return "\n".join([*heading(result), *choice_lines(result.choice), "", *vote_lines, *page_lines(result)])


def choice_lines(choice: Choice) -> list[str]:
    """A table with a line for each K, the recommended K marked, and the reason."""
    cells = {name: cell for name, cell in CELLS.items() if any(cell(row) != "–" for row in choice.table)}
    rows = [[_k(row), *(cell(row) for cell in cells.values())] for row in choice.table]
    sample = f" (from a random sample of {choice.rows_looked_at:,} rows)" if choice.rows_looked_at < choice.rows else ""
    return [
        *columns([["K" + " " * len(MARK), *(_column_name(name, choice) for name in cells)], *rows]),
        f"✓ K = {choice.recommended}: {choice.reason}{sample}",
    ]


def _k(row: dict[str, Any]) -> str:
    return f"{row['k']}{MARK if row['recommended'] else ' ' * len(MARK)}"


def _column_name(name: str, choice: Choice) -> str:
    return "objective" if name == "inertia" and not choice.clusters_by.endswith("K-means") else name


def _gap(row: dict[str, Any]) -> str:
    if row.get("gap") is None:
        return "–"
    return f"{two_places(row['gap'])} ± {row.get('gap_se') or 0.0:.2f}"


CELLS: dict[str, Callable[[dict[str, Any]], str]] = {
    "inertia": lambda row: number(row.get("objective")),
    "silhouette": lambda row: two_places(row.get("silhouette")),
    "gap ± se": _gap,
    "BIC": lambda row: number(row.get("bic")),
    "ICL": lambda row: number(row.get("icl")),
    "pred. strength": lambda row: two_places(row.get("prediction_strength")),
    "stability": lambda row: two_places(row.get("stability")),
    "support": lambda row: two_places(row.get("support")),
}


def _notes(result: ChoiceResult) -> list[str]:
    return [f"  {vote.criterion}: {vote.note}" for vote in result.choice.votes if vote.note]
