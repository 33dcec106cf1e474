"""Fuzzy c-means: every row has a membership in every cluster, larger for near clusters."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from coterie import kernels
from coterie.base import CENTERS_STORED, Summary, powers_of_fit
from coterie.core.arguments import is_number
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.scale import SQUARES, Powers
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.errors import ParameterError
from coterie.kmeans.center_estimator import CenterEstimator
from coterie.kmeans.center_model import same_dtype, squared_step
from coterie.kmeans.lloyd import NearestCenters
from coterie.seeding.costs import LARGEST_FUZZIFIER, Cost, Shared

BLOCK = 4096  # rows whose memberships are in memory at the same time


@dataclass(frozen=True)
class FuzzyStats(Stats):
    """Sums relative to the current centers; memberships are in units of 1 / k."""

    weight: Any  # (k,) of w (k u)^m
    sum_dx: Any  # (k, d) of w (k u)^m (x - c)
    cost: Any  # of w u^m |x - c|^2, times k^(m - 1)


@dataclass(frozen=True)
class MembershipSums(Stats):
    """Sums over memberships, for the partition coefficient and entropy."""

    weight: Any  # of all rows
    square: Any  # of w u^2
    entropy: Any  # of -w u log u


@dataclass(frozen=True)
class Fuzzy(NearestCenters):
    r"""Minimises :math:`\sum_i w_i \sum_k u_{ik}^m \|x_i - c_k\|^2`; the memberships u of each row add up to 1.

    The M-step is that of K-means. The label of a row is its nearest center, which has the largest membership.
    """

    bounds: bool = False
    m: float = 2.0  # above 1

    @property
    def center_kind(self) -> str:  # type: ignore[override]
        """No search if m is so large that powers of memberships underflow, and all optima are alike."""
        return "fuzzy means" if self.m <= LARGEST_FUZZIFIER else ""

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> np.ndarray:
        centers = super().init(source, engine, rng)
        if not isinstance(self.start, str):
            return centers
        return self.off_rows(centers, np.arange(len(centers)), source, engine)

    def off_rows(self, centers: np.ndarray, indices: np.ndarray, source: Source, engine: Engine) -> np.ndarray:
        """Move centers that equal rows to the means of their nearest rows: a membership of 1 would keep them there."""
        # A pickled `super().e_step` would be the method of this class on the workers of a cluster.
        stats, _ = engine.scan(partial(NearestCenters.e_step, self, centers), source, None)
        moved = centers.copy()
        moved[indices] = self.m_step(centers, stats)[indices]
        return moved

    def initial_memos(self, source: Source) -> Any:
        return None

    def e_step(self, centers: np.ndarray, chunk: Chunk, memo: Any = None) -> tuple[FuzzyStats, None]:
        chunk, centers = same_dtype(chunk, centers)
        return FuzzyStats(*self._kernels(chunk.X, len(centers)).fuzzy(chunk.X, chunk.w, centers, self.m)), None

    def repair(self, centers: np.ndarray, stats: Any, source: Source, engine: Engine, memos: list[Any]) -> np.ndarray:
        """Move a center without weight, which is far from all rows if m is near 1, as in K-means."""
        if np.all(stats.weight > 0):
            return centers
        _, bounds = engine.scan(partial(NearestCenters.e_step, self, centers), source, None)
        return super().repair(centers, stats, source, engine, bounds)

    def halfway(self, before: np.ndarray, after: np.ndarray, chunk: Chunk) -> FuzzyStats:
        """Statistics with the memberships of the centers `before`, measured from the centers `after`."""
        k, weight, cost = len(after), np.zeros(len(after)), 0.0
        for rows in self._blocks(chunk):
            powers = (k * self.memberships(before, rows).astype(np.float64)) ** self.m
            powers *= rows.weights[:, None]
            weight += powers.sum(axis=0)
            cost += float((powers * self.distances(after, rows).astype(np.float64) ** 2).sum())
        return FuzzyStats(weight, 0.0, cost / k)

    def objective(self, centers: np.ndarray, stats: FuzzyStats) -> float:
        return float(stats.cost) * float(len(centers)) ** (1.0 - self.m)

    def has_converged(self, before: np.ndarray, after: np.ndarray, stats: Any, history: Any, *rest: Any) -> bool:
        return bool(squared_step(before, after) <= self.tol or history[-1] >= history[-2] > 0)

    def assign(self, centers: np.ndarray, chunk: Chunk, memo: Any = None) -> np.ndarray:
        return super().assign(centers, chunk)

    def memberships(self, centers: np.ndarray, chunk: Chunk) -> np.ndarray:
        chunk, centers = same_dtype(chunk, centers)
        return self._kernels(chunk.X, len(centers)).memberships(chunk.X, centers, self.m)

    def membership_sums(self, centers: np.ndarray, chunk: Chunk) -> MembershipSums:
        sums = MembershipSums(0.0, 0.0, 0.0)
        for rows in self._blocks(chunk):
            u = self.memberships(centers, rows).astype(np.float64)
            w, entropy = rows.weights, -u * np.log(np.where(u > 0, u, 1.0))
            sums += MembershipSums(float(w.sum()), float(w @ (u**2).sum(axis=1)), float(w @ entropy.sum(axis=1)))
        return sums

    @staticmethod
    def _blocks(chunk: Chunk) -> Iterator[Chunk]:
        rows = kernels.values_at_once(chunk.X, BLOCK * chunk.X.shape[1]) // chunk.X.shape[1]
        for first in range(0, chunk.X.shape[0], rows):
            block = slice(first, first + rows)
            yield chunk._replace(X=chunk.X[block], w=None if chunk.w is None else chunk.w[block])

    @property
    def cost(self) -> Cost:
        return Shared(self.m)


@stored(**CENTERS_STORED)
@dataclass(eq=False, repr=False, kw_only=True)
class FuzzyCMeans(CenterEstimator):
    r"""Fuzzy c-means: find `n_clusters` centers, and the membership of every row in every cluster.

    .. math:: J = \sum_i w_i \sum_k u_{ik}^m \lVert x_i - \mu_k \rVert^2, \qquad \sum_k u_{ik} = 1

    The algorithm alternates between memberships :math:`u_{ik} \propto \lVert x_i - \mu_k \rVert^{-2 / (m - 1)}` and
    centers, which are means weighted by :math:`w_i u_{ik}^m` [1]_ [2]_. The objective never increases. The result is a
    local optimum.

    Use it if clusters overlap and a degree of membership is more useful than one label. Memberships are not
    probabilities: they compare the distances to the centers. An outlier has about equal memberships in all clusters,
    and small clusters next to large ones are drawn towards them; use `GaussianMixture` in these cases. If the rows
    spread equally in many directions, all centers end at the common mean unless m is near 1 [3]_.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of centers.
    fuzzifier : float, default=2.0
        Exponent m of the memberships, greater than 1. As m approaches 1, the result approaches that of `KMeans`. As m
        grows, all memberships approach 1 / n_clusters.
    init : {'auto', 'k-means++', 'k-means||', 'forgy', 'random', 'random_partition', 'farthest'}, array or callable
        Initialisation method, or the initial centers, as in `KMeans`. Default: 'auto'. A named method is followed
        by one iteration of K-means.
    n_init : int or 'auto', default='auto'
        Number of initialisations; the best result is kept. As in `KMeans`.
    search : {'auto', 'none', 'thorough'}, default='auto'
        Search for a better optimum than one initialisation finds, by many starts and by swapping centers for rows, as
        in `KMedians`. 'none' only runs the `n_init` initialisations.
    max_iter : int, default=300
        Maximum number of iterations of one run.
    tol : float, default=1e-4
        Relative tolerance. Iterations stop when the squared movement of all centers falls below `tol` times the mean
        variance of the columns, or when the objective no longer decreases.
    device, engine, n_jobs, random_state, callback, verbose, checkpoint
        As in `KMeans`.

    Attributes
    ----------
    cluster_centers_ : array (k, d)
        Centers, in the dtype of the data.
    labels_ : array (n,) of int32
        Cluster with the largest membership of each row. `predict` returns the same labels for the same rows.
    objective_ : float
        J at exactly `cluster_centers_`. It is small for large m, because u^m is small.
    history_ : array (n_iter + 1,)
        Objective of the best run, initially and after every iteration.
    n_iter_ : int
        Number of iterations of the best run.
    converged_ : bool
        True if the best run converged before `max_iter`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    An iteration costs about 6 n d k operations in one pass over the rows. Memberships are not stored; `memberships`
    computes them. A row on a center has membership 1 in it, or equal memberships if it is on several. Sparse rows are
    rejected: every row has a share in every center, so sparsity would save nothing.

    References
    ----------
    .. [1] J. C. Dunn (1973), A fuzzy relative of the ISODATA process and its use in detecting compact well-separated
       clusters, J. Cybernetics 3, 32-57. https://doi.org/10.1080/01969727308546046
    .. [2] J. C. Bezdek (1981), Pattern recognition with fuzzy objective function algorithms, Plenum.
       https://doi.org/10.1007/978-1-4757-0450-1
    .. [3] J. Yu, Q. Cheng & H. Huang (2004), Analysis of the weighting exponent in the FCM, IEEE Transactions on
       Systems, Man, and Cybernetics B 34, 634-639. https://doi.org/10.1109/TSMCB.2003.810951

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import FuzzyCMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = FuzzyCMeans(n_clusters=2, init="farthest").fit(X)
    >>> model.cluster_centers_.round(2).tolist()
    [[1.01, 2.0], [9.99, 2.0]]
    >>> model.memberships([[1, 1], [5.5, 2]]).round(2).tolist()
    [[0.99, 0.01], [0.5, 0.5]]
    """

    fuzzifier: float = 2.0
    search: str = "auto"
    device: str = "auto"

    _sparse = False
    _objective = "objective_"
    _powers: ClassVar[dict[str, Powers]] = powers_of_fit("objective_", SQUARES)

    def memberships(self, X: Any) -> Any:
        """Memberships of every row in every cluster (n, k); they add up to 1 per row."""
        return self._map(X, "memberships")

    def predict_proba(self, X: Any) -> Any:
        """Same as `memberships`, under scikit-learn's name. Memberships are not probabilities."""
        return self.memberships(X)

    def partition_coefficient(self, X: Any, sample_weight: Any = None, normalized: bool = False) -> float:
        r"""Partition coefficient: the mean of :math:`\sum_k u_{ik}^2` over the rows.

        It is between 1 / k (equal memberships) and 1 (each row in one cluster). Normalised [4]_ it is :math:`(k V - 1)
        / (k - 1)`, between 0 and 1 for any k, and 1 for a single cluster.

        Parameters
        ----------
        X : array (n, d)
            Rows.
        sample_weight : array (n,), optional
            Weights of the rows.
        normalized : bool, default=False
            Return the normalised coefficient.

        Returns
        -------
        coefficient : float

        References
        ----------
        .. [4] R. N. Dave (1996), Validating fuzzy partitions obtained through c-shells clustering, Pattern Recognition
           Letters 17, 613-623. https://doi.org/10.1016/0167-8655(96)00026-8
        """
        sums, k = self._membership_sums(X, sample_weight), len(self.cluster_centers_)
        value = sums.square / sums.weight
        if not normalized:
            return float(value)
        return float((k * value - 1) / (k - 1)) if k > 1 else 1.0

    def partition_entropy(self, X: Any, sample_weight: Any = None, normalized: bool = False) -> float:
        r"""Partition entropy: the mean of :math:`-\sum_k u_{ik} \log u_{ik}` over the rows, in nats.

        It is between 0 (each row in one cluster) and log k. Normalised it is divided by log k: between 0 and 1 for any
        k, and 0 for a single cluster.

        Parameters
        ----------
        X, sample_weight, normalized
            As in `partition_coefficient`.

        Returns
        -------
        entropy : float
        """
        sums, k = self._membership_sums(X, sample_weight), len(self.cluster_centers_)
        value = sums.entropy / sums.weight
        if not normalized:
            return float(value)
        return float(value / np.log(k)) if k > 1 else 0.0

    def _membership_sums(self, X: Any, sample_weight: Any) -> MembershipSums:
        source, engine, model = self._open_fitted(X, sample_weight)
        return engine.sum(partial(model.membership_sums, self._params), source)

    def _model(self, summary: Summary | None = None) -> Fuzzy:
        if summary is None:
            return Fuzzy(len(self.cluster_centers_), m=float(self.fuzzifier))
        tol = summary.tolerance(self.tol)
        return Fuzzy(self.n_clusters, self.init, summary.unit, tol, n_total=summary.rows, m=float(self.fuzzifier))

    def _check_options(self) -> tuple[int, int, Any]:
        if not is_number(self.fuzzifier) or not 1 < self.fuzzifier < np.inf:
            raise ParameterError(
                f"fuzzifier must be a finite number above 1 (KMeans is the limit 1); got {self.fuzzifier!r}"
            )
        return super()._check_options()
