"""Convergence of the fit."""

from collections.abc import Mapping, Sequence
from typing import Any

from coterie.core.formatting import count
from coterie.report.formatting import number
from coterie.report.html.blocks import figure, numbers
from coterie.report.html.charts.svg import FLAT, SLIM, WIDE, axes, axis_limits, marker, path, whole_ticks
from coterie.web import Markup, Plane, tag

HEIGHT, SLIM_HEIGHT = 300.0, 240.0
MAX_MARKERS = 60  # with more iterations the curve has no markers


def convergence(display: Mapping[str, Any]) -> Markup:
    """Draw the dictionary of a `ConvergenceDisplay`: the objective of every restart, the best one dark."""
    drawn, slim = _drawn(display, WIDE, HEIGHT), _drawn(display, SLIM, SLIM_HEIGHT)
    return figure("", drawn, _table(display), note=_note(display), slim=slim)


def text_without_curve(display: Mapping[str, Any]) -> str | None:
    """The text for a fit in which no restart took more than one iteration; None if there is a curve to draw."""
    last = max(iterations[-1] for iterations in display["iterations"])
    if last > 1:
        return None
    values = [value for value in display["values"][display["best"]] if value is not None]
    is_constant = abs(values[-1] - values[0]) <= FLAT * abs(values[-1])
    end = number(values[-1])
    change = f"stayed at {end}" if is_constant else f"went from {number(values[0])} to {end}"
    steps, n_restarts = count(round(last), "iteration"), len(display["values"])
    if n_restarts == 1:
        return f"The fit took {steps}, so there is no curve. The {display['label']} {change}."
    return (
        f"No restart took more than {steps}, so there is no curve. "
        f"The {display['label']} of the best of {n_restarts} restarts {change}."
    )


def _drawn(display: Mapping[str, Any], width: float, height: float) -> Markup:
    best, iterations, values = display["best"], display["iterations"], display["values"]
    known = [value for curve in [*values, display["bound"] or []] for value in curve if value is not None]
    last = max(steps[-1] for steps in iterations)
    low, high = axis_limits(known)
    plane = Plane(width, height, (-0.02 * max(last, 1.0), max(last, 1.0) * 1.02, low, high))
    of, drawn_axes = axes(plane, "iteration", display["label"], whole_ticks(0, max(1, int(last))))
    curves = [_points(of, *curve) for curve in zip(iterations, values, strict=True)]
    bound = None
    if display["bound"] is not None:
        lower = _points(of, iterations[best], display["bound"])
        between = path([*curves[best], *reversed(lower)], closed=True)
        bound = [tag("path", d=between, cls="between"), tag("path", d=path(lower), cls="curve bound")]
    markers = [
        marker(0, of.x(x), of.y(y), f"iteration {x:g}: {number(y)}", cls="mark ink")
        for x, y in zip(iterations[best], values[best], strict=True)
        if y is not None and len(iterations[best]) <= MAX_MARKERS
    ]
    return of.svg(
        f"{display['label']} over {count(round(last), 'iteration')} of {count(len(values), 'restart')}",
        drawn_axes,
        [tag("path", d=path(curve), cls="curve faint") for i, curve in enumerate(curves) if i != best],
        bound,
        tag("path", d=path(curves[best]), cls="curve ink"),
        markers,
    )


def _points(of: Plane, xs: Sequence[float], ys: Sequence[float | None]) -> list[tuple[float, float]]:
    return [(of.x(x), of.y(y)) for x, y in zip(xs, ys, strict=True) if y is not None]


def _note(display: Mapping[str, Any]) -> str:
    best = display["best"]
    final = [values[-1] for values in display["values"]]
    steps = count(round(display["iterations"][best][-1]), "iteration")
    note = f"The {display['label']} is {number(final[best])} after {steps}"
    if len(final) > 1:
        n_equal = sum(abs(value - final[best]) <= 1e-4 * abs(final[best]) for value in final)
        note += f"; {f'all {n_equal}' if n_equal == len(final) else f'{n_equal} of {len(final)}'} restarts ended there"
        if n_equal < len(final):
            note += f". The others (faint curves) ended at {number(max(final))} or less"
    if display["bound"] is not None:
        note += ". The band is the gap between the likelihood and the lower bound that EM maximises: "
        note += "each E-step closes it"
    return f"{note}."


def _table(display: Mapping[str, Any]) -> Markup:
    best = display["best"]
    header, columns = ["iteration", display["label"]], [display["iterations"][best], display["values"][best]]
    if display["bound"] is not None:
        header, columns = [*header, "lower bound"], [*columns, display["bound"]]
    rows = [[f"{row[0]:g}", *map(number, row[1:])] for row in zip(*columns, strict=True)]
    best_table = numbers(header, rows, left=())
    if len(display["values"]) == 1:
        return best_table
    restarts = [
        [f"{i + 1}{' ◀' if i == best else ''}", f"{round(iterations[-1]):,}", number(values[-1])]
        for i, (iterations, values) in enumerate(zip(display["iterations"], display["values"], strict=True))
    ]
    return tag("div", numbers(["restart", "iterations", "final value"], restarts, left=()), best_table)
