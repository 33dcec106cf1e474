"""All criteria of `choose_k` over the number of clusters, one panel each."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from coterie.core.arguments import one_of
from coterie.errors import InputError
from coterie.palette import FAINT, INK, MARK, colours
from coterie.plots.display import Display, caption, check_axes, check_result, label_axes, new_figure, plain_numbers
from coterie.plots.k_displays import label_k_axis, mark_k, result_of, set_k_ticks
from coterie.selection.choose_k_result import ChooseK
from coterie.selection.mixture_table import CRITERIA, MixtureTable
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
        return cls(chosen.recommended, panels(chosen))._plot_into(axes)

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


# Information criteria over the number of components.

MARKERS = "os^vD<>pPX*hHd"


@dataclass(eq=False, repr=False)
class InformationDisplay(Display):
    """BIC, AIC or ICL of mixtures; lower is better."""

    kind: ClassVar[str] = "information"
    size: ClassVar[tuple[float, float]] = (7.2, 4.6)
    criterion: str
    ks: np.ndarray  # (m,)
    structures: list[str]
    values: np.ndarray  # (m, structures) infinite if there is no valid fit
    best: list[Any]  # K and structure with the lowest value

    @classmethod
    def from_result(cls, table: MixtureTable | ChooseK, *, criterion: str = "bic", ax: Any = None) -> Self:
        """Criteria from the result of `mixture_table`, or from a `ChooseK` that contains it."""
        result = result_of(table, MixtureTable, "mixture_table", ("mixtures",), "'bic' or 'icl'")
        one_of("criterion", criterion, CRITERIA)
        best = result.best(1, criterion)
        if not best:
            raise InputError(
                "no mixture of the table has a valid fit: fit fewer components, or simpler covariance structures"
            )
        values = getattr(result, criterion)
        return cls(criterion, result.ks, list(result.structures), values, [best[0].k, best[0].structure])._plot_into(ax)

    def _draw(self, ax: Any) -> None:
        self.lines_ = []
        for j, (name, colour) in enumerate(zip(self.structures, colours(len(self.structures)), strict=True)):
            known = np.where(np.isfinite(self.values[:, j]), self.values[:, j], np.nan)
            style = {"marker": MARKERS[j % len(MARKERS)], "linestyle": "-" if j < 7 else "--"}
            self.lines_ += ax.plot(self.ks, known, color=colour, markersize=5, linewidth=1.1, label=name, **style)
        label_k_axis(ax, self.ks, f"{self.criterion.upper()} (lower is better)")
        ax.set_xlabel("number of components K")
        k, structure = self.best
        values = self.values[:, self.structures.index(structure)]
        self.choice_ = mark_k(ax, self.ks, values, k, f"{structure}, K = {k}")
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9)
        caption(ax, f"{self.criterion.upper()} of each covariance structure")


def information(result: Any, *, criterion: str = "bic", ax: Any = None) -> Any:
    """Draw BIC, AIC or ICL over the number of components, with a curve for each covariance structure.

    The lowest value is circled. A curve ends where there is no valid fit.

    Parameters
    ----------
    result : coterie.selection.MixtureTable or ChooseK
        The result of `mixture_table`, or of `choose_k` with 'bic' or 'icl' among its criteria.
    criterion : {'bic', 'aic', 'icl'}, default='bic'
        Criterion to draw.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    InformationDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure.

    Examples
    --------
    >>> from coterie import plots
    >>> from coterie.datasets import make_blobs
    >>> from coterie.selection import mixture_table
    >>> X, _ = make_blobs(150, 2, centers=3, cluster_std=0.2, random_state=0)
    >>> ax = plots.information(mixture_table(X, range(1, 5), structures=["EII", "VVV"], random_state=0))
    >>> ax.texts[0].get_text()
    'EII, K = 3'
    """
    return InformationDisplay.from_result(result, criterion=criterion, ax=ax)._drawn()
