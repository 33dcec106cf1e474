"""How the fit went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coterie.report.html.charts.figure import figure, numbers
from coterie.report.html.charts.svg import FLAT, SLIM, WIDE, axes, marker, path, reach, whole_ticks
from coterie.report.html.words import count, number
from coterie.web import Markup, Plane, tag

HEIGHT, SLIM_HEIGHT = 300.0, 240.0
MARKED = 60  # iterations of which each has a mark


def convergence(display: Mapping[str, Any]) -> Markup:
    """Of the dictionary of a `ConvergenceDisplay`: the objective of every start, the best one dark."""
    drawn, slim = _drawn(display, WIDE, HEIGHT), _drawn(display, SLIM, SLIM_HEIGHT)
    return figure("", drawn, _table(display), note=_note(display), slim=slim)


def without_curve(display: Mapping[str, Any]) -> str | None:
    """What there is to say where no start took more than one iteration; None where there is a curve to draw."""
    last = max(own[-1] for own in display["iterations"])
    if last > 1:
        return None
    own = [value for value in display["values"][display["best"]] if value is not None]
    same = abs(own[-1] - own[0]) <= FLAT * abs(own[-1])
    went = (
        f"stayed at {number(own[-1])}, where it began" if same else f"went from {number(own[0])} to {number(own[-1])}"
    )
    steps, starts = count(round(last), "iteration"), len(display["values"])
    told = f"The {display['label']} {went}" if starts == 1 else f"That of the best of {starts} starts {went}"
    fit = (
        f"The fit took {steps}" if starts == 1 else f"No start took more than {steps} to settle the {display['label']}"
    )
    return f"{fit}, which makes no curve. {told}."


def _drawn(display: Mapping[str, Any], width: float, height: float) -> Markup:
    best, iterations, values = display["best"], display["iterations"], display["values"]
    known = [value for own in [*values, display["bound"] or []] for value in own if value is not None]
    last = max(own[-1] for own in iterations)
    low, high = reach(known)
    plane = Plane(width, height, (-0.02 * max(last, 1.0), max(last, 1.0) * 1.02, low, high))
    of, drawn_axes = axes(plane, "iteration", display["label"], whole_ticks(0, max(1, int(last))))
    others = [
        tag("path", d=path(_places(of, iterations[i], values[i])), cls="curve faint")
        for i in range(len(values))
        if i != best
    ]
    return of.svg(
        f"{display['label']} over {count(round(last), 'iteration')} of {count(len(values), 'start')}",
        drawn_axes,
        others,
        _bound(of, iterations[best], values[best], display["bound"]),
        tag("path", d=path(_places(of, iterations[best], values[best])), cls="curve ink"),
        _marks(of, iterations[best], values[best]),
    )


def _places(of: Plane, xs: Sequence[float], ys: Sequence[float | None]) -> list[tuple[float, float]]:
    return [(of.x(x), of.y(y)) for x, y in zip(xs, ys, strict=True) if y is not None]


def _marks(of: Plane, xs: Sequence[float], ys: Sequence[float | None]) -> list[Markup]:
    if len(xs) > MARKED:
        return []
    return [
        marker(0, of.x(x), of.y(y), f"iteration {x:g}: {number(y)}", cls="mark ink")
        for x, y in zip(xs, ys, strict=True)
        if y is not None
    ]


def _bound(of: Plane, xs: Sequence[float], ys: Sequence[float | None], bound: Sequence[float | None] | None) -> Any:
    if bound is None:
        return None
    upper, lower = _places(of, xs, ys), _places(of, xs, bound)
    return [
        tag("path", d=path([*upper, *reversed(lower)], closed=True), cls="between"),
        tag("path", d=path(lower), cls="curve bound"),
    ]


def _note(display: Mapping[str, Any]) -> str:
    best = display["best"]
    end = number(display["values"][best][-1])
    steps = count(round(display["iterations"][best][-1]), "iteration")
    told = f"The {display['label']} is {end} after {steps}"
    if len(display["values"]) > 1:
        ends = [own[-1] for own in display["values"]]
        near = sum(abs(value - ends[best]) <= 1e-4 * abs(ends[best]) for value in ends)
        told += (
            f"; of {len(ends)} starts {near} ended there, and the others, drawn faint, at {number(max(ends))} or less"
        )
        if near == len(ends):
            told = f"The {display['label']} is {end} after {steps}; all {len(ends)} starts ended there"
    if display["bound"] is not None:
        told += ". The band is the room between the likelihood and the bound that EM raises: each E-step closes it"
    return f"{told}."


def _table(display: Mapping[str, Any]) -> Markup:
    best = display["best"]
    header, columns = ["iteration", display["label"]], [display["iterations"][best], display["values"][best]]
    if display["bound"] is not None:
        header, columns = [*header, "lower bound"], [*columns, display["bound"]]
    rows = [[f"{row[0]:g}", *map(number, row[1:])] for row in zip(*columns, strict=True)]
    kept = numbers(header, rows, left=())
    if len(display["values"]) == 1:
        return kept
    starts = [
        [f"{i + 1}{' ◀' if i == best else ''}", f"{round(own[-1]):,}", number(ends[-1])]
        for i, (own, ends) in enumerate(zip(display["iterations"], display["values"], strict=True))
    ]
    return tag("div", numbers(["start", "iterations", "at the end"], starts, left=()), kept)
