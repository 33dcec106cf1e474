"""Responsibilities as blends of colours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.errors import InputError, ParameterError
from coterie.data.picking import some
from coterie.palette import INK, blends
from coterie.plots.cloud import Cloud, notes, steps_of
from coterie.plots.display import Display, caption, counted
from coterie.plots.rows import MANY, SHOWN, Array, Groups, Rows, View, as_rows, asked, check_fitted, spread_over

NUMBERS = 400_000  # shares that are kept at most
SURE = 0.9  # a share of a row that leaves little to others
GRID = 400  # places along one column
LINES, NEAR = 3, 0.05  # heights that numbers have, where they are nearer to each other than this share of the width


@dataclass(eq=False, repr=False)
class ResponsibilitiesDisplay(Display):
    """How much of each row each component takes, as the share of its colour."""

    kind: ClassVar[str] = "responsibilities"
    cloud: Cloud
    shares: Array  # (m, k) of the points of the cloud
    unsure: float  # the share of rows none of whose shares is as much as `SURE`
    x: Array | None = None  # (g,) places along one column, where the picture has no other, or the middles of steps
    bands: Array | None = None  # (g, k) shares there, or mean shares of the rows in the step: 0 where there is none
    exact: bool = False  # whether these are shares at single values

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, *, columns: Any = None, sample_weight: Any = None, ax: Any = None
    ) -> Self:
        """Of a fitted mixture, or of fuzzy c-means: what has `predict_proba` or memberships."""
        check_fitted(model)
        rows = as_rows(X, sample_weight).counting()
        if not hasattr(model, "predict_proba"):
            raise ParameterError(f"{type(model).__name__} has no shares of rows (no predict_proba): use plots.clusters")
        kept = _kept(len(rows.X), asked(model, "predict_proba", rows.given[:1]).shape[1])
        made = cls._made(rows, kept, asked(model, "predict_proba", rows.given[kept]), columns)
        return made._along(model, rows.X.dtype if len(rows.columns) == 1 else None)._on(ax)

    @classmethod
    def from_predictions(
        cls, X: Any, shares: Any, *, columns: Any = None, sample_weight: Any = None, ax: Any = None
    ) -> Self:
        """Of shares (n, k), one row of them for each row."""
        rows = as_rows(X, sample_weight)
        given = np.asarray(shares, dtype=np.float64)
        if given.ndim != 2 or len(given) != len(rows.X):
            raise InputError(f"shares must be (n, k) for the {len(rows.X)} rows of X; their shape is {given.shape}")
        if not (np.isfinite(given).all() and (given >= 0).all() and np.allclose(given.sum(axis=1), 1.0, atol=1e-3)):
            raise InputError("shares must be at least 0 and sum to 1 for every row")
        if rows.w is not None:
            given = given[rows.w > 0]
        rows = rows.counting()
        kept = _kept(len(given), given.shape[1])
        return cls._made(rows, kept, given[kept], columns)._on(ax)

    @classmethod
    def _made(cls, rows: Rows, kept: Array, shares: Array, columns: Any) -> Self:
        view, k, some = View.of(rows, columns), shares.shape[1], rows.taken(kept)
        P, w = view.points(some.X), np.ones(len(kept)) if some.w is None else some.w
        mass = w[:, None] * shares
        centers = (mass.T @ P) / np.maximum(mass.sum(axis=0), 1e-300)[:, None]
        groups = Groups(shares.argmax(axis=1), [str(j) for j in range(k)], some.w)
        cloud = Cloud(
            view.axes, groups.names, groups.sizes, centers, len(rows.X), P, groups.codes,
            weight=None if rows.w is None else rows.weight, missing=rows.missing,
        )  # fmt: skip
        unsure = float(np.average(shares.max(axis=1) < SURE, weights=w))
        x, bands = _in_steps(P[:, 0], shares, w) if P.shape[1] == 1 else (None, None)
        return cls(cloud, shares.astype(np.float64), unsure, x, bands)

    def _along(self, model: Any, kind: Any) -> Self:
        """With the shares at even steps of the only column there is, if the model takes any value."""
        if kind is None:
            return self
        x = spread_over(self.cloud.points[:, 0], GRID, 0.0)
        try:
            bands = asked(model, "predict_proba", x[:, None].astype(kind)).astype(np.float64)
        except InputError:  # counts and the like: there is nothing between them
            return self
        return replace(self, x=x, bands=bands, exact=True)

    def _draw(self, ax: Any) -> None:
        m, n = len(self.shares), self.cloud.n
        if self.x is not None and self.bands is not None:
            self._draw_bands(ax, self.x, self.bands)
        else:
            area = float(np.clip(20_000 / m, 3.0, 26.0))
            mixed = blends(self.shares, self.cloud.colours)
            self.rows_ = ax.scatter(*self.cloud.points.T, s=area, c=mixed, linewidths=0, rasterized=m > 5000)
            ax.set_ylabel(self.cloud.axes[1])
            ax.margins(0.05)
            self.numbers_ = self.cloud.number(ax)
        ax.set_xlabel(self.cloud.axes[0])
        ax.spines[["top", "right"]].set_visible(False)
        drawn = counted(n) if m == n else f"{m:,} of {counted(n)}"
        told = f"responsibilities as blends; {drawn}, {100 * self.unsure:.3g} % of them below {SURE}"
        caption(ax, told + notes(self.cloud.weighted, self.cloud.missing))

    def _draw_bands(self, ax: Any, x: Array, bands: Array) -> None:
        """One column: shares as bands on top of each other, along it."""
        half = (x[1] - x[0]) / 2
        ends, step = (x[0] - half, x[-1] + half), None if self.exact else "mid"
        x, bands = np.array([ends[0], *x, ends[1]]), np.concatenate([bands[:1], bands, bands[-1:]])
        self.rows_ = ax.stackplot(x, bands.T, colors=self.cloud.colours, alpha=0.8, step=step, linewidth=0)
        ax.set_xlim(*ends)
        ax.set_ylabel("share of the row" if self.exact else "mean share of the rows")
        ax.set_ylim(0, 1)
        self.numbers_ = self._number_bands(ax, float(ends[1] - ends[0]))

    def _number_bands(self, ax: Any, width: float) -> list[Any]:
        """Names at the upper edge, on different lines where they would be over each other."""
        from matplotlib.patheffects import withStroke

        drawn, last, line = [], -np.inf, 0
        for j in np.argsort(self.cloud.centers[:, 0], kind="stable"):
            if not self.cloud.sizes[j]:
                continue
            at = float(self.cloud.centers[j, 0])
            line = (line + 1) % LINES if at - last < NEAR * width else 0
            edge = [withStroke(linewidth=2, foreground=INK)]
            how = {"ha": "center", "va": "top", "fontweight": "bold", "color": "white", "path_effects": edge}
            drawn.append(ax.text(at, 0.96 - 0.07 * line, self.cloud.names[j], **how))
            last = at
        return drawn


def _in_steps(x: Array, shares: Array, w: Array) -> tuple[Array, Array]:
    """The middles of steps along a column (g,), and the mean shares of the rows in each (g, k)."""
    count = steps_of(len(x))
    middles = spread_over(x, count, 0.0)
    half = (middles[1] - middles[0]) / 2
    at = np.clip(((x - middles[0] + half) / (2 * half)).astype(int), 0, count - 1)
    sums = np.stack([np.bincount(at, w * column, count) for column in shares.T], axis=1)
    return middles, sums / np.maximum(np.bincount(at, w, count), 1e-300)[:, None]


def _kept(n: int, k: int) -> Array:
    most = n if n <= MANY else SHOWN
    return some(n, min(most, max(NUMBERS // max(k, 1), 2000)))


def responsibilities(result: Any, X: Any, *, columns: Any = None, sample_weight: Any = None, ax: Any = None) -> Any:
    """Draw each row in the blend of the components' colours that its responsibilities make.

    A row that one component explains has its colour; between two it is a mixture of both, made as light is mixed.
    One column is drawn as bands: of a model of that column alone its shares at every value, else the mean shares of the
    rows in steps of it.

    Parameters
    ----------
    result : fitted model with `predict_proba`, or shares (n, k)
    X : array or frame (n, d)
        Of many rows a sample is drawn, as the caption says.
    columns : one or two names or numbers of columns, optional
    sample_weight : array (n,), optional
        How much each row counts, in sizes, centers and the share below 0.9.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GaussianMixture, plots
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [9, 2], [9, 4], [9, 0]])
    >>> model = GaussianMixture(2, covariance_type="EEI", random_state=0).fit(X)
    >>> ax = plots.responsibilities(model, X)
    >>> ax.get_title(loc="left")
    'responsibilities as blends; 6 rows, 0 % of them below 0.9'
    """
    if hasattr(result, "fit"):
        return ResponsibilitiesDisplay.from_estimator(
            result, X, columns=columns, sample_weight=sample_weight, ax=ax
        ).ax_
    return ResponsibilitiesDisplay.from_predictions(X, result, columns=columns, sample_weight=sample_weight, ax=ax).ax_
