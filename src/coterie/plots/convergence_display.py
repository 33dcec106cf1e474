"""The objective over the iterations of a fit."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.formatting import count
from coterie.core.rounding import first_lowest
from coterie.errors import ParameterError
from coterie.metrics.model_labels import check_fitted
from coterie.palette import FAINT, INK, MARK, OKABE_ITO
from coterie.plots.display import Display, caption, plain_numbers


class Starts:
    """Callback that records the objective of every restart of a fit, for `convergence`.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import KMeans
    >>> from coterie.plots import Starts
    >>> starts = Starts()
    >>> model = KMeans(2, n_init=3, random_state=0, callback=starts).fit(np.arange(12.0).reshape(6, 2))
    >>> len(starts.histories)
    3
    """

    def __init__(self) -> None:
        self._runs: dict[int, list[float]] = {}

    def __call__(self, progress: Any) -> None:
        self._runs.setdefault(progress.run, []).append(float(progress.objective))

    @property
    def histories(self) -> list[np.ndarray]:
        """For each restart, the minimised objective at the initialisation and after every iteration."""
        return [np.array(values) for _, values in sorted(self._runs.items())]


@dataclass(eq=False, repr=False)
class ConvergenceDisplay(Display):
    """The objective after every iteration of each restart, or after every half step of EM with its lower bound."""

    kind: ClassVar[str] = "convergence"
    label: str  # name of the objective
    iterations: list[np.ndarray]  # (m,) for each curve; halves are after an M-step and before the next E-step
    values: list[np.ndarray]  # (m,)
    best: int  # index of the best curve
    bound: np.ndarray | None = field(default=None)  # (m,) for EM, the lower bound J after each half step

    @classmethod
    def from_estimator(cls, model: Any, X: Any = None, *, ax: Any = None) -> Self:
        """Objective in the `history_` of a fitted model; `X` is ignored."""
        check_fitted(model)
        history = getattr(model, "history_", None)
        if history is None:
            raise ParameterError(f"{type(model).__name__} has no history_ of its fit: use a model with history_")
        if hasattr(history, "log_likelihood"):
            halves = history.iteration - 0.5 * (history.step == "M")
            return cls("log-likelihood", [halves], [history.log_likelihood], 0, history.lower_bound)._plot_into(ax)
        if hasattr(history, "lower_bound"):
            return cls("evidence lower bound", [history.iteration], [history.lower_bound], 0)._plot_into(ax)
        values = np.asarray(history, dtype=np.float64)
        first = int(hasattr(model, "n_steps_"))  # batches have no objective of the initialisation
        return cls("objective", [first + np.arange(len(values))], [values], 0)._plot_into(ax)

    @classmethod
    def from_result(cls, starts: Starts, *, ax: Any = None) -> Self:
        """Objectives of all restarts of a fit that had `Starts` as its callback."""
        histories = starts.histories
        if not histories:
            raise ParameterError("starts has recorded no fit: pass it to the model as callback=starts, and call fit")
        best = first_lowest(range(len(histories)), lambda run: float(histories[run][-1]))
        return cls("objective", [np.arange(len(values)) for values in histories], histories, best)._plot_into(ax)

    def _draw(self, ax: Any) -> None:
        from matplotlib.ticker import MaxNLocator

        self.lines_ = []
        for i, (iteration, values) in enumerate(zip(self.iterations, self.values, strict=True)):
            style: dict[str, Any] = {"color": FAINT, "linewidth": 1.1}
            if i == self.best:
                style = {"color": INK, "linewidth": 1.8, "zorder": 3, "marker": "o" if len(values) <= 60 else None}
            self.lines_ += ax.plot(iteration, values, markersize=3.5, **style)
        if self.bound is not None:
            self._draw_bound(ax)
        last = float(self.values[self.best][-1])
        ax.axhline(last, color=MARK, linestyle=":", linewidth=1.0, zorder=0)
        ax.set_xlabel("iteration")
        ax.set_ylabel(self.label)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        plain_numbers(ax.yaxis)
        ax.spines[["top", "right"]].set_visible(False)
        steps = round(float(self.iterations[self.best][-1]))
        restarts = f", the best of {len(self.values)} restarts" if len(self.values) > 1 else ""
        caption(ax, f"{self.label} {last:,.6g} after {count(steps, 'iteration')}{restarts}")

    def _draw_bound(self, ax: Any) -> None:
        """Draw the lower bound and, as an area, its distance to the log-likelihood: the KL divergence."""
        x, top = self.iterations[self.best], self.values[self.best]
        self.bound_ = ax.plot(x, self.bound, color=OKABE_ITO[1], linewidth=1.2, label="lower bound J")
        self.kl_ = ax.fill_between(
            x, self.bound, top, color=OKABE_ITO[1], alpha=0.25, linewidth=0, label="KL, closed by each E-step"
        )
        self.lines_[self.best].set_label("log-likelihood")
        ax.legend(loc="lower right", frameon=False, fontsize=9)


def convergence(model: Any, *, ax: Any = None) -> Any:
    """Draw the objective over the iterations of a fit.

    K-means and related methods minimise their objective. For mixtures, the figure shows the log-likelihood after each
    half step, the lower bound J that EM maximises, and the gap between them, which each E-step closes.

    Parameters
    ----------
    model : fitted estimator with `history_`, or `Starts`
        `history_` is the history of the best restart. `Starts` records all restarts.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    ConvergenceDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure.

    Examples
    --------
    >>> from coterie import KMeans, plots
    >>> from coterie.datasets import make_blobs
    >>> X, _ = make_blobs(200, 2, centers=4, random_state=0)
    >>> starts = plots.Starts()
    >>> model = KMeans(4, n_init=5, random_state=0, callback=starts).fit(X)
    >>> len(plots.convergence(starts).lines) - 1  # without the line at the best value
    5
    """
    if isinstance(model, Starts):
        return ConvergenceDisplay.from_result(model, ax=ax)._drawn()
    return ConvergenceDisplay.from_estimator(model, ax=ax)._drawn()
