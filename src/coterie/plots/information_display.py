"""Information criteria over the number of components."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.arguments import one_of
from coterie.errors import InputError
from coterie.palette import colours
from coterie.plots.display import Display, caption
from coterie.plots.k_displays import label_k_axis, mark_k, result_of
from coterie.selection.choose_k_result import ChooseK
from coterie.selection.mixture_table import CRITERIA, MixtureTable

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
