"""Votes: the support of each number of clusters by each criterion."""

from collections.abc import Mapping
from typing import Any

from coterie.core.formatting import count
from coterie.report.formatting import two_places
from coterie.report.html.charts.figure import figure, numbers
from coterie.report.html.charts.matrix import Cell, Head, Matrix, step_of
from coterie.web import Markup

MAX_KS = 40  # columns of the heatmap


def votes(display: Mapping[str, Any]) -> Markup:
    """Draw the dictionary of `Votes`: a row for each criterion, a column for each K, darker for more support."""
    ks, recommended = display["ks"], display["recommended"]
    columns = list(range(len(ks)))
    if len(ks) > MAX_KS:  # the first K, and those with votes
        with_votes = {recommended, *(vote["k"] for vote in display["votes"])}
        columns = [i for i, k in enumerate(ks) if i < MAX_KS - len(with_votes) or k in with_votes]
    rows = [_row(vote, ks, columns) for vote in display["votes"]]
    supports = [(ks[i], display["support"][i]) for i in columns]
    combined = [
        Cell(step_of(share), f"{100 * share:.0f}", f"combined support of K = {k}: {two_places(share)}")
        for k, share in supports
    ]
    heads = [
        Head(
            vote["name"],
            None,
            "no vote" if vote["k"] is None else f"weight {vote['weight']:g}" if vote["weight"] else "not counted",
        )
        for vote in display["votes"]
    ]
    grid = Matrix(
        f"Support of each K by {count(len(rows), 'criterion', 'criteria')}; {recommended} is recommended",
        [*heads, Head("combined, %")],
        [Head(str(ks[i])) for i in columns],
        [*rows, combined],
        marked=[ks[i] for i in columns].index(recommended),
        narrow=True,
    )
    note = (
        "The stronger the colour, the more a criterion supports that K. ✓ marks the choice of each criterion, in "
        "parentheses if it is not counted; the frame marks the recommended K. The weight of a criterion is its weight "
        "in the combined support."
    )
    lines = [
        [vote["name"], "–" if vote["k"] is None else str(vote["k"]), two_places(vote["confidence"]),
         f"{vote['weight']:g}", vote["note"] or ""]
        for vote in display["votes"]
    ]  # fmt: skip
    table = numbers(["criterion", "K", "margin", "weight", "note"], lines, left=(0, 4))
    return figure("Votes of the criteria", grid.drawn(), table, note=note, slim=grid.slim())


def _row(vote: Mapping[str, Any], ks: list[int], columns: list[int]) -> list[Cell]:
    has_weight = vote["weight"] > 0
    cells = []
    for i in columns:
        support, is_choice = vote["support"][i], vote["k"] == ks[i]
        tip = f"{vote['name']}, K = {ks[i]}: support {two_places(support)}{', its choice' if is_choice else ''}"
        cells.append(
            Cell(step_of(support if has_weight else 0.0), ("✓" if has_weight else "(✓)") if is_choice else "", tip)
        )
    return cells
