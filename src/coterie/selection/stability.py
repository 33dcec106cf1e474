"""Whether clusters come back when rows are drawn anew."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import interrupts
from coterie.core.arguments import as_rng, one_of, whole_number
from coterie.core.errors import InputError, ParameterError
from coterie.core.progress import Callback, check_callback, reported
from coterie.selection.agreement import adjusted_rand, contingency_table, jaccard, prediction_strengths
from coterie.selection.consensus import ambiguous_share, area_under_cdf, consensus_matrix
from coterie.selection.resampling import METHODS, Draw, Table, all_labels, count_option
from coterie.selection.sweep import as_ks
from coterie.selection.text_table import aligned

Array = np.ndarray[Any, Any]

ROWS = 10_000  # that are compared; of more a sample is
THRESHOLDS = {"adjusted_rand": 0.75, "jaccard": 0.75, "prediction_strength": 0.8}


@dataclass(frozen=True)
class Stability:
    """What `stability` found; larger is more stable, 1 is the most there can be."""

    ks: Array  # (m,) numbers of clusters
    mean: Array  # (m,) of the measure
    standard_error: Array  # (m,) of the mean
    best: int | None  # the largest of the most stable; None: none is stable
    measure: str
    method: str
    threshold: float  # below which clusters are not taken for stable
    values: Array  # (m, resamples) the measure, resample by resample
    clusters: tuple[Array, ...]  # (k,) for each K: how stable each cluster of all rows is
    labels: tuple[Array, ...]  # (rows,) for each K: the clusters of all rows
    divisions: tuple[Array, ...]  # (draws, rows) for each K: the clusters by each draw, -1 where it has none
    rows: Array  # (rows,) the rows that were compared: all, or a sample of many

    def consensus(self, k: int, rows: int | None = None) -> Array:
        """How often each two rows are in one cluster, of the draws where both are in one (m, m) [1]_.

        Of the first `rows` of `self.rows`, by default of all of them.

        .. [1] S. Monti, P. Tamayo, J. Mesirov, T. Golub (2003), Consensus clustering, Machine Learning 52, 91-118.
           https://doi.org/10.1023/A:1023949509487
        """
        most = len(self.rows) if rows is None else whole_number("rows", rows, 1)
        return consensus_matrix(self.divisions[self._place(k)][:, :most])

    def pac(self, k: int, low: float = 0.1, high: float = 0.9, rows: int = 2000) -> float:
        """The proportion of ambiguous clustering: of pairs that are together in some draws and apart in others [2]_.

        0 if each two rows are together always or never. Of the first `rows` rows.

        .. [2] Y. Şenbabaoğlu, G. Michailidis, J. Z. Li (2014), Critical limitations of consensus clustering in class
           discovery, Scientific Reports 4, 6207. https://doi.org/10.1038/srep06207
        """
        return ambiguous_share(self.consensus(k, rows), low, high)

    def area(self, k: int, rows: int = 2000) -> float:
        """The area under the distribution of the consensus of pairs; what it grows by from K to K + 1 tells if K + 1
        shows more (Monti and others 2003)."""
        return area_under_cdf(self.consensus(k, rows))

    def table(self) -> list[dict[str, Any]]:
        """A row for each number of clusters, with the least stable of its clusters."""
        return [
            {
                "k": int(k),
                self.measure: float(mean),
                "standard_error": float(error),
                "least_stable_cluster": float(clusters.min()),
                "best": int(k) == self.best,
            }
            for k, mean, error, clusters in zip(self.ks, self.mean, self.standard_error, self.clusters, strict=True)
        ]

    def __str__(self) -> str:
        verdict = f"none reaches {self.threshold:g}" if self.best is None else f"{self.best} clusters are stable"
        return f"{aligned(self.table())}\n{verdict}"

    def _place(self, k: int) -> int:
        at = np.flatnonzero(self.ks == k)
        if len(at) == 0:
            raise ParameterError(f"k must be one of {self.ks.tolist()}; got {k!r}")
        return int(at[0])


def stability(
    estimator: Any,
    X: Any,
    ks: Iterable[int] = range(2, 11),
    *,
    measure: str = "adjusted_rand",
    method: str = "auto",
    n_resamples: int = 50,
    share: float = 0.8,
    threshold: float | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
) -> Stability:
    r"""How far the clusters of resampled rows agree, for each number of clusters.

    The estimator is fitted to many draws of the rows. Its answers for all rows are compared draw by draw: through
    `predict`, or, of an estimator that has none, on the rows that two draws share.

    - 'adjusted_rand' [1]_: Rand's index beyond chance of each two draws, and the mean of all.
    - 'jaccard' [2]_: of each cluster C of all rows and the most similar cluster D of a draw :math:`|C \cap D| / |C
      \cup D|` on the rows of the draw; the mean over clusters. (`clusters` has it cluster by cluster, whatever the
      measure.)
    - 'prediction_strength' [3]_: rows are cut in halves, and both are clustered. Of each cluster of one half, the share
      of its pairs of rows that the clusters of the other half have together; the least over clusters.

    `best`: of 'prediction_strength' the largest K whose mean is 0.8 or more, as in [3]_; one cluster has 1. Of the
    others, where one cluster would always win, the largest K from 2 up whose mean is within a standard error of the
    highest; None if the highest is below 0.75, about where clusters dissolve [2]_.

    Stable is not real. Few clusters are easier to find again than many, and what an algorithm does to data without
    clusters can be the same every time: K-means halves a long cloud always across its length, and quarters a square.
    The index is corrected for what labels drawn at random would give, not for that. Instability does tell:
    clusters that do not come back are not there.

    Parameters
    ----------
    estimator : estimator
        Any with `fit`, and `predict` or `labels_`, and an option `n_clusters` or `n_components`; it is not changed.
    X : array, sparse matrix, frame, LazyFrame or path of a file (n, d)
        The rows; or distances, if the estimator takes those.
    ks : numbers of clusters, default=range(2, 11)
    measure : {'adjusted_rand', 'jaccard', 'prediction_strength'}, default='adjusted_rand'
    method : {'auto', 'bootstrap', 'subsample', 'halves'}, default='auto'
        Draw as many rows as there are, with replacement; draw a `share` of them, without; or cut them in halves. 'auto'
        is 'halves' for the prediction strength, which needs it, else 'bootstrap'.
    n_resamples : int, default=50
        Draws; of halves, pairs of them.
    share : float, default=0.8
        Of the rows, for method='subsample'.
    threshold : float, optional
        What is stable; 0.8 for 'prediction_strength', else 0.75.
    sample_weight : array (n,), optional
        How much each row counts: in draws with replacement the chance to be drawn, else in the fit; and in the measure.
        Whole numbers are counts of rows.
    n_jobs : int or None, default=None
        Threads, one a draw; None is all cores. The result does not depend on it.
    random_state : None, int, RandomState or Generator
        Draws and fits; the same draws for every K.
    callback : callable or None, default=None
        Called after every K with a `Progress`; a true return ends it with what there is.

    Returns
    -------
    Stability

    Notes
    -----
    Costs `n_resamples` + 1 fits for each K (twice as many of halves). A row drawn twice is passed as one of weight two
    where the estimator takes weights. Of more than 10 000 rows, so many drawn ones are compared; all are fitted. The
    standard error of the mean over pairs of draws is that of a U-statistic: twice the deviation of each draw's mean,
    over the root of their number.

    References
    ----------
    .. [1] A. Ben-Hur, A. Elisseeff, I. Guyon (2002), A stability based method for discovering structure in clustered
       data, Pacific Symposium on Biocomputing 7, 6-17. Beyond chance as in L. Hubert, P. Arabie (1985), J. Classif. 2.
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
    one_of("method", method, ("auto", *METHODS))
    if measure == "prediction_strength" and method not in ("auto", "halves"):
        raise ParameterError(f"measure='prediction_strength' needs method='halves'; got {method!r}")
    whole_number("n_resamples", n_resamples, 2)
    count_option(estimator)
    if method == "auto":
        method = "halves" if measure == "prediction_strength" else "bootstrap"
    if method == "halves" and not hasattr(estimator, "predict"):
        raise ParameterError(f"method='halves' needs an estimator with predict; {type(estimator).__name__} has none")
    numbers, watch = as_ks(ks), check_callback(callback)
    table = Table(estimator, X, sample_weight)
    if numbers[-1] > len(table.counting):
        raise InputError(f"ks go up to {numbers[-1]}, and only {len(table.counting)} rows (of weight above 0) count")
    study = _Resamples(table, measure, method, n_resamples, _share(share), as_rng(random_state), n_jobs)
    with interrupts.outermost():
        found = list(reported(map(study.look, numbers), [f"K = {k}" for k in numbers], watch, numbers))
    values, clusters, labels, divisions = zip(*found, strict=True)
    tried = np.array(numbers[: len(found)])
    mean = np.mean(values, axis=1)
    error = np.std(values, axis=1, ddof=1) / np.sqrt(n_resamples) * (2 if measure == "adjusted_rand" else 1)
    least = THRESHOLDS[measure] if threshold is None else float(threshold)
    best = _best(tried, mean, error, least, measure)
    return Stability(
        tried, mean, error, best, measure, method, least, np.array(values), clusters, labels, divisions, study.rows
    )


class _Resamples:
    """The draws, and what the clusters of each say for one number of clusters."""

    def __init__(
        self,
        table: Table,
        measure: str,
        method: str,
        n_resamples: int,
        share: float,
        rng: np.random.Generator,
        n_jobs: int | None,
    ):
        self.table, self.measure, self.n_jobs = table, measure, n_jobs
        first, *children = rng.spawn(n_resamples + 1)
        self.all = table.everything(first)
        self.draws: list[Draw] = [draw for child in children for draw in table.draws(method, share, child)]
        n = len(table.counting)
        self.rows = table.counting if n <= ROWS else np.sort(first.choice(table.counting, ROWS, replace=False))
        self.w = None if table.w is None else table.w[self.rows]
        self.drawn = np.stack([np.isin(self.rows, draw.rows, assume_unique=True) for draw in self.draws])

    def look(self, k: int) -> tuple[Array, Array, Array, Array]:
        """The measure of every resample, that of every cluster, the labels of all rows, and those by each draw."""
        labels, *found = all_labels(self.table, k, [self.all, *self.draws], self.rows, self.n_jobs)
        divisions = np.stack(found)
        overlap = self._overlaps(labels, divisions)
        if self.measure == "jaccard":
            values = overlap.mean(axis=1)
        else:
            values = self._strengths(divisions) if self.measure == "prediction_strength" else self._rands(divisions)
        return values, overlap.mean(axis=0), labels, divisions

    def _overlaps(self, labels: Array, divisions: Array) -> Array:
        """Of every draw, how much of each cluster of all rows is one on the rows of the draw (draws, clusters)."""
        found = np.zeros((len(divisions), int(labels.max()) + 1))
        for overlap, division, drawn in zip(found, divisions, self.drawn, strict=True):
            mine = jaccard(contingency_table(labels[drawn], division[drawn], None if self.w is None else self.w[drawn]))
            overlap[: len(mine)] = mine
        return found

    def _rands(self, divisions: Array) -> Array:
        """The mean agreement of every draw with all others."""
        count, unit = len(divisions), self.table.unit
        table = np.zeros((count, count))
        for i in range(count):
            for j in range(i):
                table[i, j] = table[j, i] = adjusted_rand(contingency_table(divisions[i], divisions[j], self.w), unit)
        return table.sum(axis=1) / (count - 1)

    def _strengths(self, divisions: Array) -> Array:
        """Of every cut in halves, the mean of either half's strength by the other's clusters."""
        unit, found = self.table.unit, []
        for i, (mine, drawn) in enumerate(zip(divisions, self.drawn, strict=True)):
            w = None if self.w is None else self.w[drawn]
            found.append(prediction_strengths(contingency_table(mine[drawn], divisions[i ^ 1][drawn], w), unit).min())
        return np.array(found).reshape(-1, 2).mean(axis=1)


def _share(share: Any) -> float:
    if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0 < share < 1:
        raise ParameterError(f"share must be a number between 0 and 1; got {share!r}")
    return float(share)


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
