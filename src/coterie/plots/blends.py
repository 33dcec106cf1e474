"""Responsibilities as blends of colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.errors import InputError, ParameterError
from coterie.data.picking import some
from coterie.palette import blends
from coterie.plots.cloud import Cloud
from coterie.plots.display import Display, caption
from coterie.plots.rows import MANY, SHOWN, Array, Groups, Rows, View, as_rows, asked, check_fitted

NUMBERS = 400_000  # shares that are kept at most


@dataclass(eq=False)
class ResponsibilitiesDisplay(Display):
    """How much of each row each component takes, as the share of its colour."""

    kind: ClassVar[str] = "responsibilities"
    cloud: Cloud
    shares: Array  # (m, k) of the points of the cloud

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, columns: Any = None, ax: Any = None) -> Self:
        """Of a fitted mixture, or of fuzzy c-means: what has `predict_proba` or memberships."""
        check_fitted(model)
        rows = as_rows(X)
        if not hasattr(model, "predict_proba"):
            raise ParameterError(f"{type(model).__name__} has no shares of rows (no predict_proba): use plots.clusters")
        kept = _kept(len(rows.X), asked(model, "predict_proba", rows.X[:1]).shape[1])
        return cls._made(rows, kept, asked(model, "predict_proba", rows.X[kept]), columns)._on(ax)

    @classmethod
    def from_predictions(cls, X: Any, shares: Any, *, columns: Any = None, ax: Any = None) -> Self:
        """Of shares (n, k), one row of them for each row."""
        rows = as_rows(X)
        given = np.asarray(shares, dtype=np.float64)
        if given.ndim != 2 or len(given) != len(rows.X):
            raise InputError(f"shares must be (n, k) for the {len(rows.X)} rows of X; their shape is {given.shape}")
        if not (np.isfinite(given).all() and (given >= 0).all() and np.allclose(given.sum(axis=1), 1.0, atol=1e-3)):
            raise InputError("shares must be at least 0 and sum to 1 for every row")
        kept = _kept(len(given), given.shape[1])
        return cls._made(rows, kept, given[kept], columns)._on(ax)

    @classmethod
    def _made(cls, rows: Rows, kept: Array, shares: Array, columns: Any) -> Self:
        view, k = View.of(rows, columns), shares.shape[1]
        P = view.points(rows.X[kept])
        weight = shares.sum(axis=0)
        centers = (shares.T @ P) / np.maximum(weight, 1e-300)[:, None]
        groups = Groups(shares.argmax(axis=1), [str(j) for j in range(k)])
        cloud = Cloud(view.axes, groups.names, groups.sizes, centers, len(rows.X), P, groups.codes)
        return cls(cloud, shares.astype(np.float64))

    def _draw(self, ax: Any) -> None:
        m, n = len(self.shares), self.cloud.n
        if self.cloud.points.shape[1] == 1:
            self._draw_bands(ax)
        else:
            area = float(np.clip(20_000 / m, 3.0, 26.0))
            mixed = blends(self.shares, self.cloud.colours)
            self.rows_ = ax.scatter(*self.cloud.points.T, s=area, c=mixed, linewidths=0, rasterized=m > 5000)
            ax.set_ylabel(self.cloud.axes[1])
            ax.margins(0.05)
            self.numbers_ = self.cloud.number(ax)
        ax.set_xlabel(self.cloud.axes[0])
        ax.spines[["top", "right"]].set_visible(False)
        unsure = float((self.shares.max(axis=1) < 0.9).mean())
        drawn = f"{n:,} rows" if m == n else f"{m:,} of {n:,} rows"
        caption(ax, f"responsibilities as blends; {drawn}, {100 * unsure:.3g} % of them below 0.9")

    def _draw_bands(self, ax: Any) -> None:
        """One column: shares as bands on top of each other, along it."""
        x = self.cloud.points[:, 0]
        order = np.argsort(x, kind="stable")
        self.rows_ = ax.stackplot(x[order], self.shares[order].T, colors=self.cloud.colours, alpha=0.8)
        ax.set_ylabel("share of the row")
        ax.set_ylim(0, 1)
        ax.margins(x=0)
        self.numbers_ = [
            ax.text(center[0], 0.96, name, ha="center", va="top", fontweight="bold", color="white")
            for name, center, size in zip(self.cloud.names, self.cloud.centers, self.cloud.sizes, strict=True)
            if size
        ]


def _kept(n: int, k: int) -> Array:
    most = n if n <= MANY else SHOWN
    return some(n, min(most, max(NUMBERS // max(k, 1), 2000)))


def responsibilities(result: Any, X: Any, *, columns: Any = None, ax: Any = None) -> Any:
    """Draw each row in the blend of the components' colours that its responsibilities make.

    A row that one component explains has its colour; between two it is a mixture of both, made as light is mixed.

    Parameters
    ----------
    result : fitted model with `predict_proba`, or shares (n, k)
    X : array or frame (n, d)
        Of many rows a sample is drawn, as the caption says.
    columns : one or two names or numbers of columns, optional
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
        return ResponsibilitiesDisplay.from_estimator(result, X, columns=columns, ax=ax).ax_
    return ResponsibilitiesDisplay.from_predictions(X, result, columns=columns, ax=ax).ax_
