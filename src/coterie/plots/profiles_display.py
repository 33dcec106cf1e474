"""Heat map of the means of clusters."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.arguments import in_order
from coterie.core.arrays import Array
from coterie.core.formatting import count, truncate
from coterie.palette import as_rgb, luminance
from coterie.plots.display import caption, drawn_display, format_number
from coterie.plots.projection import Groups, Rows, RowsDisplay

MAX_COLUMNS = 30  # that are drawn
ROUNDING = 1e-12  # means below this share of the standard deviation are rounding errors
MAX_NUMBERS = 240  # with more cells, no numbers are written
FULL = 2.0  # standard deviations with the strongest colour
DARK = "#222222"  # colour of numbers on light cells


@dataclass(eq=False, repr=False)
class ProfilesDisplay(RowsDisplay):
    """Means of the clusters, as standard deviations from the mean of all rows in each column."""

    kind: ClassVar[str] = "profiles"
    names: list[str]  # (k,) of the clusters
    sizes: Array  # (k,) number of rows, or their weight
    columns: list[str]  # (d,)
    means: Array  # (k, d) in the units of the columns, without missing values; NaN if all are missing
    scores: Array  # (k, d) in standard deviations; 0 for a constant column
    shown: Array  # indices of the columns that are drawn: all, or those that differ most, the largest difference first
    weighted: bool = False  # whether rows have weights
    missing: int = 0  # number of missing values

    @classmethod
    def _build(cls, rows: Rows, groups: Groups, model: Any) -> Self:
        nonempty = np.flatnonzero(groups.sizes)
        means = groups.means(rows.X, rows.is_missing)[nonempty]
        deviation = rows.deviation
        varies = deviation > 1e-12 * np.abs(rows.mean)
        scores = np.nan_to_num(np.divide(means - rows.mean, deviation, out=np.zeros_like(means), where=varies))
        order = np.argsort(-np.abs(scores).max(axis=0, initial=0.0), kind="stable")
        names = [groups.names[j] for j in nonempty]
        means = np.where(np.abs(means) <= ROUNDING * deviation, 0.0, means)
        chosen = order[:MAX_COLUMNS] if len(order) > MAX_COLUMNS else np.arange(len(order))
        return cls(names, groups.sizes[nonempty], rows.columns, means, scores, chosen, rows.w is not None, rows.missing)

    def _figure_size(self) -> tuple[float, float]:
        width, height = 3.2 + 0.62 * len(self.shown), 1.9 + 0.3 * len(self.names)
        return float(np.clip(width, 5.0, 16.0)), float(np.clip(height, 2.8, 16.0))

    def _draw(self, ax: Any) -> None:
        scores = self.scores[:, self.shown]
        self.image_ = ax.imshow(scores, cmap="PuOr_r", vmin=-FULL, vmax=FULL, aspect="auto", interpolation="nearest")
        total, k = self.sizes.sum(), len(self.names)
        row_labels = [
            f"{truncate(name, 16)}   {format_number(size) if self.weighted else f'{size:,}'} "
            f"({100 * size / total:.3g} %)"
            for name, size in zip(self.names, self.sizes, strict=True)
        ]
        ax.set_yticks(range(k), row_labels, fontsize=9 if k <= 20 else 7)
        columns = [truncate(self.columns[j], 24) for j in self.shown]
        is_slanted = sum(map(len, columns)) > 60 or max(map(len, columns), default=0) > 9
        ax.set_xticks(
            range(len(columns)), columns, rotation=40 if is_slanted else 0, ha="right" if is_slanted else "center",
            rotation_mode="anchor" if is_slanted else "default", fontsize=9,
        )  # fmt: skip
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        self.texts_ = self._draw_numbers(ax, scores) if scores.size <= MAX_NUMBERS else []
        bar = ax.figure.colorbar(self.image_, ax=ax, extend="both", fraction=0.05, pad=0.02)
        bar.set_label("standard deviations from the mean", fontsize=9)
        bar.outline.set_visible(False)
        text = f"means of {count(k, 'cluster')}"
        if len(columns) < len(self.columns):
            text += f", the {len(columns)} of {len(self.columns)} columns that differ most"
        text += ", by weights" if self.weighted else ""
        caption(ax, text + (f"; {count(self.missing, 'missing value')} left out" if self.missing else ""))

    def _draw_numbers(self, ax: Any, scores: Array) -> list[Any]:
        means, light = self.means[:, self.shown], luminance(self.image_.to_rgba(scores)[..., :3])
        is_dark = 1.05 / (light + 0.05) > (light + 0.05) / (luminance(as_rgb([DARK]))[0] + 0.05)
        return [
            ax.text(
                j, i, format_number(float(means[i, j])), ha="center", va="center", fontsize=8,
                color="white" if is_dark[i, j] else DARK,
            )
            for i, j in np.argwhere(np.isfinite(means))
        ]  # fmt: skip


@in_order("plots.profiles(model, X)")
def profiles(model: Any, X: Any, *, sample_weight: Any = None, ax: Any = None) -> Any:
    """Draw a heat map of the means of the clusters.

    Each row of the map is a cluster, labelled with its size, and each column a column of `X`. The colour shows by how
    many standard deviations the mean of the cluster differs from the mean of all rows. The numbers are means in the
    units of the column. If there are more than 30 columns, those in which some cluster differs most are drawn, the
    largest difference first. Missing values, if the model supports them, are left out of the means.

    Parameters
    ----------
    model : fitted estimator or labels of shape (n,)
        The clusters, as in `clusters`.
    X : array or DataFrame of shape (n, d)
        The rows, as in `clusters`.
    sample_weight : array of shape (n,) or None, default=None
        Row weights, used in sizes, means and standard deviations.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    ProfilesDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import KMeans, plots
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [9, 2], [9, 4], [9, 0]])
    >>> ax = plots.profiles(KMeans(2, random_state=0).fit(X), X)
    >>> np.abs(ax.images[0].get_array()).round(3).tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    return drawn_display(ProfilesDisplay, model, X, sample_weight=sample_weight, ax=ax)
