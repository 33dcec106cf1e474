"""Stability of clusters under resampling."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import interrupts, machine
from coterie.core.arguments import as_rng, in_order, one_of, whole_number
from coterie.core.arrays import Array
from coterie.core.progress import Callback, check_callback, reported
from coterie.core.progress_bar import with_verbose
from coterie.core.protocols import can_predict
from coterie.core.repr_html import ReprHTMLMixin
from coterie.data.row_sample import random_rows
from coterie.data.tensors import is_float32_table
from coterie.errors import InputError, ParameterError
from coterie.kmeans.fits_together import Options, can_fit_tables, fit_tables
from coterie.kmeans.kmeans import KMeans
from coterie.selection import agreement
from coterie.selection.gap import divided_rows, kmeans_path
from coterie.selection.resample_fits import fit_samples
from coterie.selection.resampling import (
    RESAMPLINGS,
    SIZE_OPTION,
    Resample,
    ResamplingData,
    between_0_and_1,
    varied_option,
)
from coterie.selection.sweep import as_ks, position_of
from coterie.selection.text_table import aligned, as_rows
from coterie.selection.valleys import Valleys, count_apart, valleys_of

DEVICE_STARTS = 10  # of each fit on a GPU, at least: so many are as good as starts from other results
MAX_ROWS = 10_000  # labels are compared on at most this many rows
THRESHOLDS = {"adjusted_rand": 0.75, "jaccard": 0.75, "prediction_strength": 0.8}


@dataclass(frozen=True, repr=False)
class Stability(ReprHTMLMixin):
    """Result of `stability`; larger values are more stable, and 1 is the maximum."""

    ks: Array  # (m,) numbers of clusters
    mean: Array  # (m,) mean of the measure over the resamples
    standard_error: Array  # (m,) of the mean
    best: int | None  # largest K of the most stable ones; None if none is stable
    measure: str
    resampling: str
    threshold: float  # minimum mean of a stable K
    values: Array  # (m, resamples) measure of each resample
    clusters: tuple[Array, ...]  # (k,) for each K: stability of each cluster of the fit to all rows
    labels: tuple[Array, ...]  # (rows,) for each K: labels of the fit to all rows
    divisions: tuple[Array, ...]  # (resamples, rows) for each K: labels of each resample, -1 for no cluster
    rows: Array  # (rows,) indices of the compared rows: all, or a sample of many

    def consensus(self, k: int, rows: int | None = None) -> Array:
        """Consensus matrix (m, m): share of the resamples that put two rows in the same cluster [1]_.

        Only resamples where both rows have a cluster are counted. The matrix is of the first `rows` of `self.rows`, by
        default of all of them.

        .. [1] S. Monti, P. Tamayo, J. Mesirov, T. Golub (2003), Consensus clustering, Machine Learning 52, 91-118.
           https://doi.org/10.1023/A:1023949509487
        """
        n_rows = len(self.rows) if rows is None else whole_number("rows", rows, 1)
        return agreement.consensus_matrix(self.divisions[position_of(k, self.ks, "evaluated")][:, :n_rows])

    def pac(self, k: int, low: float = 0.1, high: float = 0.9, rows: int = 2000) -> float:
        """Proportion of ambiguous clustering: share of the pairs whose consensus is between `low` and `high` [2]_.

        It is 0 if any two rows are always or never in the same cluster. It uses the first `rows` rows.

        .. [2] Y. Şenbabaoğlu, G. Michailidis, J. Z. Li (2014), Critical limitations of consensus clustering in class
           discovery, Scientific Reports 4, 6207. https://doi.org/10.1038/srep06207
        """
        return agreement.ambiguous_share(self.consensus(k, rows), low, high)

    def area(self, k: int, rows: int = 2000) -> float:
        """Area under the cumulative distribution of the consensus of pairs (Monti and others 2003).

        Its increase from K to K + 1 shows whether K + 1 reveals more structure.
        """
        return agreement.area_under_cdf(self.consensus(k, rows))

    def table(self) -> list[dict[str, Any]]:
        """One row per number of clusters, with the stability of its least stable cluster."""
        least = [float(clusters.min()) for clusters in self.clusters]
        return as_rows(
            {
                "k": self.ks, self.measure: self.mean, "standard_error": self.standard_error,
                "least_stable_cluster": least, "best": self.ks == self.best,
            }
        )  # fmt: skip

    def __str__(self) -> str:
        reached = self.best is not None
        verdict = f"{self.best} clusters are stable" if reached else f"no K reaches the threshold {self.threshold:g}"
        return f"{aligned(self.table())}\n{verdict}"


@in_order("stability(estimator, X, ks)")
@with_verbose
def stability(
    estimator: Any,
    X: Any,
    ks: Iterable[int] = range(2, 11),
    *,
    measure: str = "adjusted_rand",
    resampling: str = "auto",
    n_resamples: int = 50,
    share: float = 0.8,
    threshold: float | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
    verbose: int = 0,
) -> Stability:
    r"""Measure the stability of clusters under resampling, for each number of clusters.

    The estimator is fitted to many resamples of the rows, and the clusters of the resamples are compared. Labels of all
    rows come from `predict`. Without `predict`, two resamples are compared on the rows they share.

    - 'adjusted_rand' [1]_: mean adjusted Rand index of all pairs of resamples.
    - 'jaccard' [2]_: for each cluster C of the fit to all rows and the most similar cluster D of a resample,
      :math:`|C \cap D| / |C \cup D|` on the rows of the resample; the mean over clusters. (`clusters` contains the
      value of each cluster, for every measure.)
    - 'prediction_strength' [3]_: the rows are split into halves, and both are clustered. For each cluster of one half,
      the share of its pairs of rows that the clusters of the other half keep together; the minimum over clusters.

    For 'prediction_strength', `best` is the largest K whose mean is at least 0.8, as in [3]_; one cluster has the
    value 1. The other measures are always best for one cluster. For these, `best` is the largest K >= 2 whose mean is
    within one standard error of the maximum; None if the maximum is below 0.75, a common limit for dissolved
    clusters [2]_.

    Stable clusters are not always real. A small number of clusters is easier to reproduce than a large one. An
    algorithm can also split data without clusters in the same way every time: K-means always cuts an elongated cloud
    across its length, and a square into quarters. The adjusted Rand index is corrected for random labels, not for this
    effect. Instability is more informative: clusters that are not stable are not real.

    Parameters
    ----------
    estimator : estimator
        Any estimator with `fit`, `predict` or `labels_`, and `n_clusters` or `n_components`; it is not changed. Of
        `HDBSCAN`, which finds the number of clusters, `min_cluster_size` is varied instead.
    X : array, sparse matrix, frame, LazyFrame or path of a file (n, d)
        Rows, or a distance matrix if the estimator requires one.
    ks : iterable of int, default=range(2, 11)
        Numbers of clusters; for `HDBSCAN`, minimum sizes.
    measure : {'adjusted_rand', 'jaccard', 'prediction_strength'}, default='adjusted_rand'
        Measure of agreement, as above.
    resampling : {'auto', 'bootstrap', 'subsample', 'halves'}, default='auto'
        'bootstrap' samples n rows with replacement, 'subsample' samples a `share` of the rows without replacement, and
        'halves' splits the rows into two halves. 'auto' is 'halves' for 'prediction_strength', which requires it,
        'subsample' for `HDBSCAN`, and 'bootstrap' otherwise.
    n_resamples : int, default=50
        Number of resamples, at least 2; for 'halves', number of pairs of halves.
    share : float, default=0.8
        Share of the rows for resampling='subsample'.
    threshold : float or None, default=None
        Minimum mean of a stable K; None uses 0.8 for 'prediction_strength' and 0.75 otherwise.
    sample_weight : array (n,) or None, default=None
        Row weights. A bootstrap draws rows with probability proportional to them; others pass them to the fit.
        The measure uses them, too. Whole numbers are counts of rows.
    n_jobs : int or None, default=None
        Number of threads, one per resample; None uses all cores. The result does not depend on it.
    random_state : None, int, RandomState or Generator, default=None
        Seed or random generator of resamples and fits. All K use the same resamples.
    callback : callable or None, default=None
        Called with a `Progress` after every K. If it returns True, the computation stops and returns the K so far.
    verbose : int, default=0
        1 shows a progress bar, 2 prints every step.

    Returns
    -------
    Stability
        Has `best`, `mean`, `standard_error`, `clusters`, `consensus()` and `table()`.

    Notes
    -----
    The cost is `n_resamples` + 1 fits for each K (twice as many for 'halves'), and as many short ones: estimators of
    centers and mixtures are also fitted from one of the best results of the other samples, and the better fit is used.
    So stability depends on the rows, hardly on `n_init` or `search`. If `X` is a float32 tensor on a GPU with
    up to about a million rows, and the estimator is `KMeans` with k-means++ starts, all fits run there at once. A row
    drawn twice is passed as one row of weight two, if the estimator accepts weights. All rows are fitted, but at most
    10 000 random rows are compared.
    The standard error of the mean over pairs of resamples is that of a U-statistic: twice the standard deviation of the
    means of the resamples, divided by the square root of their number.

    References
    ----------
    .. [1] A. Ben-Hur, A. Elisseeff, I. Guyon (2002), A stability based method for discovering structure in clustered
       data, Pacific Symposium on Biocomputing 7, 6-17. Adjusted for chance as in L. Hubert, P. Arabie (1985), J.
       Classif. 2.
    .. [2] C. Hennig (2007), Cluster-wise assessment of cluster stability, Comput. Stat. Data Anal. 52, 258-271.
       https://doi.org/10.1016/j.csda.2006.11.025
    .. [3] R. Tibshirani, G. Walther (2005), Cluster validation by prediction strength, J. Comput. Graph. Stat. 14,
       511-528. https://doi.org/10.1198/106186005X59243

    Examples
    --------
    >>> from coterie import KMeans
    >>> from coterie.datasets import make_blobs
    >>> from coterie.selection import stability
    >>> X, _ = make_blobs(300, 2, centers=4, cluster_std=0.3, random_state=0)
    >>> stability(KMeans(), X, range(2, 7), n_resamples=20, random_state=0).best
    4
    """
    one_of("measure", measure, tuple(THRESHOLDS))
    one_of("resampling", resampling, ("auto", *RESAMPLINGS))
    if measure == "prediction_strength" and resampling not in ("auto", "halves"):
        raise ParameterError(
            f"resampling={resampling!r} is not supported for measure='prediction_strength', which needs "
            "resampling='halves'"
        )
    whole_number("n_resamples", n_resamples, 2)
    option = varied_option(estimator)
    if resampling == "auto":
        repeats_rows = option != SIZE_OPTION  # repeated rows would be clusters for an estimator of densities
        resampling = "halves" if measure == "prediction_strength" else "bootstrap" if repeats_rows else "subsample"
    if resampling == "halves" and not can_predict(estimator):
        raise ParameterError(
            f"{type(estimator).__name__} has no predict, but resampling='halves' needs an estimator with predict"
        )
    k_values, callback = as_ks(ks), check_callback(callback)
    data = ResamplingData(estimator, X, sample_weight)
    if k_values[-1] > len(data.positive_rows):
        raise InputError(
            f"ks go up to {k_values[-1]}, but X has only {len(data.positive_rows)} rows of positive weight: "
            "use smaller ks"
        )
    data.check_distinct_rows(k_values[-1])
    share = between_0_and_1("share", share)
    resamples = _Resamples(data, measure, resampling, n_resamples, share, as_rng(random_state), n_jobs)
    resamples.fit_on_device(X, k_values)
    return resamples.stability(k_values, THRESHOLDS[measure] if threshold is None else float(threshold), callback)


class HalfFits:
    """Fits of an estimator to random halves of the rows, from which two criteria of `choose_k` are computed."""

    def __init__(
        self, estimator: Any, X: Array, ks: list[int], n_pairs: int, w: Array | None, n_jobs: int | None,
        rng: np.random.Generator, *, plain_kmeans: bool,
    ):  # fmt: skip
        self.ks = ks
        rows, weights, _ = divided_rows(X, w) if plain_kmeans else (X, w, None)
        resamples = _PathResamples if plain_kmeans else _Resamples
        data = ResamplingData(estimator, rows, weights)
        self.resamples = resamples(data, "prediction_strength", "halves", n_pairs, 0.5, rng, n_jobs)
        self.resamples.fit_all(ks)

    def prediction_strength(self) -> Stability:
        return self.resamples.stability(self.ks, THRESHOLDS["prediction_strength"], None)

    def valleys(self) -> Valleys:
        """Numbers of separate clusters, by the densities of the half that was not fitted."""
        return valleys_of(self.ks, np.array([self.resamples.counts_apart(k) for k in self.ks]))


class _Resamples:
    """The resamples, and their evaluation for one number of clusters."""

    def __init__(
        self, data: ResamplingData, measure: str, resampling: str, n_resamples: int, share: float,
        rng: np.random.Generator, n_jobs: int | None,
    ):  # fmt: skip
        self.data, self.measure, self.resampling, self.n_jobs = data, measure, resampling, n_jobs
        first, *children = rng.spawn(n_resamples + 1)
        resamples = (resample for child in children for resample in data.resamples(resampling, share, child))
        self.samples: list[Resample] = [data.full_sample(first), *resamples]  # all rows first
        self.rows = data.positive_rows[random_rows(len(data.positive_rows), MAX_ROWS, first)]
        self.w = None if data.w is None else data.w[self.rows]
        self.is_sampled = np.stack(
            [np.isin(self.rows, resample.rows, assume_unique=True) for resample in self.samples[1:]]
        )
        self.labels_by_k: dict[int, list[Array]] = {}

    def fit_all(self, ks: list[int]) -> None:
        """Fit all K, and keep the labels."""
        self.labels_by_k = {k: self.labels(k) for k in ks}

    def fit_on_device(self, X: Any, ks: list[int]) -> None:
        """Fit all resamples and K at once if `X` is a small table on a GPU and the estimator is plain K-means."""
        is_plain = _is_plain_kmeans(self.data.estimator) and self.data.w is None
        if not (is_plain and is_float32_table(X) and can_fit_tables(len(X), X.shape[1], ks[-1])):
            return
        from coterie.kernels.cuda.batched import as_weights

        counts = np.zeros((len(self.samples), len(X)))
        for count, resample in zip(counts, self.samples, strict=True):
            count[resample.rows] = 1.0 if resample.weights is None else resample.weights
        if (weights := as_weights(counts, X.device)) is None:
            return
        n_init, max_iter, _ = self.data.estimator._check_options()
        samples, numbers = np.tile(np.arange(len(counts)), len(ks)), np.repeat(ks, len(counts))
        generators = [np.random.default_rng([self.samples[i].seed, k]) for i, k in zip(samples, numbers, strict=True)]
        options = Options(max(n_init, DEVICE_STARTS), self.data.estimator.tol, max_iter)
        rows = X.detach().contiguous()[None]
        fits = fit_tables(rows, np.zeros_like(samples), numbers, generators, options, weights, samples, self.rows)
        divisions = fits.labels.reshape(len(ks), len(counts), -1)
        self.labels_by_k = {k: list(labels) for k, labels in zip(ks, divisions, strict=True)}

    def stability(self, ks: list[int], threshold: float, callback: Callback | None) -> Stability:
        """Evaluate all K, until `callback` returns True."""
        with interrupts.outermost():
            results = list(reported(map(self.evaluate, ks), [f"K = {k}" for k in ks], callback, ks))
        values, clusters, labels, divisions = zip(*results, strict=True)
        fitted_ks = np.array(ks[: len(results)])
        mean, spread = np.mean(values, axis=1), np.std(values, axis=1, ddof=1)
        error = spread / np.sqrt(np.shape(values)[1]) * (2 if self.measure == "adjusted_rand" else 1)
        best = _best(fitted_ks, mean, error, threshold, self.measure)
        return Stability(
            fitted_ks, mean, error, best, self.measure, self.resampling, threshold, np.array(values), clusters, labels,
            divisions, self.rows,
        )  # fmt: skip

    def labels(self, k: int) -> list[Array]:
        """Labels of the fit to all rows, then of each resample."""
        if k in self.labels_by_k:
            return self.labels_by_k[k]
        with machine.one_blas_thread:
            fits = fit_samples(self.data, k, self.samples, self.n_jobs)
            calls = [(fit, sample, self.rows) for fit, sample in zip(fits, self.samples, strict=True)]
            return list(machine.in_threads(self.data.labels, calls, self.n_jobs))

    def evaluate(self, k: int) -> tuple[Array, Array, Array, Array]:
        """Measure of every resample, stability of every cluster, labels of the fit to all rows and of each resample."""
        labels, *resampled = self.labels(k)
        divisions = np.stack(resampled)
        overlap = self._overlaps(labels, divisions)
        if self.measure == "jaccard":
            values = overlap.mean(axis=1)
        else:
            values = self._strengths(divisions) if self.measure == "prediction_strength" else self._rands(divisions)
        return values, overlap.mean(axis=0), labels, divisions

    def _overlaps(self, labels: Array, divisions: Array) -> Array:
        """Jaccard index of each cluster of all rows with each resample, on its rows (resamples, clusters)."""
        overlaps = np.zeros((len(divisions), max(1, int(labels.max()) + 1)))  # no cluster: one of stability 0
        for overlap, division, sampled in zip(overlaps, divisions, self.is_sampled, strict=True):
            w = None if self.w is None else self.w[sampled]
            values = agreement.jaccard(agreement.contingency_table(labels[sampled], division[sampled], w))
            overlap[: len(values)] = values
        return overlaps

    def _rands(self, divisions: Array) -> Array:
        """Mean adjusted Rand index of every resample with all others.

        Of an estimator with noise, noise is a group of its own, and fewer than two clusters have the value 0.
        """
        count, unit = len(divisions), self.data.unit
        scores, has_clusters = np.zeros((count, count)), np.ones(count, bool)
        if self.data.count == SIZE_OPTION:
            has_clusters = divisions.max(axis=1) > 0
            divisions = np.where(divisions < 0, divisions.max() + 1, divisions)
        for i in np.flatnonzero(has_clusters):
            for j in np.flatnonzero(has_clusters[:i]):
                table = agreement.contingency_table(divisions[i], divisions[j], self.w)
                scores[i, j] = scores[j, i] = agreement.adjusted_rand(table, unit)
        return scores.sum(axis=1) / (count - 1)

    def _strengths(self, divisions: Array) -> Array:
        """Mean prediction strength of the two halves, for every pair of halves."""
        unit, values = self.data.unit, []
        for i, (labels, sampled) in enumerate(zip(divisions, self.is_sampled, strict=True)):
            w = None if self.w is None else self.w[sampled]
            table = agreement.contingency_table(labels[sampled], divisions[i ^ 1][sampled], w)
            values.append(agreement.prediction_strengths(table, unit).min())
        return np.array(values).reshape(-1, 2).mean(axis=1)

    def counts_apart(self, k: int) -> list[int]:
        """Number of clusters with density valleys around them, for every half."""
        X = self.data.X[self.rows]
        halves = zip(self.labels(k)[1:], self.is_sampled, strict=True)
        return [count_apart(X, labels, sampled, self.w) for labels, sampled in halves]


class _PathResamples(_Resamples):
    """Resamples that are fitted for all numbers of clusters at once."""

    def fit_all(self, ks: list[int]) -> None:
        calls = [(ks, resample) for resample in self.samples]
        with machine.one_blas_thread:
            fits = machine.in_threads(self._path_labels, calls, self.n_jobs)
        self.labels_by_k = {k: list(labels) for k, labels in zip(ks, zip(*fits, strict=True), strict=True)}

    def _path_labels(self, ks: list[int], resample: Resample) -> list[Array]:
        """Labels of the compared rows for each K: the nearest centers of the clusters of the resample."""
        X, w = self.data.X[resample.rows], resample.weights
        rng, possible = np.random.default_rng(resample.seed), ks
        try:
            path = kmeans_path(X, w, ks, rng)
        except InputError:  # fewer distinct rows than clusters
            distinct = len(np.unique(X, axis=0))
            possible = sorted({min(k, distinct) for k in ks})
            path = kmeans_path(X, w, possible, rng)
        rows = self.data.X[self.rows].astype(np.float64)
        labels = [_nearest(rows, _means(X, w, clusters)) for clusters in path.clusters]
        return [labels[min(i, len(possible) - 1)] for i in range(len(ks))]


def _is_plain_kmeans(estimator: Any) -> bool:
    """Whether an estimator is K-means with k-means++ starts, and nothing that only single fits support."""
    if type(estimator) is not KMeans or estimator.device == "cpu" or estimator.callback is not None:
        return False
    is_unweighted = estimator.metric_weights is None and estimator.frozen_centers is None
    is_default = estimator.search in ("none", "auto") and (estimator.missing, estimator.verbose) == ("error", 0)
    is_seeded = isinstance(estimator.init, str) and estimator.init in ("auto", "k-means++")
    return is_unweighted and is_default and is_seeded and estimator.algorithm in ("auto", "lloyd")


def _means(X: Array, w: Array | None, labels: Array) -> Array:
    """Means of the clusters that have rows (k, d)."""
    weight = np.bincount(labels, w)
    sums = np.stack([np.bincount(labels, column if w is None else column * w) for column in X.T], axis=1)
    means: Array = sums[weight > 0] / weight[weight > 0, None]
    return means


def _nearest(X: Array, centers: Array) -> Array:
    middle = centers.mean(axis=0)  # distances from centers are not lost beside distances from the origin
    shifted = centers - middle
    return ((shifted**2).sum(axis=1) - 2 * ((X - middle) @ shifted.T)).argmin(axis=1).astype(np.int32)


def _best(ks: Array, mean: Array, error: Array, threshold: float, measure: str) -> int | None:
    if measure == "prediction_strength":
        stable = ks[mean >= threshold]
    else:
        several = ks > 1
        ks, mean, error = ks[several], mean[several], error[several]
        if len(ks) == 0 or mean.max() < threshold:
            return None
        top = int(mean.argmax())
        stable = ks[mean >= mean[top] - error[top]]
    return int(stable.max()) if len(stable) else None
