"""Silhouettes of rows, cluster by cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.errors import InputError
from coterie.data import opened
from coterie.data.memory import as_weights
from coterie.data.picking import some
from coterie.metrics import silhouette_samples
from coterie.palette import INK, MARK, colours
from coterie.plots.display import Array, Display, amount, caption, short
from coterie.plots.rows import Groups, as_groups, as_rows, check_fitted, groups_by

MOST = 30  # clusters that are drawn
EXACT = 20_000  # rows that are measured, of more a sample of about as many
LEAST = 50  # rows of a cluster in it, if there are
STEPS = 200  # points of an outline
GAP = 0.12  # between areas, of the mean height of one


@dataclass(eq=False, repr=False)
class SilhouetteDisplay(Display):
    """The sorted silhouettes of each cluster, as one area each."""

    kind: ClassVar[str] = "silhouette"
    names: list[str]  # (k,) of the clusters
    sizes: Array  # (k,) rows, or their weight
    means: Array  # (k,)
    below: Array  # (k,) the share of rows below 0
    outlines: list[Array]  # (k) silhouettes in descending order, of all rows or at even steps of rows or weight
    mean: float  # of all rows
    shown: Array  # which clusters are drawn: all, or the worst of many
    n: int  # rows there are
    sampled: int | None  # rows that were measured, if not all
    weighted: bool = False  # whether rows count by weights

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        *,
        metric: Any = None,
        sample_weight: Any = None,
        n_jobs: int | None = None,
        ax: Any = None,
    ) -> Self:
        """Of a fitted model, by its own `metric` if it has one that `pairwise` knows, else straight-line distances."""
        check_fitted(model)
        own = getattr(model, "metric", None)
        metric = metric or (own if isinstance(own, str) and own not in ("l1", "l2") else "euclidean")
        X = opened(X)
        rows, w = _rows(X, metric, sample_weight)
        return cls._made(rows, groups_by(model, X, len(rows), sample_weight), w, metric, n_jobs)._on(ax)

    @classmethod
    def from_predictions(
        cls,
        X: Any,
        labels: Any,
        *,
        metric: Any = "euclidean",
        sample_weight: Any = None,
        n_jobs: int | None = None,
        ax: Any = None,
    ) -> Self:
        """Of labels, one a row; rows of -1 are in no cluster and left out."""
        rows, w = _rows(opened(X), metric, sample_weight)
        return cls._made(rows, as_groups(labels, len(rows)), w, metric, n_jobs)._on(ax)

    @classmethod
    def _made(cls, X: Array, groups: Groups, w: Array | None, metric: Any, n_jobs: int | None) -> Self:
        if w is not None:
            groups = Groups(np.where(w > 0, groups.codes, -1), groups.names, w)
        kept, n = _drawn(groups), int(np.count_nonzero(groups.codes >= 0))
        codes, weights = groups.codes[kept], None if w is None else w[kept]
        if len(np.unique(codes)) < 2:
            raise InputError("silhouettes compare clusters: two at least must have rows")
        rows = X[np.ix_(kept, kept)] if _is_given(metric) else X[kept]
        values = silhouette_samples(rows, codes, metric=metric, sample_weight=weights, n_jobs=n_jobs)
        by = [_sorted(values, weights, codes == j) for j in range(len(groups.names))]
        means = np.array([_mean(own, mass) for own, mass in by])
        below = np.array([_mean(own < 0, mass) for own, mass in by])
        sizes, measured = groups.sizes, np.flatnonzero(groups.sizes)
        worst = measured[np.argsort(means[measured], kind="stable")[:MOST]]
        mean = float(means[measured] @ sizes[measured] / sizes.sum())
        sampled = None if len(kept) == n else len(kept)
        outlines = [_thinned(*one) for one in by]
        return cls(groups.names, sizes, means, below, outlines, mean, np.sort(worst), n, sampled, w is not None)

    def _figure_size(self) -> tuple[float, float]:
        return 6.4, float(np.clip(1.6 + 0.42 * len(self.shown), 3.4, 9.0))

    def _draw(self, ax: Any) -> None:
        from matplotlib.ticker import MultipleLocator

        shades = colours(len(self.names))
        share = np.maximum(self.sizes[self.shown] / self.sizes[self.shown].sum(), 0.25 / len(self.shown))
        heights, room = share, GAP / len(self.shown)
        tops = -np.cumsum(np.append(0.0, heights[:-1] + room))
        self.areas_ = []
        for j, top, height in zip(self.shown, tops, heights, strict=True):
            values = self.outlines[j]
            y = top - height * np.linspace(0, 1, max(len(values), 2))
            outline = values if len(values) > 1 else np.repeat(values, 2)
            self.areas_.append(ax.fill_betweenx(y, 0, outline, color=shades[j], linewidth=0, alpha=0.85))
        ax.set_yticks(tops - heights / 2, [self._called(j) for j in self.shown])
        ax.tick_params(axis="y", length=0, labelsize=9 if len(self.shown) <= 16 else 7.5)
        ax.set_ylim(tops[-1] - heights[-1] - room, room)
        ax.axvline(0, color=INK, linewidth=0.8)
        self.mean_line_ = ax.axvline(self.mean, color=MARK, linestyle="--", linewidth=1.3)
        lowest = min(float(self.outlines[j].min()) for j in self.shown)
        ax.set_xlim(max(-1.02, min(lowest, 0.0) - 0.04), 1.02)
        ax.xaxis.set_major_locator(MultipleLocator(0.5))
        ax.xaxis.set_minor_locator(MultipleLocator(0.1))
        ax.set_xlabel("silhouette")
        ax.spines[["top", "right", "left"]].set_visible(False)
        caption(ax, self._told())

    def _called(self, j: int) -> str:
        return f"{short(self.names[j], 16)}   {self.means[j]:.2f}   {amount(self.sizes[j], self.weighted)}"

    def _told(self) -> str:
        worst = (
            "" if len(self.shown) == len(self.names) else f", the {len(self.shown)} worst of {len(self.names)} clusters"
        )
        sample = "" if self.sampled is None else f" of {self.sampled:,} of {self.n:,} rows"
        weights = ", by weights" if self.weighted else ""
        return f"mean silhouette {self.mean:.2f}{sample}{worst}{weights}"


def _drawn(groups: Groups) -> Array:
    """Rows in clusters: all, or of many a sample in which no cluster is lost.

    Silhouettes are made of mean distances to clusters, so the share that is drawn of each does not matter to them.
    """
    order = np.argsort(groups.codes, kind="stable")
    members = np.split(order, np.searchsorted(groups.codes[order], range(len(groups.names))))[1:]
    whole = sum(map(len, members))
    if whole <= EXACT:
        return np.sort(np.concatenate([order[:0], *members]))
    share = EXACT / whole
    kept = [own[some(len(own), max(round(share * len(own)), LEAST))] for own in members]
    return np.sort(np.concatenate(kept))


def _is_given(metric: Any) -> bool:
    return isinstance(metric, str) and metric == "precomputed"


def _rows(X: Any, metric: Any, sample_weight: Any) -> tuple[Array, Array | None]:
    """What is measured, rows (n, d) or distances (n, n), and the weights."""
    if _is_given(metric):
        return np.asarray(X), as_weights(sample_weight, len(X))
    rows = as_rows(X, sample_weight)
    if rows.holes is not None:
        holes = rows.holes.sum(axis=0)
        where = ", ".join(f"{rows.columns[j]} ({holes[j]})" for j in np.flatnonzero(holes)[:5])
        raise InputError(
            f"Input X contains NaN: {where}. Silhouettes are made of distances, which such rows do not have: drop "
            "them, or fill them in (sklearn.impute)"
        )
    return rows.X, rows.w


def _sorted(values: Array, w: Array | None, own: Array) -> tuple[Array, Array | None]:
    """Silhouettes of a cluster in descending order, and the weights that go with them."""
    order = np.argsort(-values[own], kind="stable")
    return values[own][order].astype(np.float64), None if w is None else w[own][order]


def _mean(values: Array, w: Array | None) -> float:
    return float(np.average(values, weights=w)) if len(values) else np.nan


def _thinned(values: Array, w: Array | None) -> Array:
    if w is None and len(values) <= STEPS:
        return values
    if w is None:
        return values[np.linspace(0, len(values) - 1, STEPS).round().astype(int)]
    below = np.cumsum(w) / max(float(w.sum()), 1e-300)  # weight down to each row
    at = np.searchsorted(below, (np.arange(STEPS) + 0.5) / STEPS)
    return values[np.minimum(at, len(values) - 1)] if len(values) else values


def silhouette(
    result: Any,
    X: Any,
    *,
    metric: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    ax: Any = None,
) -> Any:
    """Draw the silhouettes of all rows, sorted within each cluster, an area a cluster, with the mean as a line.

    At the left each cluster's name, mean and rows. Of more than 30 clusters the 30 of the lowest means are drawn; of
    more than 20 000 rows a sample of about as many is measured, 50 of each cluster at least.

    Parameters
    ----------
    result : fitted model, or labels (n,)
        Whose clusters are found as in `clusters`; rows of -1 are left out.
    X : array or frame (n, d); distances (n, n) for metric='precomputed'
    metric : str, function or Distance, optional
        As in `coterie.metrics.silhouette_samples`; the model's own by default, or straight-line distances.
    sample_weight : array (n,), optional
        How many rows each stands for; areas are as high as their weight.
    n_jobs : int or None, default=None
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from coterie import plots
    >>> ax = plots.silhouette(["a", "a", "b", "b"], [[0.0], [1.0], [9.0], [10.0]])
    >>> ax.get_title(loc="left")
    'mean silhouette 0.89'
    """
    how: dict[str, Any] = {"sample_weight": sample_weight, "n_jobs": n_jobs, "ax": ax}
    if hasattr(result, "fit"):
        return SilhouetteDisplay.from_estimator(result, X, metric=metric, **how).ax_
    return SilhouetteDisplay.from_predictions(X, result, metric=metric or "euclidean", **how).ax_
