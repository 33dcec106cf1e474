"""Stability under resampling, over the number of clusters."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from coterie.core.arrays import Array
from coterie.palette import FAINT, INK
from coterie.plots.display import Display, caption
from coterie.plots.k_axis import label_k_axis, mark_k, result_of
from coterie.selection.choose_k_result import ChooseK
from coterie.selection.stability import Stability


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
        value = None if self.best is None else float(self.mean[self.ks == self.best][0])
        self.choice_ = mark_k(ax, self.best, value, f"K = {self.best} is stable")
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
