"""Every criterion over the number of clusters, one panel each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from coterie.core.errors import InputError
from coterie.palette import FAINT, INK, MARK
from coterie.plots.curve import ticks_at
from coterie.plots.display import Display, check_axes, check_result, new_figure, plain_numbers
from coterie.selection.chosen import NAMES, ChooseK

LOWER = ("davies_bouldin", "bic", "icl")  # is better
COLUMNS = 3
TICKS = 8  # along K at most


class Panel(NamedTuple):
    """One criterion, as numbers to draw."""

    name: str
    title: str
    ks: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]
    errors: np.ndarray[Any, Any] | None
    best: int | None


@dataclass(eq=False, repr=False)
class CriteriaDisplay(Display):
    """A panel for the support of each K by all criteria, and one for each criterion that has a value for each K."""

    kind: ClassVar[str] = "criteria"
    recommended: int
    panels: list[Panel]

    @classmethod
    def from_result(cls, chosen: ChooseK, *, axes: Any = None) -> Self:
        """Of what `choose_k` answered."""
        check_result("chosen", chosen, (ChooseK,), "choose_k")
        made = cls(chosen.recommended, panels(chosen))
        return made if axes is None else made.plot(axes)

    def plot(self, axes: Any = None) -> Self:
        """Draw into as many matplotlib Axes as there are panels, or into a new figure; `axes_` are those drawn into."""
        places = _new_axes(len(self.panels)) if axes is None else np.ravel(axes)
        if len(places) < len(self.panels):
            raise InputError(f"axes must be at least {len(self.panels)}, one for each criterion; got {len(places)}")
        for ax in places:
            check_axes("axes", ax)
        for ax, panel in zip(places, self.panels, strict=False):
            _draw(ax, panel, self.recommended)
        for ax in places[len(self.panels) :]:
            ax.set_visible(False)
        self.axes_, self.ax_, self.figure_ = places[: len(self.panels)], places[0], places[0].figure
        self.figure_.suptitle(f"K = {self.recommended}", color=MARK, x=0.02, ha="left")
        return self


def criteria(chosen: ChooseK, axes: Any = None) -> Any:
    """Draw what `choose_k` measured: a panel a criterion, its own best K circled, the recommended K a line in all.

    Parameters
    ----------
    chosen : ChooseK
    axes : sequence of matplotlib Axes, optional
        As many as there are panels, see `CriteriaDisplay`; a new figure by default.

    Returns
    -------
    array of Axes

    Examples
    --------
    >>> from coterie import choose_k
    >>> from coterie.datasets import make_blobs
    >>> X, _ = make_blobs(200, 2, centers=3, cluster_std=0.3, random_state=0)
    >>> axes = choose_k(X, budget="quick").plot()
    >>> axes[0].get_ylabel()
    'support'
    """
    return CriteriaDisplay.from_result(chosen, axes=axes).axes_


def panels(chosen: ChooseK) -> list[Panel]:
    """What is drawn: the support of each K by all criteria, and then each criterion that has a value for each K."""
    rows = chosen.table()
    favoured = {vote.criterion: vote.k for vote in chosen.votes}
    found = [Panel("support", "support", chosen.ks, chosen.support, None, chosen.recommended)]
    for name in rows[0]:
        if name in ("k", "support", "recommended", "gap_se"):
            continue
        known = [(row["k"], row[name], row.get(f"{name}_se")) for row in rows if row[name] is not None]
        if not known:
            continue
        ks, values, errors = zip(*known, strict=True)
        title = "inertia (elbow)" if name == "objective" else NAMES[name]
        best = favoured.get("elbow" if name == "objective" else name)
        spread = None if errors[0] is None else np.array(errors)
        found.append(Panel(name, title, np.array(ks), np.array(values), spread, best))
    return found


def _new_axes(count: int) -> Any:
    lines = -(-count // COLUMNS)
    figure = new_figure((10, 2.3 * lines + 0.4), layout="constrained")
    return figure.subplots(lines, min(COLUMNS, count), squeeze=False).ravel()


def _draw(ax: Any, panel: Panel, recommended: int) -> None:
    ax.axvline(recommended, color=MARK, linewidth=6, alpha=0.25, zorder=0)
    if panel.name == "support":
        ax.bar(panel.ks, panel.values, color=[MARK if k == recommended else FAINT for k in panel.ks])
        ax.set_ylim(0, 1)
    else:
        ax.errorbar(panel.ks, panel.values, yerr=panel.errors, color=INK, marker="o", markersize=3, linewidth=1.2)
        at = np.flatnonzero(panel.ks == panel.best)
        ax.plot(panel.ks[at], panel.values[at], "o", markersize=9, markerfacecolor="none", color=MARK)
    ax.set_ylabel(panel.title + ("\n(lower is better)" if panel.name in LOWER else ""))
    ax.set_xlabel("K")
    ticks_at(ax, panel.ks, TICKS)
    plain_numbers(ax.yaxis)
    ax.spines[["top", "right"]].set_visible(False)
