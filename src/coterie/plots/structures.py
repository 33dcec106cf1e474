"""Information criteria over the number of components, a curve for each structure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.arguments import one_of
from coterie.core.errors import InputError, ParameterError
from coterie.palette import colours
from coterie.plots.curve import chosen, over_k
from coterie.plots.display import Array, Display, caption, check_result
from coterie.selection.chosen import ChooseK
from coterie.selection.mixtures import CRITERIA, MixtureTable

MARKERS = "os^vD<>pPX*hHd"


@dataclass(eq=False, repr=False)
class InformationDisplay(Display):
    """BIC, AIC or ICL of mixtures: lower is better."""

    kind: ClassVar[str] = "information"
    size: ClassVar[tuple[float, float]] = (7.2, 4.6)
    criterion: str
    ks: Array  # (m,)
    structures: list[str]
    values: Array  # (m, structures) infinite where there is no sound fit
    best: list[Any]  # K and structure of the lowest value

    @classmethod
    def from_result(cls, table: MixtureTable | ChooseK, *, criterion: str = "bic", ax: Any = None) -> Self:
        """Of what `mixture_table` found, alone or in a `ChooseK`."""
        check_result("result", table, (MixtureTable, ChooseK), "mixture_table or choose_k")
        found = table.results.get("mixtures") if isinstance(table, ChooseK) else table
        if found is None:
            raise ParameterError("choose_k was not asked for mixtures: call it with methods that have 'bic' or 'icl'")
        one_of("criterion", criterion, CRITERIA)
        best = found.best(1, criterion)
        if not best:
            raise InputError("no mixture of the table is sound: there is nothing to draw")
        values = getattr(found, criterion)
        return cls(criterion, found.ks, list(found.structures), values, [best[0].k, best[0].structure])._on(ax)

    def _draw(self, ax: Any) -> None:
        self.lines_ = []
        for j, (name, colour) in enumerate(zip(self.structures, colours(len(self.structures)), strict=True)):
            known = np.where(np.isfinite(self.values[:, j]), self.values[:, j], np.nan)
            style = {"marker": MARKERS[j % len(MARKERS)], "linestyle": "-" if j < 7 else "--"}
            self.lines_ += ax.plot(self.ks, known, color=colour, markersize=5, linewidth=1.1, label=name, **style)
        over_k(ax, self.ks, f"{self.criterion.upper()} (lower is better)")
        ax.set_xlabel("number of components K")
        k, structure = self.best
        value = float(self.values[self.ks == k, self.structures.index(structure)][0])
        self.choice_ = chosen(ax, k, value, f"{structure}, K = {k}")
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9)
        caption(ax, f"{self.criterion.upper()} of each covariance structure")


def information(result: Any, *, criterion: str = "bic", ax: Any = None) -> Any:
    """Draw BIC, AIC or ICL over the number of components, a curve for each covariance structure, the best one circled.

    Curves end where there is no sound fit.

    Parameters
    ----------
    result : `coterie.selection.MixtureTable` or `ChooseK`
    criterion : {'bic', 'aic', 'icl'}, default='bic'
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from coterie import plots
    >>> from coterie.datasets import make_blobs
    >>> from coterie.selection import mixture_table
    >>> X, _ = make_blobs(150, 2, centers=3, cluster_std=0.2, random_state=0)
    >>> ax = plots.information(mixture_table(X, range(1, 5), ["EII", "VVV"], random_state=0))
    >>> ax.texts[0].get_text()
    'EII, K = 3'
    """
    return InformationDisplay.from_result(result, criterion=criterion, ax=ax).ax_
