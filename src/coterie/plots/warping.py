"""How two series meet: the table of least costs, the path through it, and the series along its sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from coterie import distances
from coterie.distances.dtw import as_pair
from coterie.palette import FAINT, INK, MARK, colours
from coterie.plots.display import Array, Display, caption, counted, new_figure

CELLS = 400  # of the table along each side, of which a longer one is thinned out
CHANNELS = 6  # that are drawn


@dataclass(eq=False, repr=False)
class DTWPathDisplay(Display):
    """Two series, the least cost of a path to each pair of their moments, and the best path."""

    kind: ClassVar[str] = "dtw_path"
    size: ClassVar[tuple[float, float]] = (6.4, 6.2)
    x: Array  # (n, channels)
    y: Array  # (m, channels)
    cost: Array  # (n', m') every `steps`-th row and column; infinite outside of the window
    steps: list[int]  # how many moments a row and a column of the table stand for
    path: Array  # (length, 2)
    distance: float

    @classmethod
    def from_predictions(cls, x: Any, y: Any, *, window: Any = None, cost: str = "squared", ax: Any = None) -> Self:
        """Of two series; `window` and `cost` as in `coterie.distances.dtw`."""
        A, B = as_pair(x, y)
        found = distances.dtw_path(x, y, window=window, cost=cost)
        steps = [max(1, -(-side // CELLS)) for side in found.cost.shape]
        total = float(found.cost[-1, -1])
        thin = found.cost[:: steps[0], :: steps[1]].astype(np.float64)
        one, other = (np.asarray(series(0), dtype=np.float64) for series in (A, B))
        return cls(one, other, thin, steps, found.path, np.sqrt(total) if cost == "squared" else total)._on(ax)

    def _new_axes(self) -> Any:
        return new_figure(self.size).add_axes((0.31, 0.09, 0.65, 0.62))  # the series are beside it

    def _draw(self, ax: Any) -> None:
        n, m = len(self.x), len(self.y)
        shown = np.ma.masked_invalid(self.cost)
        self.image_ = ax.imshow(
            shown, origin="lower", aspect="auto", cmap="Blues", interpolation="nearest",
            extent=(-0.5, m - 0.5, -0.5, n - 0.5),
        )  # fmt: skip
        ax.set_facecolor(FAINT)
        (self.path_,) = ax.plot(self.path[:, 1], self.path[:, 0], color=MARK, linewidth=1.8)
        ax.set_xlim(-0.5, m - 0.5)
        ax.set_ylim(-0.5, n - 0.5)
        ax.tick_params(labelleft=False, left=False)
        ax.set_xlabel("moments of y")
        self.side_ = ax.inset_axes((-0.30, 0.0, 0.28, 1.0), sharey=ax)
        self.top_ = ax.inset_axes((0.0, 1.02, 1.0, 0.28), sharex=ax)
        self._draw_series()
        self.side_.set_ylabel("moments of x")
        caption(self.top_, f"DTW distance {self.distance:.4g}, a path of {counted(len(self.path), 'step')}")

    def _draw_series(self) -> None:
        from matplotlib.ticker import MaxNLocator

        for j, colour in zip(range(self.x.shape[1]), colours(min(self.x.shape[1], CHANNELS)), strict=False):
            colour = INK if self.x.shape[1] == 1 else colour
            self.side_.plot(self.x[:, j], np.arange(len(self.x)), color=colour, linewidth=1.3)
            self.top_.plot(np.arange(len(self.y)), self.y[:, j], color=colour, linewidth=1.3)
        self.side_.invert_xaxis()
        self.side_.xaxis.set_major_locator(MaxNLocator(3, prune="both"))
        self.side_.tick_params(labelbottom=True, labelsize=8)
        self.top_.tick_params(labelbottom=False, bottom=False, labelsize=8)
        self.side_.spines[["top", "left"]].set_visible(False)
        self.top_.spines[["top", "right"]].set_visible(False)


def dtw_path(x: Any, y: Any, *, window: Any = None, cost: str = "squared", ax: Any = None) -> Any:
    """Draw how dynamic time warping lets two series meet.

    The table is the least cost of a path from the beginnings to each pair of moments, darker where it is more, grey
    where the window lets no path go; the line is the path of least cost. The series are along the sides.

    Parameters
    ----------
    x, y : array (length,) or (length, channels)
        Along the left side, and along the top. Six channels are drawn at most.
    window, cost
        As in `coterie.distances.dtw`.
    ax : matplotlib Axes, optional
        Of the table; the series are put beside it, so leave room at its left and above.

    Returns
    -------
    Axes
        That of the table.

    Examples
    --------
    >>> from coterie import plots
    >>> ax = plots.dtw_path([1, 2, 3], [1, 2, 2, 4])
    >>> ax.lines[0].get_xydata().tolist()
    [[0.0, 0.0], [1.0, 1.0], [2.0, 1.0], [3.0, 2.0]]
    """
    return DTWPathDisplay.from_predictions(x, y, window=window, cost=cost, ax=ax).ax_
