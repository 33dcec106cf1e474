"""`diagnose`: run every check on a table and on its clusters."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import interrupts, machine
from coterie.core.arguments import as_rng, in_order, whole_number
from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.core.progress import Callback, Progress
from coterie.core.progress_bar import shown_progress
from coterie.data import opened
from coterie.data.memory import MemorySource
from coterie.diagnosis import (
    column_checks,
    n_clusters_checks,
    nonconvex_checks,
    row_checks,
    shape_checks,
    tendency_checks,
)
from coterie.diagnosis.findings import Check, Diagnosis, measured, not_measured, percent, with_finding
from coterie.diagnosis.n_clusters_checks import too_few_clusters
from coterie.diagnosis.sample import Partition, Sample, check_model, count_distinct, draw_sample, partition_of
from coterie.diagnosis.shape_checks import principal_axes
from coterie.kmeans.kmeans import KMeans
from coterie.metrics import adjusted_rand_score, inertia, silhouette_score

CLUSTER_CHECKS = (
    "elongated_clusters",
    "heavy_tails",
    "unequal_spread",
    "unequal_sizes",
    "tiny_clusters",
    "hollow_clusters",
    "too_many_clusters",
    "too_few_clusters",
    "boundary_rows",
    "unstable_starts",
    "missed_optimum",
)
STAGES = (
    "sample of rows", "connected components", "test for clusters", "clusters", "checks of the clusters",
    "checks of the data", "diagnosis",
)  # fmt: skip


@in_order("diagnose(X, model=model)")
def diagnose(
    X: Any,
    *,
    model: Any = None,
    sample_weight: Any = None,
    sample_size: int = 10_000,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Diagnosis:
    """Check data, and clusters of it, for problems that are known to mislead K-means and other methods.

    Checks of the data: missing values, columns of different scale, constant and correlated columns, duplicate rows,
    outliers, distances that are nearly all equal, data without clusters. Checks of the clusters: elongated, hollow,
    curved or nested clusters, unequal widths or sizes, tiny clusters, heavy tails, restarts that disagree, too many or
    too few clusters.

    Each check compares a number with a threshold: a quantile under the null hypothesis, or a rule that the docstring
    of the check derives. The findings are hints. No check is always right, and together they do not detect every
    problem.

    Parameters
    ----------
    X : array, DataFrame, path, LazyFrame or Dask array of shape (n, d)
        The rows, dense. Rows with NaN are counted and left out of all other checks.
    model : fitted estimator, labels of shape (n,) or None, default=None
        The clusters to check. For a fitted estimator of this or another library, they are its predictions for `X`.
        For hierarchical models and `BalancedKMeans` they are the clusters of the fit if `X` holds the fitted rows. An
        estimator without `predict` must have been fitted to these rows, in this order. For labels, -1 means that a row
        is in no cluster.
        None: K-means with the number of clusters from 2 to 20 that has the best silhouette, or no clusters if
        `one_cluster` has a finding.
        The rows are transformed as the model transforms them (`metric_weights`, unit length). A check of an assumption
        that the model does not make is measured but has no finding: for example round clusters, for a mixture with
        full covariances.
    sample_weight : array of shape (n,) or None, default=None
        Row weights. Rows of weight 0 are ignored. Weights are used in means, variances, shares and fits, and in
        drawing samples. Statistical tests count each row once.
    sample_size : int, default=10_000
        Size of the random sample for checks of single rows. Missing values, standard deviations and duplicate rows are
        computed from all rows.
    random_state : None, int, RandomState or Generator, default=None
        Seed of the random samples and of the fits of K-means.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar, 2 prints every stage.

    Returns
    -------
    Diagnosis
        Its `findings`, `checks`, `ok`, `table()` and `to_dict()` hold the result; `print` shows it.

    Notes
    -----
    Three passes over all n rows, then work on the sample: about 30 fits of K-means to 2,000 to 10,000 rows, a
    hierarchical clustering of 2,000 rows, and silhouettes of 2,000 rows.

    Examples
    --------
    >>> import numpy as np
    >>> import coterie
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) + 8])
    >>> coterie.diagnose(X, random_state=0).ok
    True
    >>> diagnosis = coterie.diagnose(X * [1, 1000], random_state=0)
    >>> diagnosis["unscaled_columns"].finding.severity
    'serious'
    """
    sample_size = whole_number("sample_size", sample_size, 100)
    check_model(model)
    seed, X = int(as_rng(random_state).integers(2**62)), opened(X)
    with machine.one_blas_thread, interrupts.outermost(), shown_progress(None, verbose) as callback:
        begin = partial(_begin, callback)
        begin("sample of rows")
        sample = draw_sample(X, sample_weight, model, sample_size, _generator(seed, "sample"), n_jobs)
        checks, clusters = _all_checks(X, sample_weight, model, sample, seed, n_jobs, begin)
        begin("diagnosis")
    return Diagnosis(
        rows=sample.n,
        columns=len(sample.names),
        sample=len(sample.rows),
        clusters="" if clusters is None else clusters.source,
        n_clusters=None if clusters is None else clusters.k,
        checks={check.name: check for check in checks},
    )


def _begin(callback: Callback | None, stage: str) -> None:
    """Report that a stage begins, or that the diagnosis is complete."""
    if callback is not None:
        callback(Progress(stage, STAGES.index(stage), len(STAGES) - 1))


def _all_checks(
    X: Any, sample_weight: Any, model: Any, sample: Sample, seed: int, n_jobs: int | None, begin: Callable[[str], None]
) -> tuple[list[Check], Partition | None]:
    missing = column_checks.missing_values(sample)
    if sample.n == 0:
        return [missing], None
    begin("connected components")
    components = nonconvex_checks.connected_components(sample, _generator(seed, "parts"), n_jobs)
    begin("test for clusters")
    one_cluster = tendency_checks.one_cluster(sample, components is not None, _generator(seed, "one"), n_jobs)
    begin("clusters")
    clusters, reason = _clusters(X, sample_weight, model, sample, one_cluster, seed, n_jobs)
    begin("checks of the clusters")
    if clusters is None:
        of_clusters = [not_measured(name, reason) for name in CLUSTER_CHECKS]
    else:
        of_clusters = _cluster_checks(clusters, seed, n_jobs)
    begin("checks of the data")
    return [
        missing,
        column_checks.unscaled_columns(sample, clusters),
        column_checks.dominating_column(sample, clusters),
        column_checks.constant_columns(sample),
        column_checks.correlated_columns(sample),
        row_checks.duplicated_rows(sample),
        row_checks.outliers(sample, clusters),
        row_checks.concentration(sample, _generator(seed, "concentration")),
        tendency_checks.evenly_spread(sample, _generator(seed, "even")),
        one_cluster,
        *nonconvex_checks.missed_pieces(clusters, components, sample, _generator(seed, "pieces")),
        *of_clusters,
    ], clusters


def _clusters(
    X: Any, sample_weight: Any, model: Any, sample: Sample, one_cluster: Check, seed: int, n_jobs: int | None
) -> tuple[Partition | None, str]:
    """Return the clusters to check, or None and the reason."""
    if model is not None:
        clusters = partition_of(model, X, sample, sample_weight)
        return (clusters, "") if clusters.k else (None, "no row is in a cluster")
    if len(sample.X) < MIN_ROWS or not sample.spread.any():
        return None, f"needs a model, or at least {MIN_ROWS} rows that are not all equal"
    if one_cluster.finding is not None:
        return None, "the rows look like one cluster; pass a model to check its clusters"
    return default_clusters(sample, _generator(seed, "own"), n_jobs), ""


def _cluster_checks(clusters: Partition, seed: int, n_jobs: int | None) -> list[Check]:
    axes = shape_checks.principal_axes(clusters, _generator(seed, "axes"))
    too_many = n_clusters_checks.too_many_clusters(clusters, _generator(seed, "too many"))
    too_few = n_clusters_checks.too_few_clusters(clusters, axes, _generator(seed, "too few"))
    return [
        shape_checks.elongated_clusters(clusters, axes),
        shape_checks.heavy_tails(clusters, axes),
        shape_checks.unequal_spread(clusters, axes),
        shape_checks.unequal_sizes(clusters),
        shape_checks.tiny_clusters(clusters),
        nonconvex_checks.hollow_clusters(clusters, _generator(seed, "hollow")),
        *n_clusters_checks.without_contradiction(too_many, too_few),
        n_clusters_checks.boundary_rows(clusters, _generator(seed, "boundary"), n_jobs),
        *restart_checks(clusters, _generator(seed, "starts"), n_jobs),
    ]


def _generator(seed: int, key: str) -> np.random.Generator:
    """Return a random generator of a check, so that none affects another; changing a key changes results."""
    return np.random.default_rng([seed, *key.encode()])


# The clusters that `diagnose` checks if no model is passed: K-means, with K chosen by silhouette.

MIN_ROWS = 20
ROWS = 2000
MAX_CLUSTERS = 20


def default_clusters(sample: Sample, rng: np.random.Generator, n_jobs: int | None) -> Partition:
    """K-means with the K from 2 to 20 that has the best mean silhouette on 2,000 rows.

    Values of K that leave a cluster with two modes are used only if all do, because silhouettes alone tend to merge
    two clusters that are close together. About 20 fits of 2,000 rows, and one of the whole sample.
    """
    index, seed = sample.draw(ROWS, rng), int(rng.integers(2**31))
    X, w = sample.X[index], sample.w[index]
    scores = {}
    for k in range(2, min(MAX_CLUSTERS, len(index) // 5, count_distinct(X)) + 1):
        labels = KMeans(k, n_init=3, random_state=seed, n_jobs=n_jobs).fit(X, sample_weight=w).labels_
        scores[k] = silhouette_score(X, labels, sample_weight=w, n_jobs=n_jobs)
    best = sorted(scores, key=scores.__getitem__, reverse=True) or [1]
    for k in best:
        clusters = _fit(sample, k, seed, n_jobs)
        if too_few_clusters(clusters, principal_axes(clusters, rng), rng).finding is None:
            return clusters
    return _fit(sample, best[0], seed, n_jobs)


def _fit(sample: Sample, k: int, seed: int, n_jobs: int | None) -> Partition:
    model = KMeans(k, n_init=4, random_state=seed, n_jobs=n_jobs).fit(sample.X, sample_weight=sample.w)
    codes: np.ndarray = model.labels_.astype(np.int64)
    return Partition(sample, codes, [str(j) for j in range(k)], f"K-means with K = {k}, chosen by silhouette")


# Checks of the initialisation: K-means runs from random initialisations, compared with each other and with the fit.

RESTARTS = 10
ROWS_OF_RESTARTS = 5000
MIN_AGREEMENT = 0.9
MAX_EXCESS = 0.01


class Restarts(NamedTuple):
    """Ten runs of K-means on a sample of the rows."""

    X: Array  # (m, d)
    w: Array  # (m,)
    codes: Array  # (m,) the clusters that are checked
    inertias: Array  # (10,)
    agreement: Array  # (10,) adjusted Rand index with the best run

    def excess(self, inertia: Any) -> Any:
        """Return by which share `inertia` exceeds the best inertia, without the noise of rounding."""
        return np.round(np.minimum(inertia / max(self.inertias.min(), 1e-300), 1e9) - 1, 12)


def restart_checks(clusters: Partition, rng: np.random.Generator, n_jobs: int | None) -> list[Check]:
    """Run K-means ten times on 5,000 rows, each with one initialisation, and check the agreement and the inertia."""
    names = ("unstable_starts", "missed_optimum")
    if not (clusters.assumes_round and clusters.assumes_equal):
        return [not_measured(name, f"applies to K-means only, not to {clusters.source}") for name in names]
    restarts = _run_restarts(clusters, rng, n_jobs)
    if restarts is None:
        return [not_measured(name, "needs two clusters, and more distinct rows than clusters") for name in names]
    return [unstable_starts(clusters, restarts), missed_optimum(clusters, restarts, n_jobs)]


def unstable_starts(clusters: Partition, restarts: Restarts) -> Check:
    """Mean adjusted Rand index with the best run.

    Below 0.9, about one in ten pairs of rows that are together in one run are apart in another.
    """
    agreement, excess = float(restarts.agreement.mean()), restarts.excess(restarts.inertias)
    n_worse = int(np.count_nonzero(excess > MAX_EXCESS))
    return with_finding(
        measured("unstable_starts", agreement, MIN_AGREEMENT, len(restarts.X)),
        agreement < MIN_AGREEMENT,
        "warning",
        f"The clusters depend on the initialisation: {RESTARTS} runs of K-means with K = {clusters.k} agree with the "
        f"best run by a mean adjusted Rand index of only {agreement:.2f} ({count(len(restarts.X), 'row')}). The "
        f"inertia of {count(n_worse, 'run')} is more than 1% above the best, by up to {percent(excess.max())}.",
        "Use KMeans(search='thorough'), which improves on the result of restarts. Or try another n_clusters: runs "
        "disagree most if K does not fit the data.",
        agreement=restarts.agreement.tolist(),
        above_best=excess.tolist(),
    )


def missed_optimum(clusters: Partition, restarts: Restarts, n_jobs: int | None) -> Check:
    """Inertia of the checked clusters relative to a better solution.

    The rows of the restarts only show whether to look for one: k means of m rows fit these rows better than means of
    other rows do, so their threshold is 1 % plus 2 k / m. A finding needs a solution for all rows.
    """
    name, k = "missed_optimum", clusters.k
    if not clusters.minimises_inertia:
        return not_measured(name, f"{clusters.source} does not minimise the inertia")
    value = float(restarts.excess(inertia(restarts.X, restarts.codes, sample_weight=restarts.w)))
    threshold = MAX_EXCESS + 2 * k / len(restarts.X)
    if value <= threshold or clusters.all_codes is None:
        return measured(name, min(value, threshold), threshold, len(restarts.X))
    if not isinstance(clusters.sample.source, MemorySource):
        return not_measured(name, "a claim needs a better solution for all rows, and these are not in memory")
    rows = clusters.sample.source.subset(np.flatnonzero(clusters.all_codes >= 0))
    codes = clusters.all_codes[clusters.all_codes >= 0]
    better = KMeans(k, search="thorough", search_budget=10, random_state=clusters.random_state, n_jobs=n_jobs)
    better.fit(rows.X, sample_weight=rows.w)
    value = inertia(rows.X, codes, sample_weight=rows.w, n_jobs=n_jobs) / max(better.inertia_, 1e-300) - 1
    return with_finding(
        measured(name, min(value, 1e9), MAX_EXCESS, len(codes)),
        value > MAX_EXCESS,
        "warning",
        f"The inertia of these clusters is {percent(value)} above the inertia of KMeans(search='thorough'), on all "
        f"{count(len(codes), 'row')}.",
        f"Use KMeans({k}, search='thorough', search_budget=10, random_state={clusters.random_state}).",
    )


def _run_restarts(clusters: Partition, rng: np.random.Generator, n_jobs: int | None) -> Restarts | None:
    index = clusters.sample.draw(ROWS_OF_RESTARTS, rng)
    index = index[clusters.codes[index] >= 0]
    X, w, k = clusters.sample.X[index], clusters.sample.w[index], clusters.k
    if k < 2 or count_distinct(X) <= k:
        return None
    models = [
        KMeans(k, n_init=1, algorithm="lloyd", random_state=int(seed), n_jobs=n_jobs).fit(X, sample_weight=w)
        for seed in rng.integers(2**31, size=RESTARTS)
    ]
    inertias = np.array([model.inertia_ for model in models])
    best = models[int(inertias.argmin())].labels_
    agreement = np.array([adjusted_rand_score(best, model.labels_) for model in models])
    return Restarts(X, w, clusters.codes[index], inertias, agreement)
