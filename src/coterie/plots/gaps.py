"""The gap statistic over the number of clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from coterie.core.errors import ParameterError
from coterie.palette import INK
from coterie.plots.curve import chosen, over_k
from coterie.plots.display import Array, Display, caption, check_result, counted
from coterie.selection.chosen import ChooseK
from coterie.selection.gap import Gap


@dataclass(eq=False, repr=False)
class GapDisplay(Display):
    """How much tighter clusters are than those of rows without any, with standard errors."""

    kind: ClassVar[str] = "gap"
    ks: Array  # (m,)
    gap: Array  # (m,)
    errors: Array  # (m,) as wide as the rule takes them
    recommended: int
    rule: str
    references: int

    @classmethod
    def from_result(cls, gap: Gap | ChooseK, *, ax: Any = None) -> Self:
        """Of what `gap_statistic` found, alone or in a `ChooseK`."""
        check_result("result", gap, (Gap, ChooseK), "gap_statistic or choose_k")
        found = gap.results.get("gap") if isinstance(gap, ChooseK) else gap
        if found is None:
            raise ParameterError("choose_k was not asked for the gap: call it with methods that have 'gap'")
        errors = found.se_factor * found.se
        return cls(found.ks, found.gap, errors, found.recommended, found.rule, len(found.reference_log_w))._on(ax)

    def _draw(self, ax: Any) -> None:
        self.line_ = ax.errorbar(
            self.ks, self.gap, yerr=self.errors, color=INK, marker="o", markersize=4, capsize=3, linewidth=1.4
        )
        over_k(ax, self.ks, "gap")
        value = float(self.gap[self.ks == self.recommended][0])
        self.choice_ = chosen(ax, self.recommended, value, f"K = {self.recommended} by {self.rule}")
        caption(ax, f"gap statistic ± standard error, {counted(self.references, 'reference')}")


def gap(result: Any, *, ax: Any = None) -> Any:
    """Draw the gap statistic with its errors, and the K that its rule takes.

    Parameters
    ----------
    result : `coterie.selection.Gap` or `ChooseK`
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from coterie import plots
    >>> from coterie.datasets import make_blobs
    >>> from coterie.selection import gap_statistic
    >>> X, _ = make_blobs(200, 2, centers=3, cluster_std=0.2, random_state=0)
    >>> ax = plots.gap(gap_statistic(X, range(1, 6), n_references=10, random_state=0))
    >>> ax.texts[0].get_text()
    'K = 3 by tibs2001SEmax'
    """
    return GapDisplay.from_result(result, ax=ax).ax_
