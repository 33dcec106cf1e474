"""The objective over the number of clusters, and where it bends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from coterie.palette import INK
from coterie.plots.curve import chosen, over_k
from coterie.plots.display import Array, Display, caption, check_result
from coterie.selection.chosen import ChooseK
from coterie.selection.knee import kneedle, second_derivative
from coterie.selection.sweep import Sweep


@dataclass(eq=False, repr=False)
class ElbowDisplay(Display):
    """What is minimised, for each K, with the knee of the curve."""

    kind: ClassVar[str] = "elbow"
    ks: Array  # (m,)
    objectives: Array  # (m,)
    knee: float | None  # by Kneedle; None where there is none, or there are too few K
    second: float | None  # by the second derivative

    @classmethod
    def from_result(cls, sweep: Sweep | ChooseK, *, ax: Any = None) -> Self:
        """Of a `Sweep`, or of that of a `ChooseK`."""
        check_result("sweep", sweep, (Sweep, ChooseK), "sweep or choose_k")
        sweep = sweep.sweep if isinstance(sweep, ChooseK) else sweep
        enough = len(sweep.ks) > 2
        knee = kneedle(sweep.ks, sweep.objectives).x if enough else None
        return cls(
            sweep.ks, sweep.objectives, knee, second_derivative(sweep.ks, sweep.objectives) if enough else None
        )._on(ax)

    def _draw(self, ax: Any) -> None:
        (self.line_,) = ax.plot(self.ks, self.objectives, color=INK, marker="o", markersize=4)
        over_k(ax, self.ks, "objective (lower is tighter)")
        value = None if self.knee is None else float(self.objectives[self.ks == self.knee][0])
        self.knee_line_ = chosen(ax, self.knee, value, f"knee at K = {self.knee:g}" if self.knee is not None else "")
        none = "the curve has no knee" if len(self.ks) > 2 else "a knee takes three K"
        caption(ax, "elbow" if self.knee is not None else f"elbow: {none}")


def elbow(sweep: Any, *, ax: Any = None) -> Any:
    """Draw the objective over K with its knee by Kneedle.

    A knee says where more clusters stop to pay, by the eye; noise has knees too (see `coterie.selection.kneedle`).

    Parameters
    ----------
    sweep : `coterie.selection.Sweep` or `ChooseK`
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from coterie import KMeans, plots
    >>> from coterie.datasets import make_blobs
    >>> from coterie.selection import sweep
    >>> X, _ = make_blobs(200, 2, centers=3, cluster_std=0.3, random_state=0)
    >>> ax = plots.elbow(sweep(KMeans(random_state=0), range(1, 9), X))
    >>> ax.texts[0].get_text()
    'knee at K = 3'
    """
    return ElbowDisplay.from_result(sweep, ax=ax).ax_
