"""K-means that finds its number of clusters: each is split for as long as two explain its rows better than one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from coterie import interrupts, machine
from coterie.core.arguments import as_rng, one_of, whole_number
from coterie.core.errors import InputError, ParameterError
from coterie.core.progress import Callback, Progress, check_callback
from coterie.data import as_source
from coterie.data.summary import summarize
from coterie.engines.local import Serial
from coterie.kmeans.kmeans import KMeans
from coterie.selection.normality import LEAST, anderson_darling, critical_value
from coterie.selection.text_table import aligned

Array = np.ndarray[Any, Any]

SAMPLE = 8192  # rows that say along which axis a cluster is split
SAMPLE_VALUES = 1 << 22  # numbers that these rows have at most
POWER = 30  # steps to that axis
AHEAD = 4  # rounds in which all clusters are split although none asks for it
BLOCK = 1 << 18  # numbers that are projected at a time


@dataclass(frozen=True)
class Split:
    """One cluster, and whether it became two."""

    round: int  # of splits, from 1
    cluster: int  # its label in that round
    weight: float  # of its rows
    statistic: float  # of X-means by how much two clusters lower BIC; of G-means the corrected A squared
    threshold: float  # above which the statistic speaks for two
    p_value: float | None  # of G-means
    split: bool  # of X-means also where no cluster asked for it, to look ahead


@dataclass(frozen=True)
class Splitting:
    """What `x_means` and `g_means` found."""

    n_clusters: int
    centers: Array  # (k, d)
    labels: Array  # (n,)
    inertia: float
    bic: float  # of all clusters as balls of one variance: lower is better
    history: tuple[Split, ...]  # every cluster that was looked at, round by round
    model: KMeans  # fitted, for `predict` and the like

    def table(self) -> list[dict[str, Any]]:
        """A row for each cluster that was looked at."""
        return [dict(vars(split)) for split in self.history]

    def __str__(self) -> str:
        return f"{aligned(self.table())}\n{self.n_clusters} clusters, inertia {self.inertia:.6g}, BIC {self.bic:.6g}"


class Halves(NamedTuple):
    """A cluster and its two halves by K-means."""

    X: Any  # (m, d)
    w: Array | None
    weight: float
    cost: float  # of one center
    model: KMeans  # of two


class Verdict(NamedTuple):
    statistic: float
    p_value: float | None = None


def x_means(
    X: Any,
    k_min: int = 1,
    k_max: int | None = None,
    *,
    sample_weight: Any = None,
    search: str = "none",
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
) -> Splitting:
    r"""X-means [1]_: every cluster becomes two for as long as that lowers BIC.

    Clusters are taken for balls of one variance, each row for one of its own cluster. With K clusters of weights
    :math:`n_k`, n together, in d columns, and W the inertia,

    .. math::

       \hat\sigma^2 = \frac{W}{d (n - K)}, \qquad
       \ell = \sum_k n_k \log \frac{n_k}{n} - \frac{nd}{2} \log(2 \pi \hat\sigma^2) - \frac{d (n - K)}{2}, \qquad
       \mathrm{BIC} = -2 \ell + (K (d + 1)) \log n

    (The paper leaves d out of the variance: then densities in several columns do not integrate to one.) In a round the
    rows of every cluster are cut in two by K-means, and BIC of one and of two clusters is taken of these rows alone;
    where two have the lower, they take the place of the one, and K-means goes on from all centers. A cut through many
    clusters often gains nothing though four pieces would; so where no cluster asks for a split, all are split, to look
    ahead. After four rounds that did not lower BIC of all rows, the round of the lowest is the result.

    Do not use it for clusters that are not round: long ones are cut into balls. Standardise columns of different units
    first; use `g_means` or `mixture_table` for long clusters.

    Parameters
    ----------
    X : array, sparse matrix, frame, LazyFrame or path of a file (n, d)
        The rows.
    k_min : int, default=1
        Clusters to begin with.
    k_max : int, optional
        The most clusters; where more ask to be split, those of the largest gain are. By default there is no limit.
    sample_weight : array (n,), optional
        How many rows each row stands for: a row of weight two is that row twice.
    search : {'none', 'fast', 'global'}, default='none'
        How K-means of each round, from the centers there are, looks for better ones: as in `KMeans`. A search finds
        numbers nearer to the truth where clusters are of very different sizes, at some tenths of a second a round.
    n_jobs : int or None, default=None
        Threads; None is all cores. The result does not depend on it.
    random_state : None, int, RandomState or Generator
        Of the first `k_min` centers, if they are more than one, and of the search: splits do not draw.
    callback : callable or None, default=None
        Called after every round with a `Progress`; a true return ends the rounds.

    Returns
    -------
    Splitting

    Notes
    -----
    A round costs two clusters of K-means on all rows, and a K-means from given centers.

    References
    ----------
    .. [1] D. Pelleg & A. Moore (2000), X-means: extending K-means with efficient estimation of the number of clusters,
       ICML, 727-734.

    Examples
    --------
    >>> from coterie.datasets import make_blobs
    >>> from coterie.selection import x_means
    >>> X, _ = make_blobs(500, 2, centers=5, cluster_std=0.3, random_state=0)
    >>> x_means(X).n_clusters
    5
    """
    rounds = _Rounds(X, sample_weight, _lowers_bic, 0.0, n_jobs, search, AHEAD)
    rounds.go(k_min, k_max, random_state, callback)
    return rounds.result(min(rounds.models, key=rounds.bic))


def g_means(
    X: Any,
    k_min: int = 1,
    k_max: int | None = None,
    *,
    significance: float = 1e-4,
    sample_weight: Any = None,
    search: str = "none",
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
) -> Splitting:
    r"""G-means [1]_: every cluster becomes two for as long as its rows do not look Gaussian.

    The rows of a cluster are cut in two by K-means, and all of them projected onto the line through the two centers:
    if the cluster is one Gaussian, of whatever shape, they are normal there. The test is that of Anderson and Darling
    with mean and variance estimated, its statistic corrected for the number of rows, and its p-value by D'Agostino and
    Stephens [2]_. Below `significance` the cluster is split; then K-means goes on from all centers, until a round
    splits none.

    Do not use it for values that are rounded or take few values, which are not normal and are split without end, nor
    for very many rows, of which the test sees every small deviation: give `k_max`. Clusters that are not convex are cut
    into pieces that are.

    Parameters
    ----------
    X, k_min, k_max, sample_weight, search, n_jobs, random_state, callback
        As in `x_means`; of clusters that ask to be split, those of the largest statistic go first.
    significance : float, default=1e-4
        The probability of splitting a Gaussian cluster, in one test: small, for there are many tests. The paper's too.

    Returns
    -------
    Splitting

    Notes
    -----
    A row of weight m counts as m equal rows in the test. A cluster of a weight below 8 is not split, for there the test
    knows no p-value. A round costs two clusters of K-means on all rows, a sort of them, and a K-means from given
    centers.

    References
    ----------
    .. [1] G. Hamerly & C. Elkan (2003), Learning the k in k-means, NIPS 16, 281-288.
    .. [2] R. B. D'Agostino & M. A. Stephens (1986), Goodness-of-fit techniques, Dekker, table 4.9.

    Examples
    --------
    >>> from coterie.datasets import make_blobs
    >>> from coterie.selection import g_means
    >>> X, _ = make_blobs(500, 2, centers=5, cluster_std=0.3, random_state=0)
    >>> g_means(X).n_clusters
    5
    """
    if (
        isinstance(significance, bool | np.bool_)
        or not isinstance(significance, int | float | np.number)
        or not 0 < significance < 1
    ):
        raise ParameterError(f"significance must be a number between 0 and 1; got {significance!r}")
    rounds = _Rounds(X, sample_weight, _is_not_normal, critical_value(significance), n_jobs, search)
    rounds.go(k_min, k_max, random_state, callback)
    return rounds.result(rounds.models[-1])


def _lowers_bic(halves: Halves) -> Verdict | None:
    d, n = halves.X.shape[1], halves.weight
    if n <= 2:
        return None
    second = float(np.average(halves.model.labels_, weights=halves.w)) * n
    one = spherical_bic(halves.cost, np.array([n]), d)
    two = spherical_bic(max(halves.model.inertia_, 1e-12 * halves.cost), np.array([n - second, second]), d)
    return Verdict(one - two)


def _is_not_normal(halves: Halves) -> Verdict | None:
    if halves.weight < LEAST:
        return None
    first, second = halves.model.cluster_centers_.astype(np.float64)
    along = _projected(halves.X, (first + second) / 2, second - first)
    return Verdict(*anderson_darling(along, halves.w))


def spherical_bic(inertia: float, weights: Array, d: int) -> float:
    """BIC of clusters of these weights (k,) as balls of one variance, each row in its own; infinite if n is k."""
    weights = weights[weights > 0]
    n, k = float(weights.sum()), len(weights)
    if n <= k:
        return np.inf
    variance = max(inertia, np.finfo(np.float64).tiny) / (d * (n - k))
    likelihood = weights @ np.log(weights / n) - 0.5 * n * d * np.log(2 * np.pi * variance) - 0.5 * d * (n - k)
    return float(-2 * likelihood + k * (d + 1) * np.log(n))


class _Rounds:
    """K-means of ever more clusters: those before the first round, and after each."""

    def __init__(
        self,
        X: Any,
        sample_weight: Any,
        decide: Callable[[Halves], Verdict | None],
        threshold: float,
        n_jobs: int | None,
        search: str,
        ahead: int = 0,
    ):
        source = as_source(X, sample_weight)
        if source.engine == "dask":
            raise InputError("X is a Dask array: splits need rows in memory; pass X.compute(), or a sample of the rows")
        self.X, self.w = source.X, source.w  # type: ignore[attr-defined]
        self.decide, self.threshold, self.search = decide, threshold, search
        self.n_jobs = machine.thread_count(n_jobs)
        summarize(source, Serial())  # rows and weights whose sums of squares leave the range of numbers are an error
        self.models: list[KMeans] = []
        self.history: list[Split] = []
        self.ahead = ahead

    def go(self, k_min: int, k_max: int | None, random_state: Any, callback: Callback | None) -> None:
        k = whole_number("k_min", k_min, 1)
        one_of("search", self.search, ("none", "fast", "global"))
        most = self.X.shape[0] if k_max is None else whole_number("k_max", k_max, k)
        watch = check_callback(callback)
        seed = int(as_rng(random_state).integers(2**31))
        self.models.append(self._fit(k, seed))
        while self._hopeful() and len(centers := self._grown(most)) > len(self.models[-1].cluster_centers_):
            self.models.append(self._fit(len(centers), seed, init=centers, n_init=1))
            report = Progress(f"{len(centers)} clusters", len(self.models) - 1, len(self.models))
            if watch is not None and watch(report):
                break

    def _hopeful(self) -> bool:
        """Whether one of the last rounds, where rounds look ahead, has the lowest BIC."""
        lowest = int(np.argmin([self.bic(model) for model in self.models]))
        return not self.ahead or lowest >= len(self.models) - self.ahead

    def result(self, model: KMeans) -> Splitting:
        return Splitting(
            len(model.cluster_centers_),
            model.cluster_centers_,
            model.labels_,
            float(model.inertia_),
            self.bic(model),
            tuple(self.history),
            model,
        )

    def bic(self, model: KMeans) -> float:
        weights = np.bincount(model.labels_, self.w, len(model.cluster_centers_))
        return spherical_bic(float(model.inertia_), weights, self.X.shape[1])

    def _grown(self, most: int) -> Array:
        """The centers of the last round, with two in place of each that is split."""
        centers, labels = self.models[-1].cluster_centers_, self.models[-1].labels_
        k = len(centers)
        rows = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels, minlength=k))[:-1])
        threads = self.n_jobs if k == 1 else 1
        with machine.one_blas_thread:
            found = list(machine.in_threads(self._look, [(mine, threads) for mine in rows], self.n_jobs))
        gains = np.array([-np.inf if seen is None else seen[1].statistic for seen in found])
        asking = np.flatnonzero(gains > self.threshold)
        if len(asking) == 0 and self.ahead:
            asking = np.flatnonzero(gains > -np.inf)
        chosen = set(asking[np.argsort(-gains[asking], kind="stable")][: most - k].tolist())
        grown = []
        for j, seen in enumerate(found):
            grown.append(centers[j : j + 1])
            if seen is not None:
                halves, verdict = seen
                at = len(self.models), j, halves.weight
                self.history.append(Split(*at, verdict.statistic, self.threshold, verdict.p_value, j in chosen))
                if j in chosen:
                    grown[-1] = halves.model.cluster_centers_
        return np.concatenate(grown)

    def _look(self, rows: Array, threads: int) -> tuple[Halves, Verdict] | None:
        """A cluster cut in two, and what that says; None where there is nothing to cut."""
        w = None if self.w is None else self.w[rows]
        if w is not None and not w.all():
            rows, w = rows[w > 0], w[w > 0]
        if len(rows) < 2:
            return None
        X = self.X[rows]
        one = KMeans(1, n_jobs=threads, random_state=0).fit(X, sample_weight=w)
        if one.inertia_ == 0:
            return None
        start = _either_side(X, w, one.cluster_centers_[0])
        two = KMeans(2, init=start, n_init=1, n_jobs=threads, random_state=0).fit(X, sample_weight=w)
        halves = Halves(X, w, float(len(rows) if w is None else w.sum()), float(one.inertia_), two)
        verdict = self.decide(halves)
        return None if verdict is None else (halves, verdict)

    def _fit(self, k: int, seed: int, **start: Any) -> KMeans:
        search = self.search if k > 2 else "none"
        model = KMeans(k, search=search, n_jobs=self.n_jobs, random_state=seed, **start)
        with interrupts.outermost():
            return model.fit(self.X, sample_weight=self.w)


def _either_side(X: Any, w: Array | None, center: Array) -> Any:
    """Two points beside the center, along the longest axis of the rows: the means of the halves of a Gaussian."""
    n, d = X.shape
    rows = np.linspace(0, n - 1, min(n, SAMPLE, max(2, SAMPLE_VALUES // d))).astype(np.int64)
    few = X[rows].toarray() if sparse.issparse(X) else X[rows]
    away = few.astype(np.float64) - center
    size = np.abs(away).max()
    if size == 0:  # rows beside the center are so few that the sample has none of them
        return "farthest"
    away /= size
    share = np.ones(len(away)) if w is None else w[rows]
    axis = away[np.argmax((away**2).sum(axis=1))]
    for _ in range(POWER):
        axis = (share * (away @ axis)) @ away
        axis /= np.sqrt(axis @ axis)
    variance = share @ (away @ axis) ** 2 / share.sum()
    step = size * np.sqrt(2 * variance / np.pi) * axis
    return np.stack([center - step, center + step])


def _projected(X: Any, origin: Array, axis: Array) -> Array:
    """How far along the axis, in units of its length, every row is from the origin (n,)."""
    axis = axis / (axis @ axis)
    if sparse.issparse(X):
        along: Array = X @ axis - origin @ axis
        return along
    rows = max(1, BLOCK // X.shape[1])
    blocks = (X[i : i + rows].astype(np.float64) - origin for i in range(0, X.shape[0], rows))
    return np.concatenate([block @ axis for block in blocks])
