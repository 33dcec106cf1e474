"""Who votes for what: the support of each number of clusters by each criterion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coterie.report.html.charts.figure import figure, numbers
from coterie.report.html.charts.matrix import Cell, Head, Matrix, step_of
from coterie.report.html.words import count, two_places
from coterie.web import Markup

MOST_KS = 40


def votes(shown: Mapping[str, Any]) -> Markup:
    """Of the dictionary of a `VotesDisplay`: a row a criterion, a column a K, darker where it speaks for that K."""
    ks, recommended = shown["ks"], shown["recommended"]
    places = _places(ks, recommended, [vote["k"] for vote in shown["votes"]])
    rows = [_row(vote, ks, places) for vote in shown["votes"]]
    together = [_together(ks[i], shown["support"][i]) for i in places]
    heads = [Head(vote["name"], None, _weight(vote)) for vote in shown["votes"]]
    grid = Matrix(
        f"Support of each K by {count(len(rows), 'criterion', 'criteria')}; {recommended} is recommended",
        [*heads, Head("all together, %")],
        [Head(str(ks[i])) for i in places],
        [*rows, together],
        marked=[ks[i] for i in places].index(recommended),
        narrow=True,
    )
    note = (
        "The stronger the colour, the more a criterion speaks for that K; ✓ marks its own choice, "
        "the frame the K that is recommended. "
        "“Counts” is the weight of its vote: see the numbers."
    )
    return figure("Who votes for what", grid.drawn(), _table(shown), note=note, slim=grid.slim())


def _places(ks: list[int], recommended: int, favoured: list[int | None]) -> list[int]:
    """All K, or of very many the first ones and those that somebody speaks for."""
    if len(ks) <= MOST_KS:
        return list(range(len(ks)))
    wanted = {recommended, *favoured}
    return [i for i, k in enumerate(ks) if i < MOST_KS - len(wanted) or k in wanted]


def _row(vote: Mapping[str, Any], ks: list[int], places: list[int]) -> list[Cell]:
    counts = vote["weight"] > 0
    found = []
    for i in places:
        support, own = vote["support"][i], vote["k"] == ks[i]
        told = f"{vote['name']}, K = {ks[i]}: support {two_places(support)}{', its choice' if own else ''}"
        found.append(Cell(step_of(support if counts else 0.0), "✓" if own else "", told))
    return found


def _together(k: int, support: float) -> Cell:
    return Cell(step_of(support), f"{100 * support:.0f}", f"all together for K = {k}: {two_places(support)}")


def _weight(vote: Mapping[str, Any]) -> str:
    if vote["k"] is None:
        return "no vote"
    return f"counts {vote['weight']:g}" if vote["weight"] else "counts nothing"


def _table(shown: Mapping[str, Any]) -> Markup:
    rows = [
        [
            vote["name"],
            "–" if vote["k"] is None else str(vote["k"]),
            two_places(vote["confidence"]),
            f"{vote['weight']:g}",
            vote["note"] or "",
        ]
        for vote in shown["votes"]
    ]
    return numbers(["criterion", "K", "ahead by", "counts", "note"], rows, left=(0, 4))
