"""Tables that are hard for a clustering library, and sample weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.draw import Draw

Array = np.ndarray[Any, Any]

EXPONENTS = {"float64": 900, "float32": 100}  # powers of two by which tables are scaled


def blobs(draw: Draw, n: int, d: int) -> Array:
    """Clusters of normal rows: the table on which everything should work."""
    k = draw.integer(1, 8)
    centers = 4.0 * draw.rng.normal(size=(k, d))
    return centers[draw.rng.integers(k, size=n)] + draw.rng.normal(size=(n, d))


def nested_scales(draw: Draw, n: int, d: int) -> Array:
    """Clusters whose distance and spread differ by powers of two, so that scales change while centers move."""
    k = draw.integer(2, 12)
    exponents = draw.rng.integers(-12, 13, size=(2, k))
    centers = draw.rng.normal(size=(k, d)) * 2.0 ** exponents[0][:, None]
    cluster = draw.rng.integers(k, size=n)
    return centers[cluster] + draw.rng.normal(size=(n, d)) * 2.0 ** exponents[1][cluster][:, None]


def loose_blobs(draw: Draw, n: int, d: int) -> Array:
    """Overlapping clusters: centers keep moving for many iterations."""
    k = draw.integer(2, 10)
    spread = draw.one_of([0.3, 1.0, 1.5])
    return spread * draw.rng.normal(size=(k, d))[draw.rng.integers(k, size=n)] + draw.rng.standard_normal((n, d))


def grid(draw: Draw, n: int, d: int) -> Array:
    """Small whole numbers: many equal distances, many equal rows."""
    return draw.integers(0, draw.integer(1, 5), (n, d)).astype(float) if n * d <= 64 else _large_grid(draw, n, d)


def _large_grid(draw: Draw, n: int, d: int) -> Array:
    return draw.rng.integers(0, draw.integer(1, 5) + 1, size=(n, d)).astype(float)


def few_distinct_rows(draw: Draw, n: int, d: int) -> Array:
    rows = draw.rng.normal(size=(draw.integer(1, 4), d))
    return rows[draw.rng.integers(len(rows), size=n)]


def constant_columns(draw: Draw, n: int, d: int) -> Array:
    X = blobs(draw, n, d)
    X[:, draw.rng.random(d) < 0.6] = draw.one_of([0.0, 1.0, -1e6, 0.1])
    return X


def rank_deficient(draw: Draw, n: int, d: int) -> Array:
    """Rows in a plane: a covariance has no inverse."""
    rank = draw.integer(1, max(1, d - 1))
    return draw.rng.normal(size=(n, rank)) @ draw.rng.normal(size=(rank, d))


def heavy_tails(draw: Draw, n: int, d: int) -> Array:
    return draw.rng.standard_cauchy(size=(n, d))


def far_outliers(draw: Draw, n: int, d: int) -> Array:
    X = blobs(draw, n, d)
    X[draw.rng.integers(n, size=max(1, n // 50))] *= draw.one_of([1e3, 1e6, 1e9])
    return X


def far_from_origin(draw: Draw, n: int, d: int) -> Array:
    return draw.one_of([1e4, 1e8, -1e8]) + draw.one_of([1.0, 1e-3]) * blobs(draw, n, d)


def counts(draw: Draw, n: int, d: int) -> Array:
    """Whole numbers from zero up, most of them small."""
    rate = draw.one_of([0.1, 0.4, 3.0, 50.0])
    return draw.rng.poisson(rate * draw.rng.gamma(1.0, 1.0, size=(1, d)), size=(n, d)).astype(float)


def shrinking(draw: Draw, n: int, d: int) -> Array:
    """Rows that approach the origin: distances of all sizes."""
    return draw.rng.normal(size=(n, d)) * 2.0 ** -np.linspace(0, draw.one_of([10, 40]), n)[:, None]


BENIGN = (blobs, loose_blobs)
HOSTILE: tuple[Callable[[Draw, int, int], Array], ...] = (
    blobs, nested_scales, loose_blobs, grid, few_distinct_rows, constant_columns, rank_deficient, heavy_tails,
    far_outliers, far_from_origin, counts, shrinking,
)  # fmt: skip


def shape(draw: Draw, largest: int = 200) -> tuple[int, int]:
    """Rows and columns; one row, few rows and one column are common."""
    n = draw.one_of([1, 2, 3, draw.integer(4, 12), draw.integer(10, 60), draw.integer(40, largest)])
    return n, draw.one_of([1, 2, 3, draw.integer(1, 8)])


def hostile(draw: Draw, n: int, d: int, scaled: bool = True) -> Array:
    """A table of any kind, in float64 or float32; sometimes scaled by a large power of two."""
    X = draw.one_of(HOSTILE)(draw, n, d)
    dtype = draw.one_of(["float64", "float64", "float32"])
    if scaled and draw.happens(0.15):
        X = scaled_by(X, draw.integer(-EXPONENTS[dtype], EXPONENTS[dtype]))
    return X.astype(dtype)


def benign(draw: Draw, n: int, d: int) -> Array:
    """Clusters of continuous values: without ties, in float64."""
    return draw.one_of(BENIGN)(draw, n, d)


def scaled_by(X: Array, exponent: int) -> Array:
    """`X` times a power of two, after its values were brought to at most one."""
    largest = float(np.abs(X).max(initial=0.0))
    return X if largest == 0 else np.ldexp(X, exponent - int(np.ceil(np.log2(largest))))


def with_missing(draw: Draw, X: Array) -> Array:
    """`X` with NaN in it, but neither a row nor a column of NaN alone."""
    X = np.where(draw.rng.random(X.shape) < draw.one_of([0.05, 0.3]), np.nan, X)
    rows, columns = np.isnan(X).all(axis=1), np.isnan(X).all(axis=0)
    X[rows, 0] = 0.0
    X[0, columns] = 0.0
    return X


def weights(draw: Draw, n: int) -> Array | None:
    """Sample weights, often None; zeros and whole numbers are common, extreme ones occur."""
    kind = draw.one_of(["none", "none", "ones", "whole", "zeros", "real", "extreme"])
    if kind == "none":
        return None
    w = {
        "ones": lambda: np.ones(n),
        "whole": lambda: draw.rng.integers(1, 4, size=n).astype(float),
        "zeros": lambda: draw.rng.integers(0, 3, size=n).astype(float),
        "real": lambda: draw.rng.exponential(size=n),
        "extreme": lambda: draw.rng.exponential(size=n) * 10.0 ** draw.integer(-200, 200),
    }[kind]()
    w[0] = w[0] or 1.0  # weights that are all zero are not valid
    return w
