"""Whether rows fall into clusters at all: how well they split, beside rows that have none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from coterie import machine, metrics
from coterie.core.arguments import as_rng, whole_number
from coterie.core.errors import InputError
from coterie.core.progress import Callback, check_callback, reported
from coterie.selection.gap import FEWEST, kmeans_path, positive_weight_rows
from coterie.selection.references import Array, box_about
from coterie.selection.sweep import as_ks

SIGNIFICANT = 0.01
ROWS = 2_000  # that are looked at; of more, as many drawn ones


@dataclass(frozen=True)
class Tendency:
    """What `tendency` found."""

    ks: Array  # (m,) numbers of clusters looked at
    silhouettes: Array  # (m,) of the data
    even: Array  # (B,) the best silhouette of each table of rows that lie evenly in a box
    normal: Array  # (B,) the best of each table of rows from one Gaussian

    @property
    def best(self) -> float:
        """The best silhouette of the data."""
        return float(self.silhouettes.max())

    @property
    def p_value(self) -> float:
        """How often rows without clusters would split as well as the data: the larger of the two kinds' shares."""
        return max(self._share(self.even), self._share(self.normal))

    @property
    def clustered(self) -> bool:
        """Whether the rows split better than rows without clusters do."""
        return self.p_value < SIGNIFICANT

    @property
    def by_chance(self) -> tuple[float, float]:
        """Mean and standard deviation of the best silhouettes of that kind of rows which splits better."""
        kind = max(self.even, self.normal, key=np.mean)
        return float(kind.mean()), float(kind.std(ddof=1))

    def _share(self, reached: Array) -> float:
        """By Student's distribution of one more draw of a normal sample."""
        spread = float(reached.std(ddof=1)) * np.sqrt(1 + 1 / len(reached))
        ahead = self.best - float(reached.mean())
        if spread == 0:
            return float(ahead <= 0)
        return float(stats.t.sf(ahead / spread, len(reached) - 1))


def tendency(
    X: Any,
    ks: Any = (2, 3, 4, 5, 7, 10),
    *,
    n_references: int = 20,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
) -> Tendency:
    r"""Whether rows fall into clusters: is their best silhouette better than that of rows without any?

    K-means splits whatever it is given, and some K always scores best. So the best silhouette over `ks` is held against
    that of references, which go through the same: rows that lie evenly in a box along the principal axes of the data,
    and rows from one Gaussian with the mean and covariance of the data [1]_. There are clusters if it beats both.

    Do not use it where clusters are rings, or one around another: K-means splits those no better than noise.

    Parameters
    ----------
    X : array, frame, LazyFrame or path of a file (n, d)
    ks : ints of at least 2, default=(2, 3, 4, 5, 7, 10)
    n_references : int, default=20
        Tables of each kind, 2 at least.
    sample_weight : array (n,), optional
        How many rows each stands for; the rows of a reference have the same weights.
    n_jobs : int or None, default=None
        Threads, a reference each; None is all cores. The result does not depend on it.
    random_state : None, int, RandomState or Generator
    callback : callable or None, default=None
        Called with a `Progress` after every table; a true answer ends it with those there are, two of each kind at
        least.

    Returns
    -------
    Tendency

    Notes
    -----
    Of more than 2000 rows, as many drawn ones are looked at. Each table costs a sweep of K-means and a silhouette a K.

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
    wanted, callback = as_ks(ks), check_callback(callback)
    whole_number("n_references", n_references, FEWEST)
    rng = as_rng(random_state)
    rows, w = positive_weight_rows(X, sample_weight)
    kept = row_sample(len(rows), ROWS, rng)
    rows, w = rows[kept], None if w is None else w[kept]
    distinct = len(np.unique(rows, axis=0))
    wanted = [k for k in wanted if 2 <= k < distinct]
    if not wanted:
        raise InputError(f"ks must have a number from 2 up that is below the {distinct} distinct rows of X; got {ks!r}")
    kinds = (partial(box_about(rows, w, "pca").draw, len(rows), rows.dtype), partial(_normal_rows, rows, w))
    tables = [None, *kinds * n_references]
    names = ["data", *(f"reference {b}" for b in range(1, len(tables)))]
    asked = callback and (lambda step: bool(callback(step)) and step.done > 2 * FEWEST)
    with machine.one_blas_thread:
        calls = [(rows, w, wanted, draw, child) for draw, child in zip(tables, rng.spawn(len(tables)), strict=True)]
        found = np.array(list(reported(machine.in_threads(_silhouettes, calls, n_jobs), names, asked)))
    best = found[1:].max(axis=1)
    return Tendency(np.array(wanted), found[0], best[::2], best[1::2])


def row_sample(n: int, most: int, rng: np.random.Generator) -> Any:
    """At most so many of n rows: their numbers, or a slice of all."""
    return slice(None) if n <= most else np.sort(rng.choice(n, most, replace=False))


def _silhouettes(rows: Array, w: Array | None, ks: list[int], draw: Any, rng: np.random.Generator) -> Array:
    """Of the clusters of the rows, or of a reference in their place, for every K."""
    X = rows if draw is None else draw(rng)
    found = kmeans_path(X, w, ks, rng)
    return np.array([_silhouette(X, found.labels(k), w) for k in ks])


def _silhouette(X: Array, labels: Array, w: Array | None) -> float:
    """0, as of rows half-way between clusters, where there are not two clusters."""
    if len(np.unique(labels)) < 2:
        return 0.0
    return float(metrics.silhouette_score(X, labels, sample_weight=w, n_jobs=1))


def _normal_rows(X: Array, w: Array | None, rng: np.random.Generator) -> Array:
    """As many rows from one Gaussian with the mean and the covariance of these."""
    mean = np.average(X, axis=0, weights=w).astype(np.float64)
    moved = X.astype(np.float64) - mean
    covariance = (moved.T if w is None else moved.T * w) @ moved / (len(X) if w is None else w.sum())
    variances, axes = np.linalg.eigh(covariance)
    scale = axes * np.sqrt(np.maximum(variances, 0.0))
    made: Array = (rng.standard_normal(X.shape) @ scale.T + mean).astype(X.dtype)
    return made
