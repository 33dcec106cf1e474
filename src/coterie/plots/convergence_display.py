"""The objective over the iterations of a fit, and the lower bound of the log-likelihood that EM maximises."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.core.rounding import first_lowest
from coterie.errors import ParameterError
from coterie.metrics.model_labels import check_fitted
from coterie.palette import FAINT, INK, MARK, OKABE_ITO
from coterie.plots.display import Display, caption, check_result, label_axes, plain_numbers
from coterie.traces import Trace

FIRST = 12  # maximum number of iterations in the main figure; the inset shows all


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
        _label_iterations(ax, "iteration", self.label)
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


def _label_iterations(ax: Any, x: str, y: str) -> None:
    """Label the axes of a curve over iterations, with ticks at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    label_axes(ax, x, y)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    plain_numbers(ax.yaxis)


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


@dataclass(eq=False, repr=False)
class BoundDisplay(Display):
    """The log-likelihood and its lower bound after every half step of EM."""

    kind: ClassVar[str] = "bound"
    size: ClassVar[tuple[float, float]] = (7.2, 4.8)
    label: str  # name of the objective
    steps: list[str]  # (m,) "E" or "M"
    iterations: Array  # (m,) number of M-steps
    objective: Array  # (m,)
    bound: Array  # (m,)

    @classmethod
    def from_result(cls, trace: Trace, *, ax: Any = None) -> Self:
        """Bound from the result of `fit_trace` of a mixture."""
        check_result("trace", trace, (Trace,), "fit_trace")
        steps = [step for step in trace.steps if step.bound is not None]
        if not steps:
            raise ParameterError(
                f"the trace of {type(trace.model).__name__} has no bound of a log-likelihood: use a trace of "
                "GaussianMixture or Mixture; plots.animate supports all traces"
            )
        return cls(
            trace.objective,
            [step.kind for step in steps],
            np.array([step.iteration for step in steps]),
            np.array([step.objective for step in steps]),
            np.array([step.bound for step in steps], dtype=np.float64),
        )._plot_into(ax)

    @property
    def gaps(self) -> Array:
        """KL divergence of the responsibilities from those of the new parameters, after each M-step."""
        is_m = np.array(self.steps) == "M"
        return (self.objective - self.bound)[is_m]

    def _draw(self, ax: Any) -> None:
        x = self.iterations - 0.5 * (np.array(self.steps) == "M")
        above = ax.plot(x, self.objective, color=INK, linewidth=1.8, label=self.label)
        below = ax.plot(x, self.bound, color=OKABE_ITO[1], linewidth=1.4, marker="o", markersize=3, label="lower bound")
        self.lines_ = [*above, *below]
        self.kl_ = ax.fill_between(x, self.bound, self.objective, color=OKABE_ITO[1], alpha=0.22, linewidth=0)
        last, after = int(self.iterations[-1]), self.iterations[np.array(self.steps) == "E"]
        shown = min(FIRST, int(np.count_nonzero(np.cumprod(np.diff(after) == 1))))  # the first that were all recorded
        ax.set_xlim(-0.3, shown + 0.5)
        seen = self.bound[x <= shown + 0.5]
        climb, height = float(np.ptp(seen)), abs(float(seen[-1]))
        padding = 0.06 * climb if climb > 1e-9 * height else 1e-3 * max(height, 1.0)
        ax.set_ylim(float(seen.min()) - padding, float(self.objective[x <= shown + 0.5].max()) + 3 * padding)
        _label_iterations(ax, "iteration (M-steps half way)", self.label)
        ax.legend(loc="upper left", frameon=False, fontsize=9, bbox_to_anchor=(0.0, 1.0))
        self._draw_gaps(ax)
        iterations = f"the first {shown} of {last} iterations" if last > shown else count(last, "iteration")
        caption(ax, f"E-steps close the gap, M-steps raise the bound; {iterations}")

    def _draw_gaps(self, ax: Any) -> None:
        """Draw the gap after each M-step of the whole fit, as an inset."""
        gaps = self.gaps
        is_positive = gaps > 0
        if not is_positive.any():
            return
        inset = ax.inset_axes((0.5, 0.14, 0.47, 0.42))
        after = self.iterations[np.array(self.steps) == "M"]
        self.gaps_ = inset.plot(
            after[is_positive], gaps[is_positive], color=OKABE_ITO[1], linewidth=1.2, marker="o", markersize=2.5
        )
        inset.set_yscale("log")
        inset.set_title("gap (KL) after each M-step", fontsize=8.5, loc="left")
        inset.tick_params(labelsize=7.5)
        inset.set_facecolor("white")
        inset.spines[["top", "right"]].set_visible(False)
        inset.grid(axis="y", color=FAINT, linewidth=0.5)


def bound(trace: Trace, *, ax: Any = None) -> Any:
    r"""Draw the log-likelihood and its lower bound (Jensen's inequality) after every half step of EM.

    .. math:: J(q, \theta) = \sum_i w_i \sum_k q_{ik} \log \frac{p(x_i, k; \theta)}{q_{ik}}
              = L(\theta) - \sum_i w_i \mathrm{KL}(q_i \| p(\cdot \mid x_i; \theta)) \le L(\theta)

    After a (soft) E-step, q is the posterior and the bound equals the log-likelihood. An M-step raises the bound, and
    the log-likelihood by at least as much. The difference is the KL divergence, which the inset shows. If there is a
    prior, both include its log density.

    Parameters
    ----------
    trace : coterie.traces.Trace
        The result of `fit_trace` of a mixture.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    BoundDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure.

    Examples
    --------
    >>> from coterie import GaussianMixture, plots
    >>> from coterie.datasets import make_blobs
    >>> X, _ = make_blobs(300, 2, centers=3, cluster_std=1.5, random_state=0)
    >>> trace = GaussianMixture(3, init_params="random", random_state=0).fit_trace(X)
    >>> ax = plots.bound(trace)
    >>> ax.get_ylabel()
    'penalised log-likelihood'
    """
    return BoundDisplay.from_result(trace, ax=ax)._drawn()
