"""One estimator fitted for many numbers of clusters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie import interrupts
from coterie.core.clock import Clock
from coterie.core.errors import ParameterError
from coterie.core.progress import Callback, Progress, check_callback
from coterie.data import opened
from coterie.selection.criteria import Curve, curve_of
from coterie.selection.estimator_sweeps import ESTIMATOR_SWEEPS, Fitted, drop_checkpoint, one_by_one
from coterie.selection.kmeans_path import Array
from coterie.selection.text_table import aligned


@dataclass(frozen=True)
class Sweep:
    """What `sweep` found: for every K the fitted estimator, what it minimised, and its labels."""

    ks: Array  # (m,) ascending
    models: list[Any]  # one a K
    objectives: Array  # (m,) lower is better
    labels: list[Any]  # (n,) one a K
    X: Any = field(repr=False)  # the rows as they were given; those of a file, if its path was
    sample_weight: Any = field(default=None, repr=False)

    def curve(self, name: str, *, random_state: Any = 0) -> Curve:
        """A criterion over K: "objective" ("inertia"), "silhouette", "calinski_harabasz", "davies_bouldin" or "dunn".

        K of which it says nothing are left out: one cluster, every row its own, clusters that are all single points.
        Of more than 10 000 rows, silhouettes are estimated from a sample (see `Curve.errors`), and Dunn's index is that
        of a sample; `Curve.note` says so.
        """
        return curve_of(self, name, random_state)

    def model(self, k: int) -> Any:
        """The estimator fitted with `k` clusters."""
        where = np.flatnonzero(self.ks == k)
        if len(where) == 0:
            raise ParameterError(f"k must be one of the K that were fitted, {self.ks.tolist()}; got {k!r}")
        return self.models[int(where[0])]

    def table(self) -> list[dict[str, Any]]:
        """A row for each K: its objective, and how much of that of the K before is left."""
        before = [None, *self.objectives[:-1].tolist()]
        return [
            {"k": int(k), "objective": float(value), "left": value / last if last else None}
            for k, value, last in zip(self.ks, self.objectives.tolist(), before, strict=True)
        ]

    def __str__(self) -> str:
        return aligned(self.table())


def sweep(estimator: Any, ks: Any, X: Any, sample_weight: Any = None, *, callback: Callback | None = None) -> Sweep:
    r"""Fit an estimator for many numbers of clusters K, sharing the work among them.

    More clusters never fit worse: :math:`J_K \ge J_{K'}` for :math:`K < K'`. Fits that know nothing of each other break
    that, wherever one ends in a poor optimum, and a curve with such dents misleads all that read it.

    Do not use it for one K; nor let the objective choose K: it always falls.

    Parameters
    ----------
    estimator : estimator of coterie with `n_clusters` or `n_components`
        What to fit; it is copied. Its own number of clusters does not matter, its other options do.
    ks : ints
        Numbers of clusters, from 1 up, in any order.
    X : what the estimator takes
    sample_weight : array (n,), optional
    callback : callable or None, default=None
        Called with a `Progress` after every piece of work; a true answer ends the sweep with the K there are by then.

    Returns
    -------
    Sweep

    Notes
    -----
    What is shared:

    - `KMeans`, `KMedians`, `SphericalKMeans`, `FuzzyCMeans`: the rows are opened and checked once; the centers for K
      and the row that then helps most are a start for K + 1, and those of K + 1 with two of them merged one for K; the
      first K of one sequence of k-means++ are another start for every K, given up once they cannot catch up. Where
      the optimum is found (`algorithm='exact'`, one column), each K is fitted by itself.
    - `MiniBatchKMeans`: the same start upwards; where batches lead to worse centers than the start, the start is taken.
    - `BisectingKMeans`: one tree, of which the first K - 1 cuts make K clusters.
    - `AgglomerativeClustering`: one tree, cut at every K. Its objective here is the sum of squares within clusters for
      linkage 'ward', and the height of the highest merge for others.
    - `KMedoids`: a start of its own, and the medoids for the last K with the row that then helps most.
    - `GaussianMixture`: a start of its own; where that ends worse than fewer components, those with a copy of one.
      The objective is what EM minimises, minus the log-likelihood and the penalty of `reg_covar`. A `prior` adds a
      term for every component, and 'hard' and 'stochastic' E-steps have other objectives: these may rise with K.
      So may the distances of `KMedoids(approximation='sample')`, which sees a sample alone.

    All other estimators are fitted for each K by themselves, and their objectives are as they come.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import KMeans
    >>> from coterie.selection import sweep
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [9, 2], [9, 4], [9, 0]])
    >>> found = sweep(KMeans(random_state=0), [1, 2, 3], X)
    >>> found.objectives.tolist()
    [112.0, 16.0, 10.0]
    >>> found.curve("silhouette").best
    2
    """
    wanted, callback = as_ks(ks), check_callback(callback)
    if not any(hasattr(estimator, name) for name in ("n_clusters", "n_components")) or not hasattr(estimator, "fit"):
        raise ParameterError(f"estimator must have n_clusters or n_components, and fit; got {type(estimator).__name__}")
    estimator, X = drop_checkpoint(estimator), opened(X)
    kind = ESTIMATOR_SWEEPS.get(type(estimator), one_by_one)
    report = _Report(callback, wanted)
    found: list[Fitted] = []
    with interrupts.outermost():
        for fitted in kind(estimator, wanted, X, sample_weight, report.halfway):
            found.append(fitted)
            if report.fitted(f"K = {fitted.k}", fitted.k):
                break
    return Sweep(
        np.array([fitted.k for fitted in found]),
        [fitted.model for fitted in found],
        np.array([fitted.objective for fitted in found]),
        [fitted.model.labels_ for fitted in found],
        X,
        sample_weight,
    )


def as_ks(ks: Any) -> list[int]:
    """Numbers of clusters, ascending and each once."""
    wanted = "ks must be whole numbers of at least 1, such as range(1, 11)"
    try:
        given: list[Any] = [ks] if isinstance(ks, str) else list(ks)
    except TypeError:
        given = [ks]
    if len(getattr(ks, "shape", ())) > 1 or any(np.ndim(k) for k in given):  # a table, such as the rows
        raise ParameterError(f"{wanted}; got {_table(ks)}, as X is: look at the order of the arguments")
    wrong = [k for k in given if isinstance(k, bool | np.bool_) or not hasattr(k, "__index__") or k < 1]
    if wrong or not given:
        found = f"got {wrong[0]!r}" if wrong else "there are none"
        raise ParameterError(f"{wanted}; {found}")
    return sorted({int(k) for k in given})


def _table(given: Any) -> str:
    shape = getattr(given, "shape", None)
    return f"a {type(given).__name__} of " + (f"{len(given)} lists" if shape is None else f"shape {shape}")


class _Report:
    """Tells the caller how far a sweep is: finding centers for K is half of the work, fitting with them the rest."""

    def __init__(self, callback: Callback | None, ks: list[int]):
        self.callback, self.ks, self.halves = callback, ks, 1
        self.done, self.spent, self.stopped, self.clock = 0, 0, False, Clock()

    def halfway(self, what: str) -> bool:
        """After the centers of one K, in their order."""
        self.halves = 2
        return self._tell(what, self.ks[self.done])

    def fitted(self, what: str, k: int) -> bool:
        """After a stop halfway, what was found by then is fitted without asking again."""
        return False if self.stopped else self._tell(what, k)

    def _tell(self, what: str, k: int) -> bool:
        self.done, self.spent = self.done + 1, self.spent + k
        total = self.halves * len(self.ks)
        if self.callback is not None:
            left = self.clock.left(self.spent / (self.halves * sum(self.ks)))
            self.stopped = bool(self.callback(Progress(what, self.done, total, left)))
        return self.stopped
