"""The gap statistic over the number of clusters."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.palette import INK
from coterie.plots.display import Display, caption
from coterie.plots.k_axis import label_k_axis, mark_k, result_of
from coterie.selection.choose_k_result import ChooseK
from coterie.selection.gap import Gap


@dataclass(eq=False, repr=False)
class GapDisplay(Display):
    """The gap statistic: how much more compact clusters are than those of uniform rows, with standard errors."""

    kind: ClassVar[str] = "gap"
    ks: Array  # (m,)
    gap: Array  # (m,)
    errors: Array  # (m,) standard errors, times the factor of the rule
    recommended: int
    rule: str
    references: int

    @classmethod
    def from_result(cls, gap: Gap | ChooseK, *, ax: Any = None) -> Self:
        """Gap from the result of `gap_statistic`, or from a `ChooseK` that contains it."""
        result = result_of(gap, Gap, "gap_statistic", ("gap",), "'gap'")
        errors, n_references = result.se_factor * result.se, len(result.reference_log_w)
        return cls(result.ks, result.gap, errors, result.recommended, result.rule, n_references)._plot_into(ax)

    def _draw(self, ax: Any) -> None:
        self.line_ = ax.errorbar(
            self.ks, self.gap, yerr=self.errors, color=INK, marker="o", markersize=4, capsize=3, linewidth=1.4
        )
        label_k_axis(ax, self.ks, "gap")
        value = float(self.gap[self.ks == self.recommended][0])
        self.choice_ = mark_k(ax, self.recommended, value, f"K = {self.recommended} by {self.rule}")
        caption(ax, f"gap statistic ± standard error, {count(self.references, 'reference')}")


def gap(result: Any, *, ax: Any = None) -> Any:
    """Draw the gap statistic with standard errors, and the K that its rule recommends.

    Parameters
    ----------
    result : coterie.selection.Gap or ChooseK
        The result of `gap_statistic`, or of `choose_k` with 'gap' among its criteria.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    GapDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure.

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
    return GapDisplay.from_result(result, ax=ax)._drawn()
