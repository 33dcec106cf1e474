"""Curves over the number of clusters K: objective, gap statistic and stability, and the axis of K."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.errors import ParameterError
from coterie.palette import FAINT, INK, MARK
from coterie.plots.display import Display, caption, check_result, label_axes, plain_numbers
from coterie.selection.choose_k_result import ChooseK
from coterie.selection.gap import Gap
from coterie.selection.knee import kneedle, second_derivative
from coterie.selection.stability import Stability
from coterie.selection.sweep import Sweep

TICKS = 14  # maximum number of ticks


def result_of(value: Any, kind: type, function: str, keys: tuple[str, ...], criteria: str) -> Any:
    """Return `value`, a result of `function`, or the first of the results `keys` that a `ChooseK` contains."""
    check_result("result", value, (kind, ChooseK), f"{function} or choose_k")
    results = [value.results.get(key) for key in keys] if isinstance(value, ChooseK) else [value]
    result = next((each for each in results if each is not None), None)
    if result is None:
        problem = f"the result of choose_k has no {keys[0]}"
        raise ParameterError(f"{problem}: call choose_k with criteria that include {criteria}")
    return result


def label_k_axis(ax: Any, ks: Array, label: str) -> None:
    """Set labels and ticks of a curve over K."""
    label_axes(ax, "number of clusters K", label)
    set_k_ticks(ax, ks)
    plain_numbers(ax.yaxis)


def set_k_ticks(ax: Any, ks: Array, limit: int = TICKS) -> None:
    """Set ticks at the first K, and at each later K that is far enough from the previous tick."""
    low, high = float(min(ks)), float(max(ks))
    padding = max(0.05 * (high - low), 0.6)
    ax.set_xlim(low - padding, high + padding)
    distance, shown = (high - low) / limit, [int(ks[0])]
    for k in ks[1:]:
        if k - shown[-1] >= distance:
            shown.append(int(k))
    ax.set_xticks(shown)


def mark_k(ax: Any, ks: Array, values: Array, k: float | None, text: str) -> Any:
    """Mark the recommended K of a curve with a dashed line, a circle and a text; do nothing if `k` is None."""
    if k is None:
        return None
    line = ax.axvline(k, color=MARK, linestyle="--", linewidth=1.2, zorder=1)
    ax.plot([k], values[ks == k], "o", markersize=11, markerfacecolor="none", markeredgewidth=1.6, color=MARK, zorder=4)
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    ax.set_ylim(low, high + 0.1 * (high - low))  # space for the text
    is_right = k > (left + right) / 2
    ax.annotate(
        text, (k, 0.97), xycoords=("data", "axes fraction"), xytext=(-5 if is_right else 5, 0),
        textcoords="offset points", ha="right" if is_right else "left", va="top", color=MARK, fontsize=9,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.0},
    )  # fmt: skip
    return line


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
        text = f"knee at K = {self.knee:g}" if self.knee is not None else ""
        self.knee_line_ = mark_k(ax, self.ks, self.objectives, self.knee, text)
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
        self.choice_ = mark_k(ax, self.ks, self.gap, self.recommended, f"K = {self.recommended} by {self.rule}")
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


@dataclass(eq=False, repr=False)
class StabilityDisplay(Display):
    """Agreement of resamples with its standard error, and the agreement of each cluster."""

    kind: ClassVar[str] = "stability"
    measure: str
    ks: Array  # (m,)
    mean: Array  # (m,)
    errors: Array  # (m,)
    clusters: list[Array]  # (k,) for each K
    threshold: float
    best: int | None

    @classmethod
    def from_result(cls, stability: Stability | ChooseK, *, ax: Any = None) -> Self:
        """Stability from the result of `stability`, or from a `ChooseK` that contains it."""
        keys = ("stability", "prediction_strength")
        result = result_of(stability, Stability, "stability", keys, "'stability'")
        clusters = list(result.clusters)
        values = result.ks, result.mean, result.standard_error, clusters, result.threshold, result.best
        return cls(result.measure, *values)._plot_into(ax)

    def _draw(self, ax: Any) -> None:
        places = [(k, value) for k, values in zip(self.ks, self.clusters, strict=True) for value in values]
        self.clusters_ = ax.scatter(*zip(*places, strict=True), s=14, color=FAINT, zorder=1, label="single clusters")
        self.line_ = ax.errorbar(
            self.ks, self.mean, yerr=self.errors, color=INK, marker="o", markersize=4, capsize=3, linewidth=1.4,
            label=self.measure.replace("_", " "),
        )  # fmt: skip
        self.threshold_ = ax.axhline(self.threshold, color=INK, linestyle=":", linewidth=1.0, label="threshold")
        ax.set_ylim(min(0.0, float((self.mean - self.errors).min())) - 0.02, 1.08)
        label_k_axis(ax, self.ks, "agreement of resamples")
        self.choice_ = mark_k(ax, self.ks, self.mean, self.best, f"K = {self.best} is stable")
        ax.legend(loc="lower left", fontsize=8, framealpha=0.9, edgecolor="none")
        caption(ax, "stability" if self.best is not None else f"stability: none reaches {self.threshold:g}")


def stability(result: Any, *, ax: Any = None) -> Any:
    """Draw the agreement of clusters under resampling, for each K; dots show the agreement of each cluster.

    Parameters
    ----------
    result : coterie.selection.Stability or ChooseK
        The result of `stability`, or of `choose_k` with 'stability' or 'prediction_strength' among its criteria.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    StabilityDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure.

    Examples
    --------
    >>> from coterie import KMeans, plots
    >>> from coterie.datasets import make_blobs
    >>> from coterie.selection import stability
    >>> X, _ = make_blobs(150, 2, centers=3, cluster_std=0.2, random_state=0)
    >>> ax = plots.stability(stability(KMeans(n_init=3), X, range(2, 6), n_resamples=5, random_state=0))
    >>> ax.get_title(loc="left")
    'stability'
    """
    return StabilityDisplay.from_result(result, ax=ax)._drawn()
