"""Tables whose number of clusters is known, for `bench_choose_k_quality`: real, from benchmark suites, and simulated.

A hash of its name puts each table into one of two halves. The rule of `choose_k` was tuned on the first only.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from coterie.datasets import load_demo, make_blobs, make_gaussians, make_moons, make_rings

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
MAX_ROWS = 12_000  # more rows than the budget "normal" evaluates; larger tables are sampled
TUNED, HELD_OUT = "tuned", "held out"


@dataclass(frozen=True)
class Table:
    """A table and its number of clusters; 1 for tables without clusters."""

    name: str
    k: int
    load: Callable[[], np.ndarray]

    @property
    def half(self) -> str:
        return (TUNED, HELD_OUT)[sha256(self.name.encode()).digest()[6] % 2]


def tables() -> list[Table]:
    """All tables; those of ``../shared/data`` only where that folder exists."""
    return [*shared_tables(), *simulated_tables()]


# Real tables and benchmark suites. Columns of different units are standardised.

SHARED_KS = {
    "sipu/a1": 20, "sipu/a3": 50, "sipu/s1": 15, "sipu/s2": 15, "sipu/birch1": 100, "sipu/r15": 15,
    "sipu/unbalance": 8, "sipu/aggregation": 7, "sipu/flame": 2, "sipu/jain": 2, "sipu/spiral": 3,
    "fcps/chainlink": 2, "fcps/engytime": 2, "fcps/hepta": 7, "fcps/lsun": 3, "fcps/tetra": 4, "fcps/twodiamonds": 2,
    "graves/dense": 2, "graves/fuzzyx": 5, "graves/line": 2, "graves/ring": 2, "graves/ring_noisy": 2,
    "graves/zigzag": 3, "wut/circles": 4, "wut/cross": 4, "wut/mk1": 3, "wut/mk2": 2, "wut/mk4": 3, "wut/smile": 6,
    "wut/stripes": 2, "wut/x1": 3, "wut/x2": 3, "wut/z1": 3, "other/chameleon_t4_8k": 6, "other/chameleon_t7_10k": 9,
    "other/hdbscan": 6, "g2mg/g2mg_2_30": 2, "g2mg/g2mg_16_30": 2, "g2mg/g2mg_64_50": 2, "h2mg/h2mg_2_30": 2,
    "uci/ecoli": 8, "uci/ionosphere": 2, "uci/sonar": 2, "uci/wdbc": 2, "uci/wine": 3, "mssc/breast_wbc": 2,
    "mssc/pima": 2, "mssc/seeds": 3, "r/iris": 3, "r/ruspini": 4, "r/faithful": 2, "r/xclara": 3, "r/crabs": 2,
    "r/diabetes_rrcov": 3, "r/hemophilia": 2, "r/wine27": 3, "r/banknote": 2, "r/cross": 2, "r/penguins": 3,
    "sklearn/digits": 10,
}  # fmt: skip
STANDARDISED = (
    "uci/", "mssc/", "r/iris", "r/faithful", "r/crabs", "r/diabetes", "r/hemophilia", "r/wine27", "r/banknote",
    "r/penguins",
)  # fmt: skip


def shared_tables() -> list[Table]:
    if not (SHARED / "index.json").is_file():
        return []
    return [Table(name, k, partial(_shared, name)) for name, k in SHARED_KS.items()]


@cache
def _index() -> dict[str, Any]:
    entries = json.loads((SHARED / "index.json").read_text(encoding="utf-8"))
    return {f"{entry['group']}/{entry['name']}": entry for entry in entries}


def shared_rows(name: str) -> np.ndarray:
    """The complete rows of a table of ``../shared/data``."""
    X = np.loadtxt(SHARED / _index()[name]["files"][0], delimiter=",", skiprows=1, ndmin=2)
    return X[~np.isnan(X).any(axis=1)]


def _shared(name: str) -> np.ndarray:
    X = shared_rows(name)
    if len(X) > MAX_ROWS:
        X = X[np.sort(np.random.default_rng(0).choice(len(X), MAX_ROWS, replace=False))]
    return standardised(X) if name.startswith(STANDARDISED) else X


def standardised(X: np.ndarray) -> np.ndarray:
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


# Simulated tables: a function of a random generator, and the number of clusters.


def centers_apart(rng: np.random.Generator, k: int, d: int, distance: float) -> np.ndarray:
    """k random centers, the two nearest of which are `distance` apart."""
    trials = rng.normal(size=(200, k, d))
    gaps = np.array([_smallest_distance(centers) for centers in trials])
    best = int(gaps.argmax())
    return trials[best] * (distance / gaps[best])


def _smallest_distance(centers: np.ndarray) -> float:
    squares = ((centers[:, None] - centers) ** 2).sum(axis=2)
    return float(np.sqrt(squares[np.triu_indices(len(centers), 1)].min()))


def round_clusters(rng: np.random.Generator, k: int, d: int, n: int, distance: float) -> np.ndarray:
    """Gaussian clusters of standard deviation 1 and equal size."""
    return np.repeat(centers_apart(rng, k, d, distance), n // k, axis=0) + rng.normal(size=(n // k * k, d))


def unequal_clusters(rng: np.random.Generator, k: int, d: int, n: int, distance: float) -> np.ndarray:
    """The largest cluster has thirty times the rows of the smallest, and twice its standard deviation."""
    sizes = np.geomspace(30, 1, k)
    y = np.repeat(np.arange(k), np.maximum(5, (n * sizes / sizes.sum()).astype(int)))
    return centers_apart(rng, k, d, distance)[y] + rng.normal(size=(len(y), d)) * np.linspace(1.0, 0.5, k)[y, None]


def skewed_clusters(rng: np.random.Generator, k: int, d: int, n: int, distance: float) -> np.ndarray:
    """Clusters whose rows have log-normal deviations from a corner."""
    deviations = np.exp(rng.normal(0, 0.8, (n // k * k, d)))
    return np.repeat(centers_apart(rng, k, d, distance), n // k, axis=0) + deviations


def heavy_tails(rng: np.random.Generator, k: int, d: int, n: int, distance: float) -> np.ndarray:
    """Student clusters with three degrees of freedom."""
    return np.repeat(centers_apart(rng, k, d, distance), n // k, axis=0) + rng.standard_t(3, (n // k * k, d))


def with_outliers(rng: np.random.Generator, k: int, d: int, n: int, distance: float) -> np.ndarray:
    """Round clusters and one percent of rows far from all of them."""
    X = round_clusters(rng, k, d, n, distance)
    return np.concatenate([X, rng.uniform(-6 * distance, 6 * distance, (max(1, n // 100), d))])


def elongated(rng: np.random.Generator, k: int, n: int, length: float) -> np.ndarray:
    """Parallel clusters, longer than they are far apart."""
    X = rng.normal(size=(n // k * k, 2)) * [length, 1.0]
    X[:, 1] += np.repeat(np.arange(k) * 8.0, n // k)
    return X


def pairs_of_clusters(rng: np.random.Generator, groups: int, n: int) -> np.ndarray:
    """Clusters in pairs: the distance within a pair is a third of that between pairs."""
    centers = centers_apart(rng, groups, 2, 24.0)
    shift = np.array([4.0, 0.0])
    both = np.concatenate([centers - shift, centers + shift])
    return np.repeat(both, n // len(both), axis=0) + rng.normal(size=(n // len(both) * len(both), 2))


def counts(rng: np.random.Generator, k: int, d: int, n: int, ratio: float) -> np.ndarray:
    """Poisson counts, standardised; rates of the clusters differ by about `ratio`."""
    rates = 6.0 * ratio ** rng.uniform(-1, 1, (k, d))
    return standardised(rng.poisson(np.repeat(rates, n // k, axis=0)).astype(float))


def survey(rng: np.random.Generator, k: int, n: int, shift: float) -> np.ndarray:
    """Twelve answers from 1 to 5, which depend on two factors; those of clusters of people differ by `shift`."""
    factors, loadings = rng.normal(size=(n, 2)), rng.uniform(0.3, 0.9, (2, 12))
    profile = shift * rng.choice([-1.0, 1.0], (k, 12)) if k > 1 else np.zeros((1, 12))
    answers = factors @ loadings + profile[rng.integers(k, size=n)] + rng.normal(0, 0.8, (n, 12))
    return standardised(np.clip(np.round(3 + answers), 1, 5))


def purchases(rng: np.random.Generator, n: int) -> np.ndarray:
    """Recency, frequency and amount of customers: one skewed population, standardised."""
    activity = rng.normal(size=n)
    recency = rng.exponential(60 * np.exp(-0.5 * activity))
    frequency = 1 + rng.poisson(np.exp(1 + 0.9 * activity))
    return standardised(np.column_stack([recency, frequency, frequency * np.exp(rng.normal(3, 0.7, n))]))


def segments_of_purchases(rng: np.random.Generator, n: int) -> np.ndarray:
    """The same with three segments: frequent buyers, occasional buyers, and customers who left."""
    y = rng.choice(3, n, p=[0.15, 0.55, 0.3])
    recency = rng.gamma(8.0, np.array([10.0, 40.0, 300.0])[y] / 8)
    frequency = rng.poisson(np.array([60.0, 8.0, 4.0])[y])
    amount = np.array([5000.0, 400.0, 200.0])[y] * np.exp(rng.normal(0, 0.35, n))
    return standardised(np.column_stack([recency, frequency, amount]))


def cars(rng: np.random.Generator, n: int) -> np.ndarray:
    """Columns that all grow with the size of a car, beside a number of cylinders: 4, 6 or 8."""
    size = rng.gamma(4.0, 0.5, n)
    cylinders = 4 + 2 * np.digitize(size + rng.normal(0, 0.25, n), [1.8, 3.0])
    columns = [100 + 90 * size, 60 + 35 * size, 2000 + 600 * size, 32 / (0.7 + 0.3 * size), 19 - 1.5 * size]
    X = np.column_stack([column * np.exp(rng.normal(0, 0.09, n)) for column in columns])
    return standardised(np.column_stack([cylinders, np.round(X), rng.integers(70, 83, n)]))


def one_cloud(rng: np.random.Generator, n: int, d: int, kind: str) -> np.ndarray:
    """Rows without clusters."""
    if kind == "uniform":
        return rng.uniform(size=(n, d))
    if kind == "skewed":
        return standardised(np.exp(rng.normal(size=(n, d))))
    if kind == "exponential":
        return rng.exponential(size=(n, d))
    if kind == "heavy-tailed":
        return rng.standard_t(3, (n, d))
    if kind == "correlated":
        return rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.3 * rng.normal(size=(n, d))
    return rng.normal(size=(n, d)) * (np.linspace(4, 1, d) if kind == "long" else 1.0)


def customers() -> np.ndarray:
    table = load_demo("customers")
    columns = [table[name] for name in table.columns[3:]]
    return standardised(np.column_stack(columns).astype(float))


def simulated_tables() -> list[Table]:
    simulations: dict[str, tuple[int, Callable[[np.random.Generator], np.ndarray]]] = {}
    for k, d, n, distance in [(2, 2, 200, 8), (3, 2, 300, 6), (4, 3, 2000, 7), (5, 5, 500, 6), (6, 10, 10_000, 6),
                              (8, 10, 800, 7), (3, 50, 300, 8), (4, 100, 200, 10), (12, 4, 1200, 8), (20, 2, 2000, 9),
                              (30, 5, 3000, 8), (50, 3, 5000, 9)]:  # fmt: skip
        simulations[f"round, K={k}, d={d}"] = k, partial(round_clusters, k=k, d=d, n=n, distance=float(distance))
    for k, d, n, distance in [
        (2, 2, 400, 3.0),
        (3, 2, 900, 4.0),
        (3, 5, 600, 3.5),
        (4, 2, 800, 4.0),
        (5, 8, 3000, 4.0),
    ]:
        simulations[f"overlapping, K={k}, d={d}"] = k, partial(round_clusters, k=k, d=d, n=n, distance=distance)
    for k, d in [(2, 2), (3, 2), (4, 5), (6, 3)]:
        simulations[f"unequal, K={k}, d={d}"] = k, partial(unequal_clusters, k=k, d=d, n=1200, distance=7.0)
        simulations[f"skewed, K={k}, d={d}"] = k, partial(skewed_clusters, k=k, d=d, n=900, distance=10.0)
        simulations[f"heavy-tailed, K={k}, d={d}"] = k, partial(heavy_tails, k=k, d=d, n=900, distance=12.0)
        simulations[f"outliers, K={k}, d={d}"] = k, partial(with_outliers, k=k, d=d, n=900, distance=8.0)
    for k, length in [(2, 3.0), (3, 3.0), (2, 8.0), (4, 2.0)]:
        simulations[f"elongated, K={k}, length={length:g}"] = k, partial(elongated, k=k, n=800, length=length)
    for groups in (2, 3, 4):
        simulations[f"pairs, K={2 * groups}"] = 2 * groups, partial(pairs_of_clusters, groups=groups, n=720)
    for k, d in [(2, 6), (3, 4), (4, 8)]:
        simulations[f"counts, K={k}, d={d}"] = k, partial(counts, k=k, d=d, n=900, ratio=3.0)
    for k, shift in [(1, 0.0), (2, 0.8), (3, 0.8), (4, 1.0)]:
        simulations[f"survey, K={k}"] = k, partial(survey, k=k, n=1500, shift=shift)
    simulations["survey, K=1, few rows"] = 1, partial(survey, k=1, n=250, shift=0.0)
    simulations["purchases, one population"] = 1, partial(purchases, n=2000)
    simulations["purchases, many rows"] = 1, partial(purchases, n=12_000)
    simulations["purchases, segments"] = 3, partial(segments_of_purchases, n=2000)
    simulations["purchases, segments, few rows"] = 3, partial(segments_of_purchases, n=300)
    simulations["cars"] = 3, partial(cars, n=400)
    simulations["cars, many rows"] = 3, partial(cars, n=3000)
    for kind in ("uniform", "gaussian", "long", "skewed", "exponential", "heavy-tailed", "correlated"):
        for n, d in [(200, 2), (1000, 5)]:
            simulations[f"one cloud, {kind}, d={d}"] = 1, partial(one_cloud, n=n, d=d, kind=kind)
    for d, k in [(2, 3), (3, 5), (6, 4)]:
        simulations[f"gaussians, K={k}, d={d}"] = k, partial(_gaussians, d=d, k=k)
    simulations["blobs, K=7"] = 7, lambda rng: make_blobs(700, 2, centers=7, cluster_std=0.7, random_state=rng)[0]
    simulations["blobs, K=4, d=20"] = 4, lambda rng: make_blobs(400, 20, centers=4, cluster_std=6, random_state=rng)[0]
    simulations["moons"] = 2, lambda rng: make_moons(500, noise=0.08, random_state=rng)[0]
    simulations["rings"] = 2, lambda rng: make_rings(500, noise=0.05, random_state=rng)[0]
    simulations["customers"] = 5, lambda rng: customers()
    return [Table(name, k, partial(_simulated, name, draw)) for name, (k, draw) in simulations.items()]


def _simulated(name: str, draw: Callable[[np.random.Generator], np.ndarray]) -> np.ndarray:
    return draw(np.random.default_rng(list(sha256(name.encode()).digest()[:8])))


def _gaussians(rng: np.random.Generator, d: int, k: int) -> np.ndarray:
    return make_gaussians(600, d, k, separation=8.0, random_state=rng)[0]
