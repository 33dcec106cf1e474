"""`sweep`: fit one estimator for many numbers of clusters."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from coterie import interrupts
from coterie.core.arguments import in_order, is_integer
from coterie.core.clock import Clock
from coterie.core.progress import Callback, Progress, check_callback
from coterie.core.progress_bar import with_verbose
from coterie.core.repr_html import ReprHTMLMixin
from coterie.data import opened
from coterie.errors import ParameterError
from coterie.selection.criteria import Curve, curve_of
from coterie.selection.estimator_sweeps import ESTIMATOR_SWEEPS, Fitted, drop_checkpoint, one_by_one
from coterie.selection.resampling import count_option
from coterie.selection.text_table import aligned, as_rows

MOST = 1_000_000  # numbers of clusters of a sweep


@dataclass(frozen=True, repr=False)
class Sweep(ReprHTMLMixin):
    """Result of `sweep`: the fitted estimator, its objective and its labels for every K."""

    ks: np.ndarray  # (m,) ascending
    models: list[Any]  # one fitted estimator per K
    objectives: np.ndarray  # (m,) lower is better
    labels: list[Any]  # one array (n,) per K
    X: Any = field(repr=False)  # the rows; read from the file if a path was passed
    sample_weight: Any = field(default=None, repr=False)

    def curve(self, name: str, *, random_state: Any = None) -> Curve:
        """Compute a criterion for every K.

        Parameters
        ----------
        name : {'objective', 'inertia', 'silhouette', 'calinski_harabasz', 'davies_bouldin', 'dunn'}
            Criterion.
        random_state : None, int, RandomState or Generator, default=None
            Seed or random generator of the sample, if there are more than 10 000 rows.

        Returns
        -------
        Curve
            Values at the K where the criterion is defined. It is not defined for one cluster, or if every cluster is a
            single point. With more than 10 000 rows, silhouettes are estimated from a sample (see `Curve.errors`), and
            the Dunn index is that of a sample; `Curve.note` says so.
        """
        return curve_of(self, name, random_state)

    def model(self, k: int) -> Any:
        """Return the estimator fitted with `k` clusters."""
        return self.models[position_of(k, self.ks, "fitted")]

    def table(self) -> list[dict[str, Any]]:
        """One row per K: its objective, and the ratio to the objective of the previous K (`left`)."""
        pairs = pairwise(self.objectives.tolist())
        left = [value / last if last and np.isfinite(last) else None for last, value in pairs]
        return as_rows({"k": self.ks, "objective": self.objectives, "left": [None, *left]})

    def __str__(self) -> str:
        return aligned(self.table())


@in_order("sweep(estimator, X, ks, sample_weight=None)")
@with_verbose
def sweep(
    estimator: Any, X: Any, ks: Any, *, sample_weight: Any = None, callback: Callback | None = None, verbose: int = 0
) -> Sweep:
    r"""Fit an estimator for many numbers of clusters K, sharing work between the fits.

    The optimal objective never rises with K: :math:`J_K \ge J_{K'}` for :math:`K < K'`. Independent fits can break this
    rule, because some stop in poor local optima. The curve then has dents that mislead elbow and gap criteria. A sweep
    uses the result for one K as a start for the next one, which avoids such dents.

    Do not use it for a single K. Do not choose K by the objective alone, because it always falls.

    Parameters
    ----------
    estimator : estimator of coterie with `n_clusters` or `n_components`
        Estimator to fit; it is cloned. Its number of clusters is ignored, its other parameters are used.
    X : array, frame or path of a file
        Any input that the estimator accepts.
    ks : iterable of int
        Numbers of clusters, at least 1, in any order.
    sample_weight : array (n,) or None, default=None
        Row weights.
    callback : callable or None, default=None
        Called with a `Progress` after each step. If it returns True, the sweep stops and returns the K fitted so
        far, as it does after Ctrl-C, with a `FitInterruptedWarning`.
    verbose : int, default=0
        1 shows a progress bar, 2 prints every step.

    Returns
    -------
    Sweep
        Has `ks`, `models`, `objectives`, `labels`, `curve()`, `model()` and `table()`.

    Notes
    -----
    Shared work by estimator:

    - `KMeans`, `KMedians`, `SphericalKMeans`, `FuzzyCMeans`: the rows are read and checked once. There are three
      starts: the centers for K plus the row that reduces the objective most, for K + 1; the centers for K + 1 with two
      of them merged, for K; and the first K centers of one k-means++ sequence, for every K. The last is stopped early
      once it cannot reach the best objective. If the solution is exact (`algorithm='exact'`, one column), each K is
      fitted independently.
    - `MiniBatchKMeans`: the same start for K + 1. If the batches lead to worse centers than the start, the start is
      used.
    - `BisectingKMeans`: one tree; its first K - 1 splits give K clusters.
    - `AgglomerativeClustering`: one tree, cut at every K. The objective is the within-cluster sum of squares for
      linkage 'ward', and the height of the highest merge for others.
    - `KMedoids`: an independent start, and the medoids of the previous K plus the row that reduces the objective most.
    - `GaussianMixture`: an independent start. If the result is worse than with fewer components, a second fit starts
      from those components and a copy of one of them. The objective is the one that EM minimises: the negative
      log-likelihood plus the penalty of `reg_covar`. A `prior` adds a term for every component, and 'hard' and
      'stochastic' E-steps have other objectives: these may rise with K. The objective of
      `KMedoids(approximation='sample')` may rise as well, because it only uses a sample.

    All other estimators are fitted independently for each K, and their objectives may rise with K.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import KMeans
    >>> from coterie.selection import sweep
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [9, 2], [9, 4], [9, 0]])
    >>> result = sweep(KMeans(random_state=0), X, [1, 2, 3])
    >>> result.objectives.tolist()
    [112.0, 16.0, 10.0]
    >>> result.curve("silhouette").best
    2
    """
    k_values, callback = as_ks(ks), check_callback(callback)
    count_option(estimator)
    estimator, X = drop_checkpoint(estimator), opened(X)
    fit_all = ESTIMATOR_SWEEPS.get(type(estimator), one_by_one)
    report = _ProgressReport(callback, k_values)
    fits: list[Fitted] = []
    with interrupts.outermost() as is_outermost:
        try:
            for fitted in fit_all(estimator, k_values, X, sample_weight, report.halfway):
                fits.append(fitted)
                if report.fitted(f"K = {fitted.k}", fitted.k):
                    break
        except KeyboardInterrupt as error:
            interrupts.keep_result(error, is_outermost, has_result=bool(fits), kept="the K fitted so far are kept")
    return Sweep(
        np.array([fitted.k for fitted in fits]),
        [fitted.model for fitted in fits],
        np.array([fitted.objective for fitted in fits]),
        [fitted.model.labels_ for fitted in fits],
        X,
        sample_weight,
    )


def as_ks(ks: Any) -> list[int]:
    """Convert `ks` to a sorted list of distinct numbers of clusters."""
    expected = "ks must be whole numbers of at least 1, such as range(1, 11)"
    if isinstance(ks, range) and len(ks) > MOST:
        raise ParameterError(f"ks must be at most {MOST:,} numbers; got {len(ks):,}: use a smaller range")
    try:
        values: list[Any] = list(ks)
    except TypeError:
        values = [ks]
    invalid = [k for k in values if isinstance(k, np.bool_) or not is_integer(k) or k < 1]
    if invalid or not values:
        value = f"got {invalid[0]!r}" if invalid else "got an empty list"
        raise ParameterError(f"{expected}; {value}")
    return sorted({int(k) for k in values})


def position_of(k: Any, ks: np.ndarray, done: str) -> int:
    """Index of `k` in `ks`; an error if it is not one of those that were `done`, such as "fitted"."""
    positions = np.flatnonzero(ks == k)
    if len(positions) == 0:
        raise ParameterError(f"k={k!r} was not {done}: use one of {ks.tolist()}")
    return int(positions[0])


class _ProgressReport:
    """Reports progress to the callback. Finding centers for K is half of the work, fitting with them the other half."""

    def __init__(self, callback: Callback | None, ks: list[int]):
        self.callback, self.ks, self.halves = callback, ks, 1
        self.done, self.spent, self.stopped, self.clock = 0, 0, False, Clock()

    def halfway(self, step: str) -> bool:
        """Report the centers of the next K; return whether to stop."""
        self.halves = 2
        return self._report(step, self.ks[self.done])

    def fitted(self, step: str, k: int) -> bool:
        """Report a fit; return whether to stop. After a stop in `halfway`, the remaining fits run without a report."""
        return False if self.stopped else self._report(step, k)

    def _report(self, step: str, k: int) -> bool:
        self.done, self.spent = self.done + 1, self.spent + k
        total = self.halves * len(self.ks)
        if self.callback is not None:
            left = self.clock.left(self.spent / (self.halves * sum(self.ks)))
            self.stopped = bool(self.callback(Progress(step, self.done, total, left)))
        return self.stopped
