"""How much tighter the clusters are than those of rows without any: the gap statistic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from coterie import machine, metrics
from coterie.core.arguments import as_rng, not_negative, one_of, whole_number
from coterie.core.errors import InputError, ParameterError
from coterie.core.progress import Callback, check_callback, reported
from coterie.data import as_source
from coterie.data.memory import MemorySource
from coterie.data.summary import summarize
from coterie.distances.euclidean import Euclidean
from coterie.distances.pairwise import strips
from coterie.engines.local import Serial
from coterie.selection.kmeans_path import CANDIDATES, HOPE, too_few_distinct_rows
from coterie.selection.references import REFERENCES, Array, Box, box_about
from coterie.selection.sweep import as_ks, sweep
from coterie.selection.text_table import aligned

TOL = 1e-3  # of the mean variance of the columns: the squared step of all centers that ends a fit
MAX_ITER = 20
ROUNDING = 1e-26  # of the variance of all rows: less is none
FEWEST = 2  # references, of which there is a standard deviation


@dataclass(frozen=True)
class Gap:
    """What `gap_statistic` found; plain numbers, for a plot too."""

    ks: Array  # (m,)
    log_w: Array  # (m,) of the data
    reference_log_w: Array = field(repr=False)  # (B, m) of each reference
    rule: str
    se_factor: float
    reference: str
    power: float

    @property
    def expected(self) -> Array:
        """The mean of log W over the references (m,)."""
        mean: Array = self.reference_log_w.mean(axis=0)
        return mean

    @property
    def gap(self) -> Array:
        """How far log W of the data is below (m,)."""
        return self.expected - self.log_w

    @property
    def se(self) -> Array:
        """Standard errors (m,): standard deviations over the references, and what their finite number adds."""
        deviation: Array = self.reference_log_w.std(axis=0, ddof=1)
        return deviation * np.sqrt(1 + 1 / len(self.reference_log_w))

    @property
    def recommended(self) -> int:
        """The number of clusters by `rule`; 1 is an answer: no clusters."""
        return self._by(self.rule)

    def by_rule(self) -> dict[str, int]:
        """The number of clusters by each of the rules."""
        return {rule: self._by(rule) for rule in RULES}

    def _by(self, rule: str) -> int:
        return int(self.ks[RULES[rule](self.gap, self.se_factor * self.se)])

    def table(self) -> list[dict[str, Any]]:
        """A row for each K."""
        columns = zip(self.ks, self.log_w, self.expected, self.gap, self.se, strict=True)
        best = self.recommended
        return [
            {
                "k": int(k), "log_w": float(log_w), "expected": float(expected), "gap": float(gap), "se": float(se),
                "recommended": int(k) == best,
            }
            for k, log_w, expected, gap, se in columns
        ]  # fmt: skip

    def __str__(self) -> str:
        return aligned(self.table())


def gap_statistic(
    X: Any,
    ks: Any = range(1, 11),
    *,
    n_references: int = 50,
    reference: str = "uniform",
    rule: str = "tibs2001SEmax",
    se_factor: float = 1.0,
    power: float = 2.0,
    sample_weight: Any = None,
    estimator: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
) -> Gap:
    r"""The gap statistic [1]_: how much tighter K clusters of the data are than K clusters of rows without clusters.

    .. math:: \mathrm{Gap}(K) = \mathrm{E}^*[\log W_K] - \log W_K, \qquad
        W_K = \sum_r \frac{1}{2 n_r} \sum_{i, j \in C_r} \lVert x_i - x_j \rVert^p

    The expectation is over `n_references` tables of as many rows that lie evenly in a box about the data. With squares,
    p = 2, W is the sum of squares about the means: the inertia. R's `clusGap` takes p = 1 unless told otherwise, and
    half of this W, which the gap does not see.

    It is one of the few criteria that can answer 1. Do not use it for clusters that are not round, nor where clusters
    within clusters matter: the first K that will do is its answer. A box is a poor model of correlated columns: use
    reference='pca' for them.

    Parameters
    ----------
    X : array, frame, LazyFrame or path of a file (n, d)
    ks : ints, default=range(1, 11)
        Numbers of clusters; rules that look at the next K look at the next of these.
    n_references : int, default=50
        Tables without clusters, 2 at least.
    reference : {'uniform', 'pca'}, default='uniform'
        The sides of the box: the columns, or the principal axes of the data.
    rule : {'tibs2001SEmax', 'firstSEmax', 'globalSEmax', 'firstmax', 'globalmax'}, default='tibs2001SEmax'
        What K is recommended, with s the standard error times `se_factor`, after `clusGap`. 'tibs2001SEmax', that of
        the paper: the first K with Gap(K) >= Gap(K + 1) - s(K + 1). 'firstmax': the first K whose gap is no smaller
        than the next; 'globalmax': the largest gap. 'firstSEmax' and 'globalSEmax': the first K whose gap is within s
        of that. The last of `ks` where none is: then look at more.
    se_factor : float, default=1.0
    power : float, default=2.0
        The p of W; other than 2 it takes the distance of every two rows of a cluster.
    sample_weight : array (n,), optional
        How many rows each stands for; the rows of a reference have the same weights.
    estimator : estimator of coterie, optional
        What makes the clusters, by `sweep`; K-means unless given. W measures straight-line distances in any case.
    n_jobs : int or None, default=None
        Threads, each of which takes a reference at a time; None is all cores. The result does not depend on it.
    random_state : None, int, RandomState or Generator
    callback : callable or None, default=None
        Called with a `Progress` after the data and after every reference; a true answer ends it with the references
        there are by then, but not before there are two.

    Returns
    -------
    Gap

    Notes
    -----
    Data and references go through the very same procedure: centers for K and one more are the start for K + 1, beside
    the first K of a sequence of k-means++ (see `sweep`), up to 20 iterations and a coarse tolerance. That it stops
    short of the best clusters makes W larger for both; it must never be done to one of them alone, for then the gap
    would measure how hard was tried. Standard errors are those of n_references - 1 degrees of freedom, as in R.

    Costs 3 n d K operations an iteration, of which there are some 30 for each K and table. References are drawn where
    they are used: a thread has one, and two copies of it in float64. float32 rows have float32 references.

    References
    ----------
    .. [1] R. Tibshirani, G. Walther, T. Hastie (2001), Estimating the number of clusters in a data set via the gap
       statistic, J. Royal Statistical Society B 63, 411-423. https://doi.org/10.1111/1467-9868.00293

    Examples
    --------
    >>> from coterie.datasets import make_blobs
    >>> from coterie.selection import gap_statistic
    >>> X, _ = make_blobs(300, 2, centers=3, cluster_std=0.2, random_state=0)
    >>> gap_statistic(X, range(1, 7), n_references=20, random_state=0).recommended
    3
    """
    wanted, callback = as_ks(ks), check_callback(callback)
    whole_number("n_references", n_references, FEWEST)
    one_of("reference", reference, REFERENCES)
    one_of("rule", rule, tuple(RULES))
    se_factor = not_negative("se_factor", se_factor)
    if not_negative("power", power) == 0:
        raise ParameterError("power must be above 0; got 0")
    rows, w = positive_weight_rows(X, sample_weight)
    if len(rows) < wanted[-1]:
        raise InputError(f"n_samples={len(rows)} rows (of weight above 0) cannot make K = {wanted[-1]}: ask for fewer")
    within = partial(_by_sweep, estimator) if estimator is not None else _by_kmeans
    draw = partial(_table, rows, box_about(rows, w, reference))
    chances = as_rng(random_state).spawn(1 + n_references)
    names = ["data", *(f"reference {b}" for b in range(1, 1 + n_references))]
    asked = callback and (lambda step: bool(callback(step)) and step.done > FEWEST)
    with machine.one_blas_thread:
        calls = [(draw, w, wanted, float(power), within, i, rng) for i, rng in enumerate(chances)]
        found = np.array(list(reported(machine.in_threads(_log_within, calls, n_jobs), names, asked)))
    return Gap(np.array(wanted), found[0], found[1:], rule, se_factor, reference, float(power))


def positive_weight_rows(X: Any, sample_weight: Any) -> tuple[Array, Array | None]:
    """Dense rows whose weight is not 0, and their weights; None where all are 1."""
    source = as_source(X, sample_weight)
    if not isinstance(source, MemorySource) or hasattr(source.X, "indptr"):
        raise InputError("X must be dense rows in memory: references fill a box, and none of their values is 0")
    summarize(source, Serial())
    if source.w is None:
        return source.X, None
    kept = np.flatnonzero(source.w)
    return source.X[kept], source.w[kept]


def _table(rows: Array, box: Box, which: int, rng: np.random.Generator) -> Array:
    """The data, number 0, or a reference."""
    return rows if which == 0 else box.draw(len(rows), rows.dtype, rng)


def _log_within(
    draw: Callable[..., Array], w: Array | None, ks: list[int], power: float, within: Any, which: int,
    rng: np.random.Generator,
) -> Array:  # fmt: skip
    """log W of one table, for every K."""
    values = within(draw(which, rng), w, ks, power, rng)
    if not (values > 0).all():
        k = ks[int(np.argmin(values > 0))]
        raise InputError(
            f"K = {k} clusters hold nothing but equal rows, and log W is infinite: ks must be below the number of "
            "distinct rows of X"
        )
    return np.log(values)


class PathClusters(NamedTuple):
    """Clusters of one table for many K."""

    ks: list[int]
    squares: Array  # (m,) sums of squares about the means
    clusters: Array  # (m, n)

    def labels(self, k: int) -> Array:
        labels: Array = self.clusters[self.ks.index(k)]
        return labels


def kmeans_path(X: Array, w: Array | None, ks: list[int], rng: np.random.Generator) -> PathClusters:
    """K-means for all K in one call, of data and of references alike; estimators' checks would take longer than fits.

    `ks` ascend, and rows have weight.
    """
    from coterie.kernels.cpu.ladder import climb, room

    weight = np.ones(len(X)) if w is None else w
    rows = X - np.average(X, axis=0, weights=weight)  # float64, whatever X is
    variance = np.average(rows**2, axis=0, weights=weight)
    size = float(np.sqrt(variance.sum()))
    unit = 2.0 ** np.ceil(np.log2(size)) if size > 0 else 1.0
    rows /= unit
    (n, d), greedy = X.shape, 2 + int(np.log(ks[-1]))
    u = rng.random(ks[-1] * (greedy + 2 * CANDIDATES))
    squares, clusters = np.empty(len(ks)), np.empty((len(ks), len(X)), np.int32)
    tol = TOL * float((variance / unit**2).mean())
    enough = climb(
        rows, np.ascontiguousarray(rows.T), weight, np.array(ks), u, greedy, CANDIDATES, HOPE, tol, MAX_ITER,
        room(n, d, len(ks), ks[-1]), squares, clusters,
    )  # fmt: skip
    if not enough:
        raise too_few_distinct_rows(len(np.unique(X, axis=0)))
    return PathClusters(ks, np.where(squares > ROUNDING * weight.sum(), squares, 0.0) * unit**2, clusters)


def _by_kmeans(X: Array, w: Array | None, ks: list[int], power: float, rng: np.random.Generator) -> Array:
    found = kmeans_path(X, w, ks, rng)
    return found.squares if power == 2 else np.array([dispersion(X, mine, w, power) for mine in found.clusters])


def _by_sweep(
    estimator: Any, X: Array, w: Array | None, ks: list[int], power: float, rng: np.random.Generator
) -> Array:
    """W by the labels of any estimator."""
    serial = {"random_state": int(rng.integers(2**31)), "n_jobs": 1, "engine": "serial"}
    known = estimator.get_params()
    alone = clone(estimator).set_params(**{name: value for name, value in serial.items() if name in known})
    found = sweep(alone, ks, X, w)
    return np.array([dispersion(X, labels, w, power) for labels in found.labels])


def dispersion(X: Array, labels: Array, w: Array | None, power: float) -> float:
    r"""W: over clusters, :math:`\sum_{i<j} w_i w_j \lVert x_i - x_j \rVert^p` by the weight of the cluster."""
    if power == 2:
        return metrics.inertia(X, labels, sample_weight=w, n_jobs=1)
    heavy = np.ones(len(X)) if w is None else w
    total, apart = 0.0, Euclidean()
    for cluster in np.unique(labels):
        rows, mine = X[labels == cluster], heavy[labels == cluster]
        for start, stop in strips(len(rows), len(rows)):
            distances = np.empty((stop - start, len(rows)), X.dtype)
            apart.between(rows[start:stop], rows, distances)
            total += float(mine[start:stop] @ (distances.astype(np.float64) ** power @ mine)) / (2 * mine.sum())
    return total


def _first(which: Array, otherwise: int) -> int:
    return int(np.argmax(which)) if which.any() else otherwise


def _first_max(gap: Array, s: Array) -> int:
    return _first(gap[1:] <= gap[:-1], len(gap) - 1)


def _global_max(gap: Array, s: Array) -> int:
    return int(gap.argmax())


def _tibshirani(gap: Array, s: Array) -> int:
    return _first(gap[:-1] >= (gap - s)[1:], len(gap) - 1)


def _within_error_of(highest: Callable[[Array, Array], int], gap: Array, s: Array) -> int:
    top = highest(gap, s)
    return _first(gap[:top] >= gap[top] - s[top], top)


RULES: dict[str, Callable[[Array, Array], int]] = {
    "tibs2001SEmax": _tibshirani,
    "firstSEmax": partial(_within_error_of, _first_max),
    "globalSEmax": partial(_within_error_of, _global_max),
    "firstmax": _first_max,
    "globalmax": _global_max,
}
