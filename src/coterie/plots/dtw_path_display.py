"""Dynamic time warping of two series: the cost matrix, the optimal path and the series."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from coterie import distances
from coterie.core.formatting import count
from coterie.distances.dtw import as_pair
from coterie.palette import FAINT, INK, MARK, colours
from coterie.plots.display import Display, caption, new_figure

CELLS = 400  # maximum size of the drawn cost matrix; a larger one is subsampled
CHANNELS = 6  # maximum number of channels that are drawn


@dataclass(eq=False, repr=False)
class DTWPathDisplay(Display):
    """Two series, the accumulated cost matrix and the optimal path."""

    kind: ClassVar[str] = "dtw_path"
    size: ClassVar[tuple[float, float]] = (6.4, 6.2)
    x: np.ndarray  # (n, channels)
    y: np.ndarray  # (m, channels)
    cost: np.ndarray  # (n', m') every `steps`-th row and column of the cost matrix; infinite outside the window
    steps: list[int]  # subsampling step of the rows and columns
    path: np.ndarray  # (length, 2)
    distance: float

    @classmethod
    def from_predictions(cls, x: Any, y: Any, *, window: Any = None, cost: str = "squared", ax: Any = None) -> Self:
        """Path of two series; `window` and `cost` as in `coterie.distances.dtw`."""
        A, B = as_pair(x, y)
        result = distances.dtw_path(x, y, window=window, cost=cost)
        steps = [max(1, -(-side // CELLS)) for side in result.cost.shape]
        total = float(result.cost[-1, -1])
        subsampled = result.cost[:: steps[0], :: steps[1]].astype(np.float64)
        one, other = (np.asarray(series(0), dtype=np.float64) for series in (A, B))
        distance = np.sqrt(total) if cost == "squared" else total
        return cls(one, other, subsampled, steps, result.path, distance)._plot_into(ax)

    def _new_axes(self) -> Any:
        return new_figure(self.size).add_axes((0.31, 0.09, 0.65, 0.62))  # leaves space for the series at its sides

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
        ax.set_xlabel("time index of y")
        self.side_ = ax.inset_axes((-0.30, 0.0, 0.28, 1.0), sharey=ax)
        self.top_ = ax.inset_axes((0.0, 1.02, 1.0, 0.28), sharex=ax)
        self._draw_series()
        self.side_.set_ylabel("time index of x")
        caption(self.top_, f"DTW distance {self.distance:.4g}, a path of {count(len(self.path), 'step')}")

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
    """Draw the dynamic time warping path of two series.

    The image is the accumulated cost matrix: the minimum cost of a path from the first pair of values to each pair.
    Darker cells have a higher cost; grey cells are outside the window. The line is the path of minimum cost. The series
    are drawn along the sides.

    Parameters
    ----------
    x, y : array of shape (length,) or (length, channels)
        The series, drawn at the left and at the top. At most six channels are drawn.
    window, cost
        As in `coterie.distances.dtw`.
    ax : matplotlib Axes or None, default=None
        Axes for the cost matrix. The series are drawn outside of it, at the left and above: leave space there. None
        creates a new figure.

    Returns
    -------
    DTWPathDisplay
        Notebooks show it as a picture. `ax_` are the Axes of the cost matrix, and `figure_` is the figure.

    Examples
    --------
    >>> from coterie import plots
    >>> ax = plots.dtw_path([1, 2, 3], [1, 2, 2, 4])
    >>> ax.lines[0].get_xydata().tolist()
    [[0.0, 0.0], [1.0, 1.0], [2.0, 1.0], [3.0, 2.0]]
    """
    return DTWPathDisplay.from_predictions(x, y, window=window, cost=cost, ax=ax)._drawn()
