"""What sets clusters apart, column by column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from coterie.palette import as_rgb
from coterie.plots.display import Array, Display, caption, counted, rounded, short
from coterie.plots.rows import Groups, Rows, rows_by, rows_of

MOST_COLUMNS = 30  # that are drawn
MOST_WRITTEN = 240  # cells with numbers in them
FULL = 2.0  # standard deviations at which a colour is full
DARK = "#222222"  # numbers, where cells are light


@dataclass(eq=False, repr=False)
class ProfilesDisplay(Display):
    """Means of the clusters, in standard deviations of each column from the mean of all rows."""

    kind: ClassVar[str] = "profiles"
    names: list[str]  # (k,) of the clusters
    sizes: Array  # (k,) rows, or their weight
    columns: list[str]  # (d,)
    means: Array  # (k, d) in the units of the columns, of the values that are there; NaN where none is
    scores: Array  # (k, d) in standard deviations; 0 for a constant column
    shown: Array  # columns that are drawn: all, or those that differ most
    weighted: bool = False  # whether rows count by weights
    missing: int = 0  # values that are not there

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, sample_weight: Any = None, ax: Any = None) -> Self:
        """Of a fitted model."""
        return cls._made(*rows_by(model, X, sample_weight))._on(ax)

    @classmethod
    def from_predictions(cls, X: Any, labels: Any, *, sample_weight: Any = None, ax: Any = None) -> Self:
        """Of labels, one a row; rows of -1 are in no cluster, but part of the mean of all."""
        return cls._made(*rows_of(X, labels, sample_weight))._on(ax)

    @classmethod
    def _made(cls, rows: Rows, groups: Groups) -> Self:
        here = np.flatnonzero(groups.sizes)
        means = groups.means(rows.X, rows.holes)[here]
        deviation = rows.deviation
        real = deviation > 1e-12 * np.abs(rows.mean)
        scores = np.nan_to_num(np.divide(means - rows.mean, deviation, out=np.zeros_like(means), where=real))
        order = np.argsort(-np.abs(scores).max(axis=0, initial=0.0), kind="stable")
        names = [groups.names[j] for j in here]
        chosen = np.sort(order[:MOST_COLUMNS])
        return cls(names, groups.sizes[here], rows.columns, means, scores, chosen, rows.w is not None, rows.missing)

    def _figure_size(self) -> tuple[float, float]:
        width, height = 3.2 + 0.62 * len(self.shown), 1.9 + 0.3 * len(self.names)
        return float(np.clip(width, 5.0, 16.0)), float(np.clip(height, 2.8, 16.0))

    def _draw(self, ax: Any) -> None:
        scores = self.scores[:, self.shown]
        self.image_ = ax.imshow(scores, cmap="PuOr_r", vmin=-FULL, vmax=FULL, aspect="auto", interpolation="nearest")
        total, k = self.sizes.sum(), len(self.names)
        sides = [
            f"{short(name, 16)}   {rounded(size) if self.weighted else f'{size:,}'} ({100 * size / total:.3g} %)"
            for name, size in zip(self.names, self.sizes, strict=True)
        ]
        ax.set_yticks(range(k), sides, fontsize=9 if k <= 20 else 7)
        columns = [short(self.columns[j], 24) for j in self.shown]
        slanted = sum(map(len, columns)) > 60 or max(map(len, columns), default=0) > 9
        ax.set_xticks(
            range(len(columns)), columns, rotation=40 if slanted else 0, ha="right" if slanted else "center",
            rotation_mode="anchor" if slanted else "default", fontsize=9,
        )  # fmt: skip
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        self.texts_ = self._write(ax, scores) if scores.size <= MOST_WRITTEN else []
        bar = ax.figure.colorbar(self.image_, ax=ax, extend="both", fraction=0.05, pad=0.02)
        bar.set_label("standard deviations from the mean", fontsize=9)
        bar.outline.set_visible(False)
        some = (
            ""
            if len(columns) == len(self.columns)
            else f", the {len(columns)} of {len(self.columns)} columns that differ most"
        )
        told = f"means of {counted(k, 'cluster')}{some}{', by weights' if self.weighted else ''}"
        caption(ax, told + (f"; {counted(self.missing, 'missing value')} left out" if self.missing else ""))

    def _write(self, ax: Any, scores: Array) -> list[Any]:
        means, dark = self.means[:, self.shown], _dark(self.image_.to_rgba(scores)[..., :3])
        return [
            ax.text(
                j, i, rounded(float(means[i, j])), ha="center", va="center", fontsize=8,
                color="white" if dark[i, j] else DARK,
            )
            for i, j in np.argwhere(np.isfinite(means))
        ]  # fmt: skip


def _dark(rgb: Array) -> Array:
    """Whether white is easier to read on a colour than `DARK`: contrasts after WCAG 2, by relative luminance."""
    light, ink = _luminance(rgb), _luminance(as_rgb([DARK]))[0]
    dark: Array = 1.05 / (light + 0.05) > (light + 0.05) / (ink + 0.05)
    return dark


def _luminance(rgb: Array) -> Array:
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    found: Array = linear @ np.array([0.2126, 0.7152, 0.0722])
    return found


def profiles(result: Any, X: Any, *, sample_weight: Any = None, ax: Any = None) -> Any:
    """Draw the means of clusters as a map: a row a cluster with its size, a column a column, coloured by how many
    standard deviations the cluster is from the mean of all rows. Numbers are means in the units of the column.

    Of more than 30 columns those are drawn in which some cluster is farthest from the mean. Missing values, if the
    model takes them, are left out of means.

    Parameters
    ----------
    result : fitted model, or labels (n,)
    X : array or frame (n, d)
    sample_weight : array (n,), optional
        How much each row counts, in sizes, means and standard deviations.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import KMeans, plots
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [9, 2], [9, 4], [9, 0]])
    >>> ax = plots.profiles(KMeans(2, random_state=0).fit(X), X)
    >>> np.abs(ax.images[0].get_array()).round(3).tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    if hasattr(result, "fit"):
        return ProfilesDisplay.from_estimator(result, X, sample_weight=sample_weight, ax=ax).ax_
    return ProfilesDisplay.from_predictions(X, result, sample_weight=sample_weight, ax=ax).ax_
