"""The objective over the number of clusters, with its elbow."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from coterie.core.arrays import Array
from coterie.palette import INK
from coterie.plots.display import Display, caption, check_result
from coterie.plots.k_axis import label_k_axis, mark_k
from coterie.selection.choose_k_result import ChooseK
from coterie.selection.knee import kneedle, second_derivative
from coterie.selection.sweep import Sweep


@dataclass(eq=False, repr=False)
class ElbowDisplay(Display):
    """The objective for each K, and the knee of the curve."""

    kind: ClassVar[str] = "elbow"
    ks: Array  # (m,)
    objectives: Array  # (m,)
    knee: float | None  # by Kneedle; None if there is no knee, or fewer than three K
    second: float | None  # by the second derivative

    @classmethod
    def from_result(cls, sweep: Sweep | ChooseK, *, ax: Any = None) -> Self:
        """Elbow of a `Sweep`, or of the sweep of a `ChooseK`."""
        check_result("sweep", sweep, (Sweep, ChooseK), "sweep or choose_k")
        sweep = sweep.sweep if isinstance(sweep, ChooseK) else sweep
        ks, objectives = sweep.ks, sweep.objectives
        knees = (kneedle(ks, objectives).x, second_derivative(ks, objectives)) if len(ks) > 2 else (None, None)
        return cls(ks, objectives, *knees)._plot_into(ax)

    def _draw(self, ax: Any) -> None:
        (self.line_,) = ax.plot(self.ks, self.objectives, color=INK, marker="o", markersize=4)
        label_k_axis(ax, self.ks, "objective (lower is more compact)")
        value = None if self.knee is None else float(self.objectives[self.ks == self.knee][0])
        self.knee_line_ = mark_k(ax, self.knee, value, f"knee at K = {self.knee:g}" if self.knee is not None else "")
        reason = "the curve has no knee" if len(self.ks) > 2 else "needs at least three K"
        caption(ax, "elbow" if self.knee is not None else f"elbow: {reason}")


def elbow(result: Any, *, ax: Any = None) -> Any:
    """Draw the objective over K, with its knee by Kneedle.

    The knee is the K from which more clusters reduce the objective only a little. Data without clusters can also have
    a knee (see `coterie.selection.kneedle`).

    Parameters
    ----------
    result : coterie.selection.Sweep or ChooseK
        The result of `sweep` or `choose_k`.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    ElbowDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure.

    Examples
    --------
    >>> from coterie import KMeans, plots
    >>> from coterie.datasets import make_blobs
    >>> from coterie.selection import sweep
    >>> X, _ = make_blobs(200, 2, centers=3, cluster_std=0.3, random_state=0)
    >>> ax = plots.elbow(sweep(KMeans(random_state=0), X, range(1, 9)))
    >>> ax.texts[0].get_text()
    'knee at K = 3'
    """
    return ElbowDisplay.from_result(result, ax=ax)._drawn()
