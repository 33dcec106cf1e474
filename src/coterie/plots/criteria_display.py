"""All criteria of `choose_k` over the number of clusters, one panel each."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from coterie.errors import InputError
from coterie.palette import FAINT, INK, MARK
from coterie.plots.display import Display, check_axes, check_result, label_axes, new_figure, plain_numbers
from coterie.plots.k_displays import set_k_ticks
from coterie.selection.choose_k_result import ChooseK
from coterie.selection.votes import NAMES

LOWER = ("davies_bouldin", "bic", "icl")  # criteria whose lower values are better
COLUMNS = 3
TICKS = 8  # maximum number of ticks along K


class Panel(NamedTuple):
    """The values of one criterion."""

    name: str
    title: str
    ks: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]
    errors: np.ndarray[Any, Any] | None
    best: int | None


@dataclass(eq=False, repr=False)
class CriteriaDisplay(Display):
    """One panel for the support of each K by all criteria, and one for each criterion with a value for each K."""

    kind: ClassVar[str] = "criteria"
    recommended: int
    panels: list[Panel]

    @classmethod
    def from_result(cls, chosen: ChooseK, *, axes: Any = None) -> Self:
        """Criteria from the result of `choose_k`."""
        check_result("chosen", chosen, (ChooseK,), "choose_k")
        display = cls(chosen.recommended, panels(chosen))
        return display if axes is None else display.plot(axes)

    def plot(self, axes: Any = None) -> Self:
        """Draw into matplotlib Axes, one for each panel, or into a new figure, and set `axes_`."""
        if axes is None:
            lines = -(-len(self.panels) // COLUMNS)
            figure = new_figure((10, 2.3 * lines + 0.4), layout="constrained")
            axes = figure.subplots(lines, min(COLUMNS, len(self.panels)), squeeze=False)
        places = np.ravel(axes)
        if len(places) < len(self.panels):
            raise InputError(
                f"axes must contain at least {len(self.panels)} Axes, one for each panel; got {len(places)}"
            )
        for ax in places:
            check_axes("axes", ax)
        for ax, panel in zip(places, self.panels, strict=False):
            _draw(ax, panel, self.recommended)
        for ax in places[len(self.panels) :]:
            ax.set_visible(False)
        self.axes_, self.ax_, self.figure_ = places[: len(self.panels)], places[0], places[0].figure
        self.figure_.suptitle(f"K = {self.recommended}", color=MARK, x=0.02, ha="left")
        return self


def criteria(result: ChooseK, *, axes: Any = None) -> Any:
    """Draw the criteria of `choose_k`, one panel each: the best K of each circled, the recommended K as a line.

    Parameters
    ----------
    result : ChooseK
        The result of `choose_k`.
    axes : sequence of matplotlib Axes or None, default=None
        Axes to draw into, at least as many as there are panels (see `CriteriaDisplay`). None creates a new figure.

    Returns
    -------
    CriteriaDisplay
        Notebooks show it as a picture. `axes_` and `figure_` are its Axes and figure.

    Examples
    --------
    >>> from coterie import choose_k
    >>> from coterie.datasets import make_blobs
    >>> X, _ = make_blobs(200, 2, centers=3, cluster_std=0.3, random_state=0)
    >>> display = choose_k(X, budget="quick", random_state=0).plot()
    >>> display.axes_[0].get_ylabel()
    'support'
    """
    return CriteriaDisplay.from_result(result, axes=axes)._drawn()


def panels(chosen: ChooseK) -> list[Panel]:
    """Return the panels: the support of each K by all criteria, then each criterion with a value for each K."""
    rows = chosen.table()
    favoured = {vote.criterion: vote.k for vote in chosen.votes}
    result = [Panel("support", "support", chosen.ks, chosen.support, None, chosen.recommended)]
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
        result.append(Panel(name, title, np.array(ks), np.array(values), spread, best))
    return result


def _draw(ax: Any, panel: Panel, recommended: int) -> None:
    ax.axvline(recommended, color=MARK, linewidth=6, alpha=0.25, zorder=0)
    if panel.name == "support":
        ax.bar(panel.ks, panel.values, color=[MARK if k == recommended else FAINT for k in panel.ks])
        ax.set_ylim(0, 1)
    else:
        ax.errorbar(panel.ks, panel.values, yerr=panel.errors, color=INK, marker="o", markersize=3, linewidth=1.2)
        at = np.flatnonzero(panel.ks == panel.best)
        ax.plot(panel.ks[at], panel.values[at], "o", markersize=9, markerfacecolor="none", color=MARK)
    label_axes(ax, "K", panel.title + ("\n(lower is better)" if panel.name in LOWER else ""))
    set_k_ticks(ax, panel.ks, TICKS)
    plain_numbers(ax.yaxis)
