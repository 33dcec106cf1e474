"""The gap statistic: within-cluster dispersion compared with that of reference data without clusters."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from coterie import machine, metrics
from coterie.core.arguments import as_rng, in_order, not_negative, one_of, whole_number
from coterie.core.arrays import Array, is_sparse
from coterie.core.in_memory import check_in_memory
from coterie.core.progress import Callback, check_callback, reported
from coterie.core.progress_bar import with_verbose
from coterie.core.repr_html import ReprHTMLMixin
from coterie.core.scale import UNIT, Scale, times_power
from coterie.data import as_source
from coterie.data.scale_check import divide_by_scale
from coterie.data.summary import column_names, summarize
from coterie.data.tensors import is_float32_table
from coterie.distances.euclidean import Euclidean
from coterie.distances.pairwise import strips
from coterie.engines.local import Serial
from coterie.errors import InputError, ParameterError, ScaleError
from coterie.kmeans.fits_together import Options, can_fit_tables, fit_tables
from coterie.selection.kmeans_path import CANDIDATES, HOPE, too_few_distinct_rows
from coterie.selection.references import Box, box_about
from coterie.selection.sweep import as_ks, sweep
from coterie.selection.text_table import aligned, as_rows

REFERENCES = ("uniform", "pca")  # how reference data are drawn: in a box along the columns, or along the principal axes
TOL = 1e-3  # a fit stops when the squared movement of all centers is below TOL times the mean column variance
MAX_ITER = 20
ROUNDING = 1e-26  # sums of squares below this share of the total variance are rounding errors, and set to 0
MIN_REFERENCES = 2  # a standard deviation needs two values


@dataclass(frozen=True, repr=False)
class Gap(ReprHTMLMixin):
    """Result of `gap_statistic`."""

    ks: Array  # (m,)
    log_w: Array  # (m,) log W of the data
    reference_log_w: Array = field(repr=False)  # (B, m) log W of each reference data set
    rule: str
    se_factor: float
    reference: str
    power: float

    @property
    def expected(self) -> Array:
        """Mean of log W over the reference data sets (m,)."""
        mean: Array = self.reference_log_w.mean(axis=0)
        return mean

    @property
    def gap(self) -> Array:
        """Gap statistic: `expected` minus `log_w` (m,)."""
        return self.expected - self.log_w

    @property
    def se(self) -> Array:
        """Standard errors (m,): standard deviations over the B references, times sqrt(1 + 1 / B)."""
        deviation: Array = self.reference_log_w.std(axis=0, ddof=1)
        return deviation * np.sqrt(1 + 1 / len(self.reference_log_w))

    @property
    def recommended(self) -> int:
        """Number of clusters by `rule`; 1 means that no clusters were found."""
        return self._by(self.rule)

    def by_rule(self) -> dict[str, int]:
        """Number of clusters by each rule."""
        return {rule: self._by(rule) for rule in RULES}

    def _by(self, rule: str) -> int:
        return int(self.ks[RULES[rule](self.gap, self.se_factor * self.se)])

    def table(self) -> list[dict[str, Any]]:
        """One row per K: log W, its expected value, the gap and its standard error."""
        return as_rows(
            {
                "k": self.ks, "log_w": self.log_w, "expected": self.expected, "gap": self.gap, "se": self.se,
                "recommended": self.ks == self.recommended,
            }
        )  # fmt: skip

    def __str__(self) -> str:
        return aligned(self.table())


@in_order("gap_statistic(X, ks, estimator=None)")
@with_verbose
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
    verbose: int = 0,
) -> Gap:
    r"""Compute the gap statistic [1]_ and the number of clusters it recommends.

    .. math:: \mathrm{Gap}(K) = \mathrm{E}^*[\log W_K] - \log W_K, \qquad
        W_K = \sum_r \frac{1}{2 n_r} \sum_{i, j \in C_r} \lVert x_i - x_j \rVert^p

    The expectation is estimated from `n_references` data sets of the same size, uniform in a box around the data. For
    p = 2, W is the sum of squared distances to the cluster means: the inertia. R's `clusGap` uses p = 1 by default. Its
    W is half of this one, which does not change the gap.

    The gap statistic is one of the few criteria that can choose K = 1. Do not use it for clusters that are not
    spherical, or for nested clusters: it chooses the first K that is good enough. A box along the columns is a poor
    reference for correlated columns: use reference='pca' for these.

    Parameters
    ----------
    X : array, frame, LazyFrame or path of a file (n, d)
        Dense rows.
    ks : iterable of int, default=range(1, 11)
        Numbers of clusters. Rules that compare K with K + 1 use the next larger value of `ks`.
    n_references : int, default=50
        Number of reference data sets, at least 2.
    reference : {'uniform', 'pca'}, default='uniform'
        Sides of the box: along the columns, or along the principal axes of the data.
    rule : {'tibs2001SEmax', 'firstSEmax', 'globalSEmax', 'firstmax', 'globalmax'}, default='tibs2001SEmax'
        Rule that chooses K, as in `clusGap`. Here s is the standard error times `se_factor`. 'tibs2001SEmax' is the
        rule of the paper: the first K with Gap(K) >= Gap(K + 1) - s(K + 1). 'firstmax' is the first K whose gap is not
        smaller than the next one, 'globalmax' the K of the largest gap. 'firstSEmax' and 'globalSEmax' are the first K
        whose gap is within s of that maximum. If no K satisfies the rule, the last of `ks` is returned; use
        larger `ks`.
    se_factor : float, default=1.0
        Factor of the standard errors.
    power : float, default=2.0
        Exponent p of W. Values other than 2 need the distances between all pairs of rows of a cluster.
    sample_weight : array (n,) or None, default=None
        Row weights: a row of weight two is the same as that row twice. The rows of a reference have the same weights.
    estimator : estimator of coterie or None, default=None
        Estimator to fit with `sweep`; None uses K-means. W always uses Euclidean distances.
    n_jobs : int or None, default=None
        Number of threads, each of which processes one reference at a time; None uses all cores. The result does not
        depend on it.
    random_state : None, int, RandomState or Generator, default=None
        Seed or random generator.
    callback : callable or None, default=None
        Called with a `Progress` after the data and after every reference. If it returns True, the computation stops
        and uses the references so far, but at least two.
    verbose : int, default=0
        1 shows a progress bar, 2 prints every step.

    Returns
    -------
    Gap
        Has `recommended`, `gap`, `se`, `by_rule()` and `table()`.

    Notes
    -----
    Data and references are clustered in exactly the same way. The centers for K and one additional center are one
    start for K + 1, and the first K + 1 centers of a k-means++ sequence are another (see `sweep`). Each fit has at most
    20 iterations and a coarse tolerance. Stopping early makes W larger for both the data and the references. A
    different effort for one of them would bias the gap. Standard errors use n_references - 1 degrees of freedom, as
    in R.

    The cost is about 3 n d K operations per iteration, with about 30 iterations for each K and data set. References are
    generated in the thread that uses them: each thread holds one, and two copies of it in float64. float32 rows have
    float32 references.

    If `X` is a float32 tensor on a GPU with up to about a million rows, the data and all references are fitted there at
    once for all K, each from four k-means++ starts. `estimator`, `sample_weight` and other values of `power` use the
    CPU.

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
    k_values, callback = as_ks(ks), check_callback(callback)
    whole_number("n_references", n_references, MIN_REFERENCES)
    one_of("reference", reference, REFERENCES)
    one_of("rule", rule, tuple(RULES))
    se_factor = not_negative("se_factor", se_factor)
    power = not_negative("power", power)
    if power == 0:
        raise ParameterError("power=0 is not supported: use a number above 0, such as 2")
    rows, w, scale = divided_rows(X, sample_weight)
    if len(rows) < k_values[-1]:
        raise InputError(
            f"K = {k_values[-1]} but X has n_samples={len(rows)} rows of positive weight: use ks <= {len(rows)}"
        )
    within = partial(_by_sweep, estimator, scale) if estimator is not None else _by_kmeans
    boxes = [None, *[box_about(rows, w, reference)] * n_references]
    generators = as_rng(random_state).spawn(1 + n_references)
    names = ["data", *(f"reference {b}" for b in range(1, 1 + n_references))]
    stop = callback and (lambda step: bool(callback(step)) and step.done > MIN_REFERENCES)
    is_plain = estimator is None and power == 2 and w is None
    if is_plain and is_float32_table(X) and can_fit_tables(len(rows), rows.shape[1], k_values[-1]):
        results: Any = map(_log_of, [k_values] * len(boxes), _by_tables(rows, X.device, boxes, k_values, generators))
        log_w = np.array(list(reported(results, names, stop)))
    else:
        with machine.one_blas_thread:
            calls = [(rows, w, box, k_values, power, within, rng) for box, rng in zip(boxes, generators, strict=True)]
            log_w = np.array(list(reported(machine.in_threads(_log_within, calls, n_jobs), names, stop)))
    log_w += (power * scale.rows + scale.weights) * np.log(2.0)  # in the units of X and sample_weight
    return Gap(np.array(k_values), log_w[0], log_w[1:], rule, se_factor, reference, power)


def positive_weight_rows(
    X: Any, sample_weight: Any, allow_missing: bool = False
) -> tuple[Array, Array | None, Scale, list[str]]:
    """Dense rows with a positive weight, their weights (None: none), the scale of both, and names of columns."""
    source: Any = as_source(X, sample_weight)
    check_in_memory(source, "a comparison with reference data")
    if is_sparse(source.X):
        raise InputError("X is sparse, but reference data are dense: pass a dense array, such as X.toarray()")
    scale = UNIT
    try:
        summarize(source, Serial(), allow_missing, rescales=True)
    except ScaleError as error:
        scale = Scale(error.rows, error.weights)
        summarize(divide_by_scale(source, scale, Serial()), Serial(), allow_missing, rescales=True)
    names = column_names(source)
    if source.w is None:
        return source.X, None, scale, names
    positive = np.flatnonzero(source.w)
    return source.X[positive], source.w[positive], scale, names


def divided_rows(X: Any, sample_weight: Any) -> tuple[Array, Array | None, Scale]:
    """The same without names, with rows and weights divided by their scale."""
    rows, w, scale, _ = positive_weight_rows(X, sample_weight)
    if scale.rows:
        rows = times_power(-scale.rows, rows)
    return rows, times_power(-scale.weights, w) if scale.weights else w, scale


def _log_within(
    rows: Array, w: Array | None, box: Box | None, ks: list[int], power: float, within: Any, rng: np.random.Generator
) -> Array:
    """log W for every K: of the data if `box` is None, otherwise of a new reference data set."""
    X = rows if box is None else box.draw(len(rows), rows.dtype, rng)
    return _log_of(ks, within(X, w, ks, power, rng))


def _by_tables(
    rows: Array, device: Any, boxes: list[Box | None], ks: list[int], generators: list[np.random.Generator]
) -> Array:
    """W of the data and of all references for every K (references + 1, m), fitted at once on a GPU."""
    from coterie.kernels.cuda import as_tensor

    tables = [
        rows if box is None else box.draw(len(rows), rows.dtype, rng)
        for box, rng in zip(boxes, generators, strict=True)
    ]
    children = [child for rng in generators for child in rng.spawn(len(ks))]
    which, numbers = np.repeat(np.arange(len(tables)), len(ks)), np.tile(ks, len(tables))
    options = Options(tol=TOL, max_iter=MAX_ITER)
    fits = fit_tables(as_tensor(np.stack(tables), device), which, numbers, children, options)
    return fits.inertia.reshape(len(tables), len(ks))


def _log_of(ks: list[int], values: Array) -> Array:
    """log W for every K."""
    if not (values > 0).all():
        k = ks[int(np.argmin(values > 0))]
        raise InputError(
            f"log W is infinite for K = {k}, because all rows of each cluster are equal: use ks below the number of "
            "distinct rows of X"
        )
    return np.log(values)


class PathClusters(NamedTuple):
    """Clusters of one data set for many K."""

    squares: Array  # (m,) within-cluster sums of squares
    clusters: Array  # (m, n) labels for each K


def kmeans_path(X: Array, w: Array | None, ks: list[int], rng: np.random.Generator) -> PathClusters:
    """K-means for all K in one compiled call, the same for data and references.

    Fitting estimators would take longer, because of their input checks. `ks` must ascend and all weights be positive.
    """
    from coterie.kernels.cpu.center_runs import as_table
    from coterie.kernels.cpu.small_kmeans_path import kmeans_path as run_path
    from coterie.kernels.cpu.small_kmeans_path import new_workspace

    weight = np.ones(len(X)) if w is None else w
    rows = X - np.average(X, axis=0, weights=weight)  # float64, also for float32 data
    variance = np.average(rows**2, axis=0, weights=weight)
    size = float(np.sqrt(variance.sum()))
    unit = 2.0 ** np.ceil(np.log2(size)) if size > 0 else 1.0
    rows /= unit
    (n, d), greedy = X.shape, 2 + int(np.log(ks[-1]))
    u = rng.random(ks[-1] * (greedy + 2 * CANDIDATES))
    work = new_workspace(n, d, len(ks), ks[-1])
    tol = TOL * float((variance / unit**2).mean())
    table = as_table(rows, weight)
    if not run_path(table, np.array(ks), u, greedy, CANDIDATES, HOPE, tol, MAX_ITER, work):
        raise too_few_distinct_rows(len(np.unique(X, axis=0)))
    return PathClusters(np.where(work.costs > ROUNDING * weight.sum(), work.costs, 0.0) * unit**2, work.labels)


def _by_kmeans(X: Array, w: Array | None, ks: list[int], power: float, rng: np.random.Generator) -> Array:
    path = kmeans_path(X, w, ks, rng)
    return path.squares if power == 2 else np.array([dispersion(X, labels, w, power) for labels in path.clusters])


def _by_sweep(
    estimator: Any, scale: Scale, X: Array, w: Array | None, ks: list[int], power: float, rng: np.random.Generator
) -> Array:
    """W for the labels of any estimator, fitted in one thread; its options are in the units before the division."""
    options = {"random_state": int(rng.integers(2**31)), "n_jobs": 1, "engine": "serial"}
    parameters = estimator.get_params()
    model = clone(estimator).set_params(**{name: value for name, value in options.items() if name in parameters})
    rows = times_power(scale.rows, X) if scale.rows else X
    weights = times_power(scale.weights, w) if scale.weights else w
    result = sweep(model, rows, ks, sample_weight=weights)
    return np.array([dispersion(X, labels, w, power) for labels in result.labels])


def dispersion(X: Array, labels: Array, w: Array | None, power: float) -> float:
    r"""W: sum over clusters of :math:`\sum_{i<j} w_i w_j \lVert x_i - x_j \rVert^p` divided by the cluster weight."""
    if power == 2:
        return metrics.inertia(X, labels, sample_weight=w, n_jobs=1)
    weights = np.ones(len(X)) if w is None else w
    total, metric = 0.0, Euclidean()
    for cluster in np.unique(labels):
        rows, cluster_weights = X[labels == cluster], weights[labels == cluster]
        for start, stop in strips(len(rows), len(rows)):
            distances = np.empty((stop - start, len(rows)), X.dtype)
            metric.between(rows[start:stop], rows, distances)
            strip_sum = cluster_weights[start:stop] @ (distances.astype(np.float64) ** power @ cluster_weights)
            total += float(strip_sum) / (2 * cluster_weights.sum())
    return total


def _first(condition: Array, default: int) -> int:
    return int(np.argmax(condition)) if condition.any() else default


def _first_max(gap: Array, s: Array) -> int:
    return _first(gap[1:] <= gap[:-1], len(gap) - 1)


def _global_max(gap: Array, s: Array) -> int:
    return int(gap.argmax())


def _within_error_of(highest: Callable[[Array, Array], int], gap: Array, s: Array) -> int:
    top = highest(gap, s)
    return _first(gap[:top] >= gap[top] - s[top], top)


RULES: dict[str, Callable[[Array, Array], int]] = {
    "tibs2001SEmax": lambda gap, s: _first(gap[:-1] >= (gap - s)[1:], len(gap) - 1),
    "firstSEmax": partial(_within_error_of, _first_max),
    "globalSEmax": partial(_within_error_of, _global_max),
    "firstmax": _first_max,
    "globalmax": _global_max,
}
