"""Test for clusters (clustering tendency): the best silhouette compared with that of data without clusters."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import stdtr

from coterie import machine
from coterie.core.arguments import as_rng, in_order, whole_number
from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.core.progress import Callback, check_callback, reported
from coterie.core.progress_bar import with_verbose
from coterie.core.repr_html import ReprHTMLMixin
from coterie.data.row_sample import random_rows
from coterie.errors import InputError, ScaleError
from coterie.metrics.silhouette_labelings import silhouette_scores
from coterie.selection.gap import MIN_REFERENCES, divided_rows, kmeans_path
from coterie.selection.references import box_about, hull_about, normal_rows
from coterie.selection.sweep import as_ks

KINDS = ("box", "hull", "normal")  # of references
SIGNIFICANCE = 0.01
MAX_ROWS = 2_000  # larger data are sampled
# An early test stops after this many references of each kind, if the p-value is outside of these limits.
EARLY_REFERENCES, EARLY_CLUSTERED, EARLY_NOT_CLUSTERED = 5, 1e-4, 0.3


@dataclass(frozen=True, repr=False)
class Tendency(ReprHTMLMixin):
    """Result of `tendency`."""

    ks: Array  # (m,) numbers of clusters
    silhouettes: Array  # (m,) of the data
    references: dict[str, Array]  # (B,) best silhouettes of the references of each kind: 'box', 'hull' and 'normal'

    @property
    def best(self) -> float:
        """Best silhouette of the data."""
        return float(self.silhouettes.max())

    @property
    def p_value(self) -> float:
        """Probability that data without clusters split as well: the largest value of all kinds of references."""
        return max(map(self._tail_probability, self.references.values()))

    @property
    def clustered(self) -> bool:
        """Whether the data have clusters: `p_value` is below 0.01."""
        return self.p_value < SIGNIFICANCE

    @property
    def by_chance(self) -> tuple[float, float]:
        """Mean and standard deviation of the best silhouettes, for the kind of references that decides `p_value`."""
        silhouettes = max(self.references.values(), key=self._tail_probability)
        return float(silhouettes.mean()), float(silhouettes.std(ddof=1))

    @property
    def excess(self) -> float:
        """Distance of `best` from the silhouettes without clusters, as a share of the distance of 1, the maximum."""
        mean = max(float(silhouettes.mean()) for silhouettes in self.references.values())
        return (self.best - mean) / max(1.0 - mean, 1e-12)

    def __str__(self) -> str:
        mean, deviation = self.by_chance
        verdict = "clusters" if self.clustered else "no evidence of clusters"
        reference = f"{mean:.3g} ± {deviation:.2g} without clusters"
        return f"{verdict}: p = {self.p_value:.2g}, silhouette {self.best:.3g} ({reference})"

    def _tail_probability(self, silhouettes: Array) -> float:
        """Probability of a value as large as `best`, by the t distribution of a new observation of a normal sample."""
        spread = float(silhouettes.std(ddof=1)) * np.sqrt(1 + 1 / len(silhouettes))
        difference = self.best - float(silhouettes.mean())
        if spread == 0:
            return float(difference <= 0)
        return float(stdtr(len(silhouettes) - 1, -difference / spread))


@in_order("tendency(X, ks)")
@with_verbose
def tendency(
    X: Any,
    ks: Any = (2, 3, 4, 5, 7, 10),
    *,
    n_references: int = 20,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
    verbose: int = 0,
) -> Tendency:
    r"""Test whether data have clusters.

    K-means splits any data, and some K always has the best score. So the best silhouette over `ks` is compared with
    that of reference data without clusters, processed in the same way. There are three kinds of references: uniform in
    a box along the principal axes of the data, uniform in an approximate convex hull of the data, and Gaussian with the
    mean and covariance of the data [1]_. The data have clusters if their silhouette is significantly better than that
    of all kinds: the largest p-value counts. Rows with permuted columns are no reference: of clusters that one column
    separates, or that are in all combinations of columns, they have the same ones.

    Do not use it for rings or clusters that surround others: K-means splits these no better than noise.

    Parameters
    ----------
    X : array, frame, LazyFrame or path of a file (n, d)
        Dense rows.
    ks : iterable of int, default=(2, 3, 4, 5, 7, 10)
        Numbers of clusters. Values below 2, or not below the number of distinct rows, are ignored.
    n_references : int, default=20
        Number of reference data sets of each kind, at least 2.
    sample_weight : array (n,) or None, default=None
        Row weights: a row of weight two is the same as that row twice. The rows of a reference have the same weights.
    n_jobs : int or None, default=None
        Number of threads, each of which processes one reference at a time; None uses all cores. The result does not
        depend on it.
    random_state : None, int, RandomState or Generator, default=None
        Seed or random generator.
    callback : callable or None, default=None
        Called with a `Progress` after every data set. If it returns True, the computation stops and uses the references
        so far, but at least two of each kind.
    verbose : int, default=0
        1 shows a progress bar, 2 prints every step.

    Returns
    -------
    Tendency
        Has `clustered`, `p_value`, `best` and `by_chance`.

    Notes
    -----
    If X has more than 2000 rows, a random sample of that size is used. Each data set needs one K-means fit and one
    silhouette for each K. Silhouettes are computed in single precision.

    References
    ----------
    .. [1] Y. Liu, D. N. Hayes, A. Nobel & J. S. Marron (2008), Statistical significance of clustering for
       high-dimension, low-sample size data, J. American Statistical Association 103, 1281-1293.
       https://doi.org/10.1198/016214508000000454

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.datasets import make_blobs
    >>> from coterie.selection import tendency
    >>> X, _ = make_blobs(300, 2, centers=3, cluster_std=0.2, random_state=0)
    >>> tendency(X, random_state=0).clustered
    True
    >>> tendency(np.random.default_rng(0).normal(size=(300, 2)), random_state=0).clustered
    False
    """
    requested_ks, callback = as_ks(ks), check_callback(callback)
    whole_number("n_references", n_references, MIN_REFERENCES)
    stop = callback and (lambda step: bool(callback(step)) and step.done > len(KINDS) * MIN_REFERENCES)
    silhouettes = _Silhouettes(X, requested_ks, n_references, sample_weight, as_rng(random_state))
    with machine.one_blas_thread:
        names = ["data", *(f"reference {b}" for b in range(1, 1 + len(KINDS) * n_references))]
        return silhouettes.test(list(reported(silhouettes.compute(n_jobs), names, stop)))


def early_tendency(
    X: Array, ks: list[int], n_references: int, w: Array | None, n_jobs: int | None, rng: np.random.Generator
) -> Tendency:
    """The same test with fewer references, if these decide it: `n_references` of each kind are the maximum."""
    silhouettes = _Silhouettes(X, ks, n_references, w, rng)
    results: list[Array] = []
    with machine.one_blas_thread:
        for result in silhouettes.compute(n_jobs):
            results.append(result)
            n_each, rest = divmod(len(results) - 1, len(KINDS))
            if n_each >= EARLY_REFERENCES and not rest:
                test = silhouettes.test(results)
                if test.p_value < EARLY_CLUSTERED or test.p_value > EARLY_NOT_CLUSTERED:
                    return test
    return silhouettes.test(results)


class _Silhouettes:
    """Silhouettes of the data, and of reference data of each kind in turn."""

    def __init__(self, X: Any, ks: list[int], n_references: int, sample_weight: Any, rng: np.random.Generator):
        rows, w, scale = divided_rows(X, sample_weight)
        if scale.weights:  # silhouettes compare the weight of a cluster with one row
            raise ScaleError(weights=scale.weights)
        sample = random_rows(len(rows), MAX_ROWS, rng)
        self.rows, self.w = rows[sample], None if w is None else w[sample]
        distinct = len(np.unique(self.rows, axis=0))
        self.ks = [k for k in ks if 2 <= k < distinct]
        if not self.ks:
            raise InputError(
                f"ks={ks!r} has no usable number: X has {count(distinct, 'distinct row')}, and K must be at least 2 "
                "and smaller than that"
            )
        (directions, self.rng), size = rng.spawn(2), (len(self.rows), self.rows.dtype)
        generators = (
            partial(box_about(self.rows, self.w, "pca").draw, *size),
            partial(hull_about(self.rows, self.w, directions).draw, *size),
            partial(normal_rows, self.rows, self.w),
        )
        self.sources = [None, *generators * n_references]

    def compute(self, n_jobs: int | None) -> Iterator[Array]:
        """Yield the silhouettes of the data, then of each reference."""
        children = self.rng.spawn(len(self.sources))
        calls = [(self.rows, self.w, self.ks, draw, rng) for draw, rng in zip(self.sources, children, strict=True)]
        return machine.in_threads(_silhouettes, calls, n_jobs)

    def test(self, silhouettes: list[Array]) -> Tendency:
        best = np.array(silhouettes[1:]).max(axis=1)
        references = {kind: best[i :: len(KINDS)] for i, kind in enumerate(KINDS)}
        return Tendency(np.array(self.ks), silhouettes[0], references)


def _silhouettes(rows: Array, w: Array | None, ks: list[int], draw: Any, rng: np.random.Generator) -> Array:
    """Silhouettes for every K of the data (`draw` is None) or of a new reference; 0 if there is only one cluster."""
    X, silhouettes = rows if draw is None else draw(rng), np.zeros(len(ks))
    clusters = kmeans_path(X, w, ks, rng).clusters
    several = np.flatnonzero(clusters.min(axis=1) < clusters.max(axis=1))
    silhouettes[several] = silhouette_scores(_single_precision(X), list(clusters[several]), sample_weight=w, n_jobs=1)
    return silhouettes


def _single_precision(X: Array) -> Array:
    """The rows in float32, relative to their mean and in units of the largest value: their silhouettes are the same."""
    centered = X - X.mean(axis=0, dtype=np.float64)
    size = float(np.abs(centered).max())
    rows: Array = (centered / size if size > 0 else centered).astype(np.float32)
    return rows
