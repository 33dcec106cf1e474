"""Synthetic demo tables, generated with fixed seeds."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coterie.datasets.generators import make_blobs, make_moons

Columns: TypeAlias = dict[str, NDArray[Any]]


class SyntheticTable(NamedTuple):
    """Columns of a table, and the true cluster of each row."""

    columns: Columns
    groups: NDArray[np.int64]


# Customers of a shop. For each group: its name in marketing, its share, and the means of its columns.
CUSTOMERS = 12_000
GROUPS = {
    "gold": (0.29, 12.0, 24.0, 58.0, 4.0, 62.0, 14.0),
    "value": (0.25, 34.0, 13.0, 31.0, 9.0, 34.0, 68.0),
    "dormant": (0.20, 260.0, 2.0, 52.0, 6.0, 46.0, 24.0),
    "fashion": (0.15, 24.0, 17.0, 92.0, 38.0, 21.0, 33.0),
    "occasional": (0.11, 95.0, 4.0, 235.0, 7.0, 55.0, 9.0),
}
CITIES = ("Lyon", "Porto", "Gdansk", "Turin", "Ghent", "Malmo", "Graz", "Bilbao", "Brno", "Cork")
SEGMENT_ACCURACY = 0.8  # share of customers in the right segment; the others are in a random one


def customers() -> SyntheticTable:
    """Customers of a shop: five groups in six numeric columns, and an id, a city and an imprecise segment."""
    rng = np.random.default_rng(20)
    shares, *means = np.array(list(GROUPS.values())).T
    y = rng.choice(len(shares), CUSTOMERS, p=shares / shares.sum())
    recency, orders, basket, returns, tenure, discount = (mean[y] for mean in means)
    segments = np.where(rng.random(CUSTOMERS) < SEGMENT_ACCURACY, y, rng.integers(len(shares), size=CUSTOMERS))
    columns = {
        "customer_id": rng.permutation(CUSTOMERS) + 100_001,
        "city": rng.choice(CITIES, CUSTOMERS, p=np.arange(len(CITIES), 0, -1) / 55),
        "segment": np.array(list(GROUPS))[segments],
        "recency_days": rng.gamma(9.0, recency / 9.0).round().astype(np.int64),
        "orders_per_year": rng.gamma(16.0, orders / 16.0).round(1),
        "avg_basket": (basket * np.exp(rng.normal(-0.02, 0.2, CUSTOMERS))).round(2),
        "returns_pct": (100 * _share(returns, 60.0, rng)).round(1),
        "tenure_months": rng.gamma(12.0, tenure / 12.0).round().astype(np.int64),
        "discount_pct": (100 * _share(discount, 50.0, rng)).round(1),
    }
    return SyntheticTable(columns, y)


def blobs() -> SyntheticTable:
    """Six round clusters, in float32."""
    X, y = make_blobs(10_000, 8, centers=6, cluster_std=1.5, random_state=21, dtype=np.float32)
    return SyntheticTable({f"x{j}": X[:, j] for j in range(X.shape[1])}, y)


def moons() -> SyntheticTable:
    """Two interleaving half circles, which cannot be described by centers."""
    X, y = make_moons(1_000, noise=0.06, random_state=22)
    columns = {"x": X[:, 0].round(4), "y": X[:, 1].round(4), "moon": np.array(["upper", "lower"])[y]}
    return SyntheticTable(columns, y)


SERIES, SHORTEST, LONGEST = 180, 48, 64
SHAPES = ("plateau", "rise", "fall")


def series() -> SyntheticTable:
    """Cylinder, bell and funnel: series with an event of random start, duration and height, and one of three shapes.

    Each row is a series. Series have different lengths: missing values at the end of a row are not part of it.

    References
    ----------
    N. Saito (1994), *Local feature extraction and its applications using a library of bases*, Yale.
    """
    rng = np.random.default_rng(23)
    y = rng.permutation(np.arange(SERIES) % len(SHAPES))
    rows = np.full((SERIES, LONGEST), np.nan)
    for row, shape in zip(rows, y.tolist(), strict=True):
        length = int(rng.integers(SHORTEST, LONGEST + 1))
        row[:length] = _event(length, SHAPES[shape], rng)
    columns: Columns = {"course": np.array(SHAPES)[y]}
    return SyntheticTable(columns | {f"t{j:02}": rows[:, j] for j in range(LONGEST)}, y)


def _share(percent: NDArray[np.float64], concentration: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Beta-distributed shares with this mean; a larger `concentration` means a smaller variance."""
    return rng.beta(concentration * percent / 100, concentration * (1 - percent / 100))


def _event(length: int, shape: str, rng: np.random.Generator) -> NDArray[np.float64]:
    start = rng.uniform(0.1, 0.3) * length
    stop = start + rng.uniform(0.3, 0.6) * length
    time = np.arange(length)
    rise = (time - start) / (stop - start)
    profile = {"plateau": np.ones(length), "rise": rise, "fall": 1.0 - rise}[shape]
    height = 6.0 + rng.normal()
    is_event = (time >= start) & (time <= stop)
    return (height * profile * is_event + 0.4 * rng.standard_normal(length)).round(3)


SYNTHETIC: dict[str, Callable[[], SyntheticTable]] = {
    "customers": customers,
    "blobs": blobs,
    "moons": moons,
    "series": series,
}
