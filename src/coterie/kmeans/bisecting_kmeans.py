"""Bisecting K-means: split one cluster in two until there are enough clusters."""

import copy
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie import interrupts, kernels
from coterie.base import CENTERS, CENTERS_STORED, Partitional, Summary, callbacks
from coterie.core import loop
from coterie.core.arguments import as_rng, not_negative, one_of, whole_number
from coterie.core.arrays import is_sparse
from coterie.core.progress import Progress
from coterie.core.protocols import Engine, Source
from coterie.core.scale import LENGTHS, Powers
from coterie.core.stored import stored
from coterie.errors import ParameterError, ScaleError
from coterie.kmeans.bisecting_tree import Growth, Leaf, Tree, TreeModel
from coterie.kmeans.center_estimator import check_enough_rows
from coterie.kmeans.lloyd import Lloyd
from coterie.seeding import check_start, starts

SAMPLE = 8192  # random rows for the first iterations of a split of many rows
MANY = 4  # a cluster has many rows from this multiple of SAMPLE on
FAST_BYTES = 1 << 24  # maximum size of dense rows of which the kernel for two clusters makes a copy, on all engines


@dataclass(frozen=True)
class TwoMeans(Lloyd):
    """K-means with two clusters: the first `fast_iter` iterations are one call of a kernel, if there are few rows.

    The kernel neither resolves ties nor records the objective, so the last iterations are those of `Lloyd`.
    """

    fast_iter: int = 0

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> np.ndarray:
        centers, (n, d) = super().init(source, engine, rng), source.shape
        if n * d * source.dtype.itemsize > FAST_BYTES or is_sparse((chunk := source.pick(slice(None))).X):
            return centers
        ops = kernels.select("two_means", max(n, self.n_total), d)
        fast, _ = ops.two_means(chunk.X, chunk.w, centers, self.unit, self.tol, self.fast_iter)
        return fast.astype(centers.dtype) if np.isfinite(fast).all() else centers


@stored(**CENTERS_STORED, tree_="<bisecting.Tree>")
@dataclass(eq=False, repr=False, kw_only=True)
class BisectingKMeans(Partitional):
    r"""Bisecting K-means: start with one cluster and split the worst cluster in two until there are `n_clusters`.

    .. math:: J = \sum_i w_i \lVert x_i - \mu_{c(i)} \rVert^2

    Every split is a K-means fit with two clusters on the rows of one cluster [1]_. The clusters are the leaves of a
    tree, and :math:`c(i)` is the leaf that row :math:`i` reaches if it goes to the nearer of two centers at every node.

    Use it for many clusters, which cost little more than few, for clusters of more even size than those of `KMeans`,
    and if a hierarchy is useful. Use `KMeans` if the objective matters: rows cannot cross an early split, so the
    objective is usually worse, and a row need not be in the cluster of its nearest center.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    init : {'auto', 'k-means++', 'k-means||', 'forgy', 'random', 'random_partition', 'farthest'} or callable
        Initialisation method of the two centers of a split. Default: 'auto'. A callable is called as ``init(X, 2,
        random_state)`` with the rows of the cluster, or a random sample if there are many, and returns centers.
    n_init : int or 'auto', default='auto'
        Number of initialisations of every split; the best result is kept. 'auto' is 10 for 'forgy', 'random',
        'random_partition' and callables, and 1 for the others.
    max_iter : int, default=300
        Maximum number of iterations of one run.
    tol : float, default=1e-4
        Relative tolerance. A split stops when the squared movement of its centers falls below `tol` times the mean
        variance of the columns within the cluster that is split.
    bisecting_strategy : {'biggest_inertia', 'largest_cluster'}, default='biggest_inertia'
        Cluster to split next: the one with the largest inertia, or the one with the largest weight.
    engine, n_jobs, random_state
        As in `KMeans`.
    callback : callable or None, default=None
        Called after every split with a `coterie.core.Progress`. A true return value stops the fit.
    verbose : int, default=0
        1 prints a line from time to time, 2 prints a line for every split.
    copy_x : bool, default=True
        Ignored, because `X` is never modified. For compatibility with scikit-learn.
    algorithm : {'lloyd', 'elkan'}, default='lloyd'
        Ignored, because both give the same result. For compatibility with scikit-learn.

    Attributes
    ----------
    cluster_centers_ : array (k, d)
        Centers, in the dtype of the data. Clusters that are neighbours in the tree are neighbours here.
    labels_ : array (n,) of int32
        Cluster of each row. `predict` returns the same labels for the same rows.
    inertia_ : float
        Objective at exactly `cluster_centers_` and `labels_`.
    history_ : array (k,)
        Objective with 1, 2, ... clusters.
    n_iter_ : int
        Number of splits.
    converged_ : bool
        Whether K-means converged before `max_iter` in every split.
    tree_ : Tree
        Three arrays over the 2k - 1 nodes; node 0 has all rows. `children` (m, 2) are the indices of the two children
        of a node, or -1 for a leaf. `centers` (m, d) are the centers. `clusters` (m,) are the labels of the leaves, or
        -1 for a node that was split. Nodes are numbered in the order in which they were created.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    A split costs 4 n' d operations per iteration for the n' rows of its cluster. k clusters of even size therefore cost
    about as much as log2(k) fits with two clusters. With 32 768 rows or more, most iterations use a random sample of
    8192 rows, and the last iterations use all rows. The memory is a copy of the rows of the cluster that is split (two
    copies up to 16 MB), and 8 bytes per row. A cluster of equal rows is not split. If only such clusters are left,
    there are fewer clusters than `n_clusters`, with a warning. The result does not depend on the number of threads.

    References
    ----------
    .. [1] M. Steinbach, G. Karypis, V. Kumar (2000), A comparison of document clustering techniques, KDD Workshop on
       Text Mining; Technical Report 00-034, University of Minnesota.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import BisectingKMeans
    >>> X = np.array([[1, 1], [10, 1], [3, 1], [10, 0], [2, 1], [10, 2], [10, 8], [10, 9], [10, 10]])
    >>> model = BisectingKMeans(n_clusters=3, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.tolist())
    [[2.0, 1.0], [10.0, 1.0], [10.0, 9.0]]
    >>> len(model.tree_.children)
    5
    """

    bisecting_strategy: str = "biggest_inertia"
    copy_x: bool = True
    algorithm: str = "lloyd"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Split the rows of `X` in two, repeatedly, until there are `n_clusters` clusters.

        Parameters
        ----------
        X : array, sparse matrix, frame, LazyFrame, path of a file, or Dask array (n, d)
            Rows to cluster.
        y : ignored
        sample_weight : array (n,), optional
            Weights of the rows. A row of weight two has the effect of that row twice.

        Returns
        -------
        self : BisectingKMeans
            The fitted estimator.
        """
        whole_number("n_clusters", self.n_clusters, 1)
        callback = callbacks(self.callback, self.verbose)
        X = self._read(X)
        try:
            growth, summary = self._new_tree(X, sample_weight)
        except ScaleError as error:
            return self._fit_rescaled(error, X, sample_weight)
        check_enough_rows(self.n_clusters, summary)
        history = self._split_clusters(growth, callback)
        tree = growth.tree()
        labels = growth.labels(tree)
        self._learn_columns(X, growth.source)
        self.tree_, self.cluster_centers_, self.labels_ = tree, tree.centers[tree.leaves()], labels
        self.inertia_, self.history_ = history[-1], np.array(history)
        self.n_iter_, self.converged_ = len(history) - 1, growth.converged
        self._n_features_out = len(history)
        if growth.exhausted:
            warn_of_few_rows(len(history), self.n_clusters)
        return self

    _powers: ClassVar[dict[str, Powers]] = {**CENTERS, "tree_": LENGTHS}

    def _new_tree(self, X: Any, sample_weight: Any) -> tuple[Growth, Summary]:
        """Growing tree with one leaf of all rows, and the summary of the rows."""
        n_init, max_iter = self._check_options()
        source, engine, summary = self._open(X, sample_weight, first=True)
        check_start(self.init, source, 2)
        split = partial(self._split, source, engine, n_init, max_iter, as_rng(self.random_state))
        return Growth(source, engine, summary, self.bisecting_strategy, split), summary

    def _split_clusters(self, growth: Growth, callback: Any) -> list[float]:
        """Split until there are enough clusters or none can be split; return the objective of every step."""
        history = [growth.cost()]
        with interrupts.deferred(), interrupts.outermost() as is_outermost:
            while len(history) < self.n_clusters:
                try:
                    result = growth.split()
                except KeyboardInterrupt as error:
                    interrupts.keep_result(error, is_outermost, len(history) > 1, "the clusters so far are kept")
                    break
                if result is None:
                    break
                history.append(growth.cost())
                centers = np.stack([growth.centers[node] for node in growth.leaves()])
                if callback(Progress("split", len(history) - 1, params=centers, objective=history[-1])):
                    break
        return history

    def _split(
        self,
        source: Source,
        engine: Engine,
        n_init: int,
        max_iter: int,
        rng: np.random.Generator,
        leaf: Leaf,
    ) -> tuple[loop.Fit, np.ndarray]:
        """Two clusters of the rows of a leaf, and a mask of the rows in the second."""
        spread = leaf.cost / leaf.weight  # the sum of the variances of the columns
        unit = 2.0 ** float(np.ceil(0.5 * np.log2(spread))) if spread > 0 else 1.0
        tol, fast_iter = float(self.tol) * spread / source.shape[1], max_iter // 2
        model = TwoMeans(2, self.init, unit, tol, n_total=source.shape[0], fast_iter=fast_iter)
        rows = source if leaf.rows is None else source.subset(leaf.rows)
        sample = _sample(rows, rng)
        if sample is not None:  # most iterations use the sample; the last ones use all rows
            approximate, _ = self._descend(model, sample, engine, n_init, max_iter - fast_iter, None, rng=rng)
            model, n_init = replace(model, start=approximate.params), 1
        result, labels = self._descend(model, rows, engine, n_init, max_iter - fast_iter, None, rng=rng)
        return result, np.asarray(labels) == 1

    def _model(self, summary: Summary | None = None) -> TreeModel:
        return TreeModel()

    @property
    def _params(self) -> Tree:
        return self.tree_._replace(centers=self._in_fitted_units(self.tree_.centers))

    def _check_options(self) -> tuple[int, int]:
        one_of("bisecting_strategy", self.bisecting_strategy, ("biggest_inertia", "largest_cluster"))
        one_of("algorithm", self.algorithm, ("lloyd", "elkan"))
        one_of("copy_x", self.copy_x, (True, False))
        not_negative("tol", self.tol)
        if not isinstance(self.init, str) and not callable(self.init):
            raise ParameterError(
                "init must be the name of a method or a callable, because every split needs new initial centers; "
                f"got {type(self.init).__name__}"
            )
        return starts(self.init, self.n_init, if_random=10), whole_number("max_iter", self.max_iter, 1)


def with_first_splits(model: BisectingKMeans, k: int) -> BisectingKMeans:
    """A copy of a fitted model with `k` clusters: those after its first k - 1 splits."""
    smaller = copy.copy(model).set_params(n_clusters=k)
    smaller.tree_, new_labels = model.tree_.first_nodes(2 * k - 1)
    smaller.cluster_centers_ = smaller.tree_.centers[smaller.tree_.leaves()]
    smaller.labels_, smaller._n_features_out = new_labels[model.labels_], k
    smaller.history_, smaller.n_iter_ = model.history_[:k], k - 1
    smaller.inertia_ = float(smaller.history_[-1])
    return smaller


def warn_of_few_rows(count: int, n_clusters: int) -> None:
    """Warn that there are too few distinct rows for `n_clusters` clusters."""
    warnings.warn(
        f"only {count} of {n_clusters} clusters have rows: X has too few distinct rows for more",
        ConvergenceWarning,
        stacklevel=3,
    )


def _sample(rows: Source, rng: np.random.Generator) -> Source | None:
    """Random sample of many rows; None if there are few, or if all sampled rows have weight zero."""
    n = rows.shape[0]
    if n < MANY * SAMPLE:
        return None
    sample = rows.subset(np.sort(rng.choice(n, SAMPLE, replace=False)))
    w = sample.pick(np.arange(SAMPLE)).w
    return sample if w is None or w.any() else None
