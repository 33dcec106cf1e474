"""What sets clusters apart, column by column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from coterie.plots.display import Array, Display, caption, rounded, short
from coterie.plots.rows import Groups, Rows, as_groups, as_rows, groups_by

MOST_COLUMNS = 30  # that are drawn
MOST_WRITTEN = 240  # cells with numbers in them
FULL = 2.0  # standard deviations at which a colour is full


@dataclass(eq=False)
class ProfilesDisplay(Display):
    """Means of the clusters, in standard deviations of each column from the mean of all rows."""

    kind: ClassVar[str] = "profiles"
    names: list[str]  # (k,) of the clusters
    sizes: Array  # (k,) rows
    columns: list[str]  # (d,)
    means: Array  # (k, d) in the units of the columns
    scores: Array  # (k, d) in standard deviations; 0 for a constant column
    shown: Array  # columns that are drawn: all, or those that differ most

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, ax: Any = None) -> Self:
        """Of a fitted model."""
        rows = as_rows(X)
        return cls._made(rows, groups_by(model, X, len(rows.X)))._on(ax)

    @classmethod
    def from_predictions(cls, X: Any, labels: Any, *, ax: Any = None) -> Self:
        """Of labels, one a row; rows of -1 are in no cluster, but part of the mean of all."""
        rows = as_rows(X)
        return cls._made(rows, as_groups(labels, len(rows.X)))._on(ax)

    @classmethod
    def _made(cls, rows: Rows, groups: Groups) -> Self:
        here = np.flatnonzero(groups.sizes)
        means = groups.means(rows.X)[here]
        deviation = np.sqrt(rows.variance)
        real = deviation > 1e-12 * np.abs(rows.mean)
        scores = np.divide(means - rows.mean, deviation, out=np.zeros_like(means), where=real)
        order = np.argsort(-np.abs(scores).max(axis=0, initial=0.0), kind="stable")
        names = [groups.names[j] for j in here]
        return cls(names, groups.sizes[here], rows.columns, means, scores, np.sort(order[:MOST_COLUMNS]))

    def _figure_size(self) -> tuple[float, float]:
        width, height = 3.2 + 0.62 * len(self.shown), 1.9 + 0.3 * len(self.names)
        return float(np.clip(width, 5.0, 16.0)), float(np.clip(height, 2.8, 16.0))

    def _draw(self, ax: Any) -> None:
        scores = self.scores[:, self.shown]
        self.image_ = ax.imshow(scores, cmap="PuOr_r", vmin=-FULL, vmax=FULL, aspect="auto", interpolation="nearest")
        total, k = self.sizes.sum(), len(self.names)
        sides = [
            f"{short(name, 16)}   {size:,} ({100 * size / total:.3g} %)"
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
        caption(ax, f"means of {k} cluster{'' if k == 1 else 's'}{some}")

    def _write(self, ax: Any, scores: Array) -> list[Any]:
        means = self.means[:, self.shown]
        return [
            ax.text(
                j, i, rounded(float(means[i, j])), ha="center", va="center", fontsize=8,
                color="white" if abs(scores[i, j]) > 0.75 * FULL else "#222222",
            )
            for i, j in np.ndindex(*scores.shape)
        ]  # fmt: skip


def profiles(result: Any, X: Any, *, ax: Any = None) -> Any:
    """Draw the means of clusters as a map: a row a cluster with its size, a column a column, coloured by how many
    standard deviations the cluster is from the mean of all rows. Numbers are means in the units of the column.

    Of more than 30 columns those are drawn in which some cluster is farthest from the mean.

    Parameters
    ----------
    result : fitted model, or labels (n,)
    X : array or frame (n, d)
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
        return ProfilesDisplay.from_estimator(result, X, ax=ax).ax_
    return ProfilesDisplay.from_predictions(X, result, ax=ax).ax_
