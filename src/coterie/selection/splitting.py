"""X-means and G-means: K-means that splits clusters until a criterion is satisfied."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from coterie import interrupts, machine
from coterie.core.arguments import as_rng, whole_number
from coterie.core.arrays import Array, as_dense
from coterie.core.in_memory import check_in_memory
from coterie.core.progress import Callback, Progress, check_callback
from coterie.core.progress_bar import with_verbose
from coterie.core.repr_html import ReprHTMLMixin
from coterie.core.scale import Scale
from coterie.core.search import kind_of
from coterie.data import as_source
from coterie.data.scale_check import divide_by_scale
from coterie.data.summary import summarize
from coterie.engines.local import Serial
from coterie.errors import ScaleError
from coterie.kmeans.kmeans import KMeans
from coterie.selection.normality import MIN_VALUES, anderson_darling, critical_value
from coterie.selection.resampling import between_0_and_1
from coterie.selection.text_table import aligned

AXIS_ROWS = 8192  # maximum number of rows used to find the axis along which a cluster is split
MAX_AXIS_VALUES = 1 << 22  # maximum number of values of these rows
POWER_ITERATIONS = 30  # iterations of the power method for that axis
LOOK_AHEAD = 4  # rounds of X-means without a lower BIC before it stops
BLOCK = 1 << 18  # values projected at a time


@dataclass(frozen=True)
class Split:
    """Test of one cluster by `x_means` or `g_means`, and whether it was split."""

    round: int  # number of the round, from 1
    cluster: int  # label in that round
    weight: float  # total weight of the rows
    statistic: float  # X-means: decrease of BIC by the split; G-means: corrected Anderson-Darling statistic
    threshold: float  # the cluster should be split if the statistic is larger
    p_value: float | None  # G-means only
    split: bool  # X-means also splits all clusters to look ahead, if no statistic is above the threshold


@dataclass(frozen=True, repr=False)
class Splitting(ReprHTMLMixin):
    """Result of `x_means` and `g_means`."""

    n_clusters: int
    centers: Array  # (k, d)
    labels: Array  # (n,)
    inertia: float
    bic: float  # of spherical clusters with one common variance; lower is better
    history: tuple[Split, ...]  # all tests, by round
    model: KMeans  # the fitted estimator, for example for `predict`

    def table(self) -> list[dict[str, Any]]:
        """One row per tested cluster."""
        return [dict(vars(split)) for split in self.history]

    def __str__(self) -> str:
        return f"{aligned(self.table())}\n{self.n_clusters} clusters, inertia {self.inertia:.6g}, BIC {self.bic:.6g}"


class Halves(NamedTuple):
    """A cluster and its split into two by K-means."""

    X: Any  # (m, d)
    w: Array | None
    weight: float
    cost: float  # sum of squares with one center
    model: KMeans  # with two clusters


TestResult = tuple[float, float | None]  # the statistic of a split, and its p-value if there is one


@with_verbose
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
    verbose: int = 0,
) -> Splitting:
    r"""Choose the number of clusters with X-means [1]_: split clusters as long as that lowers BIC.

    The model is spherical clusters with one common variance, and hard assignments. With K clusters of weights
    :math:`n_k`, total weight n, d columns, and inertia W,

    .. math::

       \hat\sigma^2 = \frac{W}{d (n - K)}, \qquad
       \ell = \sum_k n_k \log \frac{n_k}{n} - \frac{nd}{2} \log(2 \pi \hat\sigma^2) - \frac{d (n - K)}{2}, \qquad
       \mathrm{BIC} = -2 \ell + (K (d + 1)) \log n

    (The paper omits d from the variance; then densities in several columns do not integrate to one.) In each round,
    K-means splits the rows of every cluster in two, and the BIC of one and of two clusters is computed from these rows
    alone. Where two clusters have the lower BIC, they replace the cluster. Then K-means runs from all centers. A split
    of a group of many clusters often gains nothing, although four parts would. So if no split lowers BIC, all clusters
    are split, to look ahead. After four rounds without a lower BIC of all rows, the round with the lowest BIC is
    returned.

    Do not use it for clusters that are not spherical, because it splits elongated clusters. For these, use `g_means` or
    `mixture_table`. Standardise columns with different units first.

    Parameters
    ----------
    X : array, sparse matrix, frame, LazyFrame or path of a file (n, d)
        Rows.
    k_min : int, default=1
        Initial number of clusters.
    k_max : int or None, default=None
        Maximum number of clusters. If more clusters should be split, those with the largest gain are. None means no
        limit.
    sample_weight : array (n,) or None, default=None
        Row weights: a row of weight two is the same as that row twice.
    search : {'none', 'auto', 'thorough'}, default='none'
        Search for better centers by the K-means of each round, as in `KMeans`. A search gives better numbers of
        clusters if clusters have very different sizes. It costs some tenths of a second per round.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    random_state : None, int, RandomState or Generator, default=None
        Seed or random generator of the first `k_min` centers, if `k_min` > 1, and of the search. Splits are
        deterministic.
    callback : callable or None, default=None
        Called with a `Progress` after every round. If it returns True, no further round runs.
    verbose : int, default=0
        1 shows a progress bar, 2 prints every step.

    Returns
    -------
    Splitting
        Has `n_clusters`, `centers`, `labels`, `model`, `history` and `table()`.

    Notes
    -----
    The cost of a round is that of K-means with two clusters on all rows, plus K-means from the new centers.

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
    rounds = _Rounds(X, sample_weight, _lowers_bic, 0.0, n_jobs, search, LOOK_AHEAD)
    rounds.run(k_min, k_max, random_state, callback)
    return rounds.result(min(rounds.models, key=rounds.bic))


@with_verbose
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
    verbose: int = 0,
) -> Splitting:
    r"""Choose the number of clusters with G-means [1]_: split clusters as long as their rows do not look Gaussian.

    K-means splits the rows of a cluster in two, and all of them are projected onto the line through the two centers. If
    the cluster is one Gaussian of any shape, the projections are normal. This is tested with the Anderson-Darling test
    with estimated mean and variance. Its statistic is corrected for the number of rows, and its p-value is that of
    D'Agostino and Stephens [2]_. If the p-value is below `significance`, the cluster is split. Then K-means runs from
    all centers. This is repeated until no cluster is split.

    Do not use it for rounded values or columns with few distinct values: these are not normal, and are split without
    end. With very many rows, the test detects every small deviation: set `k_max`. Clusters that are not convex are
    split into convex parts.

    Parameters
    ----------
    X, k_min, k_max, sample_weight, search, n_jobs, random_state, callback, verbose
        As in `x_means`. If more than `k_max` allows should be split, those with the largest statistic are.
    significance : float, default=1e-4
        Significance level: the probability of splitting a Gaussian cluster in one test. It is small because there are
        many tests. The default is that of the paper.

    Returns
    -------
    Splitting
        Has `n_clusters`, `centers`, `labels`, `model`, `history` and `table()`.

    Notes
    -----
    A row of weight m counts as m equal rows in the test. A cluster of weight below 8 is not split, because the test has
    no p-value there. The cost of a round is that of K-means with two clusters on all rows, a sort of the rows, and
    K-means from the new centers.

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
    limit = critical_value(between_0_and_1("significance", significance))
    rounds = _Rounds(X, sample_weight, _is_not_normal, limit, n_jobs, search)
    rounds.run(k_min, k_max, random_state, callback)
    return rounds.result(rounds.models[-1])


def _lowers_bic(halves: Halves) -> TestResult | None:
    d, n = halves.X.shape[1], halves.weight
    if n <= 2:
        return None
    second = float(np.average(halves.model.labels_, weights=halves.w)) * n
    one = spherical_bic(halves.cost, np.array([n]), d)
    two = spherical_bic(max(halves.model.inertia_, 1e-12 * halves.cost), np.array([n - second, second]), d)
    return one - two, None


def _is_not_normal(halves: Halves) -> TestResult | None:
    if halves.weight < MIN_VALUES:
        return None
    first, second = halves.model.cluster_centers_.astype(np.float64)
    along = _projected(halves.X, (first + second) / 2, second - first)
    return anderson_darling(along, halves.w)


def spherical_bic(inertia: float, weights: Array, d: int) -> float:
    """BIC of spherical clusters of these weights (k,) with one common variance; infinite if n <= k."""
    weights = weights[weights > 0]
    n, k = float(weights.sum()), len(weights)
    if n <= k:
        return np.inf
    variance = max(inertia, np.finfo(np.float64).tiny) / (d * (n - k))
    likelihood = weights @ np.log(weights / n) - 0.5 * n * d * np.log(2 * np.pi * variance) - 0.5 * d * (n - k)
    return float(-2 * likelihood + k * (d + 1) * np.log(n))


class _Rounds:
    """Rounds of splits. `models` are the K-means fits before the first round and after each."""

    def __init__(
        self,
        X: Any,
        sample_weight: Any,
        decide: Callable[[Halves], TestResult | None],
        threshold: float,
        n_jobs: int | None,
        search: str,
        ahead: int = 0,
    ):
        source: Any = as_source(X, sample_weight)
        check_in_memory(source, "a test of splits")
        self.original, self.exponent = (source.X, source.w), 0
        try:
            summarize(source, Serial(), rescales=True)
        except ScaleError as error:
            if error.weights:  # the tests compare weights with numbers of rows
                raise
            self.exponent = error.rows
            source = divide_by_scale(source, Scale(self.exponent, 0), Serial())
        self.X, self.w = source.X, source.w
        self.decide, self.threshold, self.search = decide, threshold, search
        self.n_jobs = machine.thread_count(n_jobs)
        self.models: list[KMeans] = []
        self.history: list[Split] = []
        self.look_ahead = ahead

    def run(self, k_min: int, k_max: int | None, random_state: Any, callback: Callback | None) -> None:
        k = whole_number("k_min", k_min, 1)
        kind_of(self.search)
        max_clusters = self.X.shape[0] if k_max is None else whole_number("k_max", k_max, k)
        callback = check_callback(callback)
        seed = int(as_rng(random_state).integers(2**31))
        self.models.append(self._fit(k, seed))
        while True:
            lowest = int(np.argmin([self.bic(model) for model in self.models]))
            if self.look_ahead and lowest < len(self.models) - self.look_ahead:
                break
            centers = self._split_clusters(max_clusters)
            if len(centers) == len(self.models[-1].cluster_centers_):
                break
            self.models.append(self._fit(len(centers), seed, init=centers, n_init=1))
            report = Progress(f"{len(centers)} clusters", len(self.models) - 1, len(self.models))
            if callback is not None and callback(report):
                break

    def result(self, model: KMeans) -> Splitting:
        bic, history = self.bic(model), tuple(self.history)
        if self.exponent:
            bic += 2 * self.exponent * float(np.log(2.0)) * self.X.shape[1] * self._weight
            in_units = model._with_divided_options(Scale(-self.exponent, 0))
            model = in_units._take_fit(model, *self.original, Scale(self.exponent, 0))
        centers = model.cluster_centers_
        return Splitting(len(centers), centers, model.labels_, float(model.inertia_), bic, history, model)

    @property
    def _weight(self) -> float:
        """Total weight of the rows."""
        return float(self.X.shape[0] if self.w is None else self.w.sum())

    def bic(self, model: KMeans) -> float:
        weights = np.bincount(model.labels_, self.w, len(model.cluster_centers_))
        return spherical_bic(float(model.inertia_), weights, self.X.shape[1])

    def _split_clusters(self, max_clusters: int) -> Array:
        """Centers of the last round, with two centers for each cluster that is split."""
        centers, labels = self.models[-1].cluster_centers_, self.models[-1].labels_
        k = len(centers)
        rows = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels, minlength=k))[:-1])
        threads = self.n_jobs if k == 1 else 1
        with machine.one_blas_thread:
            tests = list(
                machine.in_threads(self._test_split, [(cluster_rows, threads) for cluster_rows in rows], self.n_jobs)
            )
        gains = np.array([-np.inf if test is None else test[1] for test in tests])
        candidates = np.flatnonzero(gains > self.threshold)
        if len(candidates) == 0 and self.look_ahead:
            candidates = np.flatnonzero(gains > -np.inf)
        chosen = set(candidates[np.argsort(-gains[candidates], kind="stable")][: max_clusters - k].tolist())
        centers_after = []
        for j, test in enumerate(tests):
            centers_after.append(centers[j : j + 1])
            if test is not None:
                halves, statistic, p_value = test
                position = len(self.models), j, halves.weight
                self.history.append(Split(*position, statistic, self.threshold, p_value, j in chosen))
                if j in chosen:
                    centers_after[-1] = halves.model.cluster_centers_
        return np.concatenate(centers_after)

    def _test_split(self, rows: Array, threads: int) -> tuple[Halves, float, float | None] | None:
        """Split a cluster in two and test the split; None if it cannot be split."""
        w = None if self.w is None else self.w[rows]
        if w is not None and not w.all():
            rows, w = rows[w > 0], w[w > 0]
        if len(rows) < 2:
            return None
        X = self.X[rows]
        one = KMeans(1, n_jobs=threads, random_state=0).fit(X, sample_weight=w)
        if one.inertia_ == 0:
            return None
        start = _split_start(X, w, one.cluster_centers_[0])
        two = KMeans(2, init=start, n_init=1, n_jobs=threads, random_state=0).fit(X, sample_weight=w)
        halves = Halves(X, w, float(len(rows) if w is None else w.sum()), float(one.inertia_), two)
        result = self.decide(halves)
        return None if result is None else (halves, *result)

    def _fit(self, k: int, seed: int, **start: Any) -> KMeans:
        search = self.search if k > 2 else "none"
        model = KMeans(k, search=search, n_jobs=self.n_jobs, random_state=seed, **start)
        with interrupts.outermost():
            return model.fit(self.X, sample_weight=self.w)


def _split_start(X: Any, w: Array | None, center: Array) -> Any:
    """Two initial centers along the longest axis of the rows: the means of the two halves of a Gaussian."""
    n, d = X.shape
    rows = np.linspace(0, n - 1, min(n, AXIS_ROWS, max(2, MAX_AXIS_VALUES // d))).astype(np.int64)
    sample = as_dense(X[rows])
    centered = sample.astype(np.float64) - center
    size = np.abs(centered).max()
    if size == 0:  # the sample contains only rows equal to the center
        return "farthest"
    centered /= size
    share = np.ones(len(centered)) if w is None else w[rows]
    axis = centered[np.argmax((centered**2).sum(axis=1))]
    for _ in range(POWER_ITERATIONS):
        axis = (share * (centered @ axis)) @ centered
        axis /= np.sqrt(axis @ axis)
    variance = share @ (centered @ axis) ** 2 / share.sum()
    step = size * np.sqrt(2 * variance / np.pi) * axis
    return np.stack([center - step, center + step])


def _projected(X: Any, origin: Array, axis: Array) -> Array:
    """Projection of every row onto the axis, relative to the origin, in units of the length of the axis (n,)."""
    axis = axis / (axis @ axis)
    if sparse.issparse(X):
        along: Array = X @ axis - origin @ axis
        return along
    rows = max(1, BLOCK // X.shape[1])
    blocks = (X[i : i + rows].astype(np.float64) - origin for i in range(0, X.shape[0], rows))
    return np.concatenate([block @ axis for block in blocks])
