"""K-means from the top: the worst cluster is cut in two, until there are enough."""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie import interrupts, kernels
from coterie.base import CENTERS, CENTERS_STORED, Partitional, Summary, callbacks
from coterie.core import loop
from coterie.core.arguments import as_rng, not_negative, one_of, whole_number
from coterie.core.errors import FitInterruptedWarning, ParameterError
from coterie.core.progress import Progress
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.scale import LENGTHS, Powers, ScaleError
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.kmeans.kmeans import check_enough_rows
from coterie.kmeans.lloyd import Lloyd, alike
from coterie.seeding import check_start, starts

SAMPLE = 8192  # rows on which a cut of many rows is sketched
MANY = 4  # times as many


def _is_ordered(tree: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether the two parts of a cluster follow it, side by side, so that every path down the tree ends."""
    first, second = tree["children"].T
    is_split, nodes = first >= 0, np.arange(len(first))
    after = (first[is_split] > nodes[is_split]).all() and (second[is_split] == first[is_split] + 1).all()
    leaves = tree["clusters"][~is_split]
    numbered = (tree["clusters"][is_split] < 0).all() and (np.sort(leaves) == np.arange(len(leaves))).all()
    return bool(after and numbered and (second[~is_split] < 0).all())


@stored("bisecting.Tree", check=_is_ordered, children="index-<m m 2", centers="real m D", clusters="index-<m m")
class Tree(NamedTuple):
    """All clusters there ever were. Node 0 is all rows; the two halves of a node have successive numbers."""

    children: np.ndarray  # (m, 2) the nodes a node was cut into; -1: it is a cluster
    centers: np.ndarray  # (m, d)
    clusters: np.ndarray  # (m,) the label of a node that is a cluster, else -1

    def leaves(self) -> np.ndarray:
        """The nodes that are clusters, in the order of their labels."""
        found = np.flatnonzero(self.clusters >= 0)
        return found[np.argsort(self.clusters[found])]


@dataclass(frozen=True)
class Cost(Stats):
    cost: Any  # of w |x - c|^2


@dataclass(frozen=True)
class Bisected:
    """Answers by a tree of centers: a row goes to the nearer of two, and on from there."""

    def assign(self, tree: Tree, chunk: Chunk) -> np.ndarray:
        labels = np.empty(chunk.X.shape[0], np.int32)
        waiting = [(0, np.arange(len(labels)))]
        while waiting:
            node, rows = waiting.pop()
            first = tree.children[node, 0]
            if first < 0 or len(rows) == 0:
                labels[rows] = tree.clusters[node]
                continue
            X = chunk.X if node == 0 else chunk.X[rows]
            second = Lloyd(2).assign(tree.centers[first : first + 2], Chunk(X, None, chunk.part)) == 1
            waiting += [(first, rows[~second]), (first + 1, rows[second])]
        return labels

    def distances(self, tree: Tree, chunk: Chunk) -> np.ndarray:
        return Lloyd(1).distances(tree.centers[tree.leaves()], chunk)

    def e_step(self, tree: Tree, chunk: Chunk, memo: None = None) -> tuple[Cost, None]:
        labels = self.assign(tree, chunk)
        chunk, centers = alike(chunk, tree.centers[tree.leaves()])
        squares = kernels.for_centers(chunk.X, len(centers)).own_squares(chunk.X, centers, labels)
        return Cost(float(squares.sum() if chunk.w is None else chunk.w @ squares)), None

    def objective(self, tree: Tree, stats: Cost) -> float:
        return float(stats.cost)


@stored("BisectingKMeans", **CENTERS_STORED, tree_="<bisecting.Tree>")
class BisectingKMeans(Partitional):
    r"""Bisecting K-means: all rows are one cluster, and the worst cluster is cut in two until there are `n_clusters`.

    .. math:: J = \sum_i w_i \lVert x_i - \mu_{c(i)} \rVert^2

    Every cut is a `KMeans` of two clusters on the rows of that cluster alone [1]_. The clusters are thus the leaves of
    a tree, and :math:`c(i)` is where row :math:`i` ends when it goes to the nearer of two centers at every fork.
    Clusters are of more even size than those of `KMeans`, and many of them cost little more than few.

    Do not use it where the objective counts: rows cannot cross an early cut, so it is usually worse than that of
    `KMeans`, and a row need not be in the cluster of its nearest center.

    Parameters
    ----------
    n_clusters : int, default=8
        How many clusters.
    init : {'k-means++', 'k-means||', 'forgy', 'random', 'random_partition', 'farthest'} or callable
        Where the two centers of a cut start. A callable is called as ``init(X, 2, random_state)`` with the rows of
        the cluster, or a sample of many, and returns centers.
    n_init : int or 'auto', default='auto'
        Starts of every cut, of which the best is kept; 'auto' is 10 for the random ones and 1 for the others.
    max_iter : int, default=300
        Iterations of one start at most.
    tol : float, default=1e-4
        A cut ends when the squared step of its centers is below `tol` times the mean variance of the columns, within
        the cluster that is cut.
    bisecting_strategy : {'biggest_inertia', 'largest_cluster'}, default='biggest_inertia'
        Which cluster is cut next: the one that costs most, or the one of the largest weight.
    engine, n_jobs, random_state
        As in `KMeans`.
    callback : callable or None
        Called after every cut with a `coterie.core.Progress`; a true return ends the fit.
    verbose : int, default=0
        1 prints a line now and then, 2 one for every cut.

    Attributes
    ----------
    cluster_centers_ : array (k, d)
        In the type of the data; neighbours in the tree are neighbours here.
    labels_ : array (n,) of int32
        Always what `predict` says of the same rows.
    inertia_ : float
        The objective at exactly `cluster_centers_` and `labels_`.
    history_ : array (k,)
        The objective with 1, 2, ... clusters.
    tree_ : Tree
        Three arrays over the 2k - 1 nodes, of which node 0 is all rows: `children` (m, 2), the numbers of the two
        nodes that a node was cut into, or -1; `centers` (m, d); `clusters` (m,), the label of a node that was not
        cut, or -1. A node made later has a higher number.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    A cut costs 4 n' d operations an iteration on the n' rows of its cluster, so that k clusters of even size cost about
    as much as log2(k) fits of two clusters. Of 32 768 rows or more, a sample of 8192 takes most iterations, and all
    rows take the last ones, from where those ended. Beside the rows it keeps a copy of those of the cluster that is
    cut, and 8 bytes a row. A cluster of equal rows is not cut; if only such are left there are fewer clusters than
    asked for, with a warning. The same bits on any number of threads.

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

    def __init__(
        self,
        n_clusters=8,
        *,
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-4,
        bisecting_strategy="biggest_inertia",
        engine="auto",
        n_jobs=None,
        random_state=None,
        callback=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.bisecting_strategy = bisecting_strategy
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cut the rows of `X` in two, and again, until there are enough clusters.

        Parameters
        ----------
        X : array, sparse matrix, frame, LazyFrame, path of a file, or Dask array (n, d)
            The rows.
        y : ignored
        sample_weight : array (n,), optional
            How much each row counts; a row of weight two is that row twice.
        """
        whole_number("n_clusters", self.n_clusters, 1)
        watch = callbacks(self.callback, self.verbose)
        try:
            growth, summary = self._plant(X, sample_weight)
        except ScaleError as error:
            return self._fit_rescaled(error, X, sample_weight)
        check_enough_rows(self.n_clusters, summary)
        history = self._grow(growth, watch)
        tree = growth.tree()
        labels = growth.labels(tree)
        self._learn_columns(X, growth.source)
        self.tree_, self.cluster_centers_, self.labels_ = tree, tree.centers[tree.leaves()], labels
        self.inertia_, self.history_ = history[-1], np.array(history)
        self._n_features_out = len(history)
        if growth.exhausted:
            warn_of_few_rows(len(history), self.n_clusters)
        return self

    _powers: ClassVar[dict[str, Powers]] = {**CENTERS, "tree_": LENGTHS}

    def _plant(self, X: Any, sample_weight: Any) -> tuple[Growth, Summary]:
        """A tree of all rows that can be cut, and their summary."""
        n_init, max_iter = self._check_options()
        source, engine, summary = self._open(X, sample_weight, first=True)
        check_start(self.init, source, 2)
        halve = partial(self._halve, source, engine, n_init, max_iter, as_rng(self.random_state))
        return Growth(source, engine, summary, self.bisecting_strategy, halve), summary

    def _grow(self, growth: Growth, watch: Any) -> list[float]:
        """Cuts until there are enough clusters, or none is left to cut; the objective at first and after each."""
        history = [growth.cost()]
        with interrupts.deferred(), interrupts.outermost() as keeps:
            while len(history) < self.n_clusters:
                try:
                    found = growth.cut()
                except KeyboardInterrupt:
                    if not keeps or len(history) == 1:
                        raise
                    warnings.warn("interrupted: the clusters so far are kept", FitInterruptedWarning, stacklevel=3)
                    break
                if found is None:
                    break
                history.append(growth.cost())
                centers = np.stack([growth.centers[node] for node in growth.open()])
                if watch(Progress("split", len(history) - 1, params=centers, objective=history[-1])):
                    break
        return history

    def _halve(
        self,
        source: Source,
        engine: Engine,
        n_init: int,
        max_iter: int,
        rng: np.random.Generator,
        leaf: Leaf,
    ) -> tuple[loop.Fit, np.ndarray]:
        """Two clusters of the rows of a leaf, and which of them are in the second."""
        spread = leaf.cost / leaf.weight  # the sum of the variances of the columns
        unit = 2.0 ** float(np.ceil(0.5 * np.log2(spread))) if spread > 0 else 1.0
        model = Lloyd(2, self.init, unit, float(self.tol) * spread / source.shape[1], n_total=source.shape[0])
        rows = source if leaf.rows is None else source.subset(leaf.rows)
        few = _sample(rows, rng)
        if few is not None:  # most iterations are those of a few rows; all rows take the last ones
            sketch, _ = self._descend(model, few, engine, n_init, max_iter, None, rng=rng)
            model, n_init = replace(model, start=sketch.params), 1
        found, labels = self._descend(model, rows, engine, n_init, max_iter, None, rng=rng)
        return found, np.asarray(labels) == 1

    def _model(self, summary: Summary | None = None) -> Bisected:
        return Bisected()

    @property
    def _params(self) -> Tree:
        return self.tree_._replace(centers=self._in_fitted_units(self.tree_.centers))

    def _check_options(self) -> tuple[int, int]:
        one_of("bisecting_strategy", self.bisecting_strategy, ("biggest_inertia", "largest_cluster"))
        not_negative("tol", self.tol)
        if not isinstance(self.init, str) and not callable(self.init):
            raise ParameterError(
                "init must be the name of a method or a callable, for every cut starts anew; "
                f"got {type(self.init).__name__}"
            )
        return starts(self.init, self.n_init, if_random=10), whole_number("max_iter", self.max_iter, 1)


def warn_of_few_rows(found: int, n_clusters: int) -> None:
    warnings.warn(
        f"only {found} of {n_clusters} clusters have rows: X has too few distinct rows for more",
        ConvergenceWarning,
        stacklevel=3,
    )


def _sample(rows: Source, rng: np.random.Generator) -> Source | None:
    """Some rows of many, if one of them counts."""
    n = rows.shape[0]
    if n < MANY * SAMPLE:
        return None
    few = rows.subset(np.sort(rng.choice(n, SAMPLE, replace=False)))
    w = few.pick(np.arange(SAMPLE)).w
    return few if w is None or w.any() else None


class Leaf(NamedTuple):
    rank: float  # the least is cut first
    node: int  # decides between equal ranks
    rows: np.ndarray | None  # their numbers; None: all
    weight: float
    cost: float


class Growth:
    """A tree that grows: its nodes, and the clusters that may yet be cut."""

    def __init__(
        self,
        source: Source,
        engine: Engine,
        summary: Summary,
        strategy: str,
        halve: Callable[[Leaf], tuple[loop.Fit, np.ndarray]],
    ):
        self.source, self.engine, self.halve = source, engine, halve
        self.by_weight = strategy == "largest_cluster"
        self.children: list[tuple[int, int]] = []
        self.centers: list[np.ndarray] = []
        self.costs: list[float] = []
        self.rows: list[Any] = []  # of a node that was not cut; None: cut
        self.cuts: list[tuple[int, float]] = []  # the node that was cut, and the cost or weight that singled it out
        self.waiting: list[Leaf] = []
        self.exhausted = False
        mean = summary.mean.astype(source.dtype)
        stats, _ = engine.scan(partial(Lloyd(1, bounds=False).e_step, mean[None]), source, None)
        self._add(mean, None, float(stats.weight[0]), float(stats.cost[0]))

    def cut(self, least: float = 0.0) -> loop.Fit | None:
        """Cuts the first cluster in rank, of a cost (weight) of `least` at least; None if there is none to cut."""
        while self.waiting and -self.waiting[0].rank >= least:
            leaf = heapq.heappop(self.waiting)
            found, second = self.halve(leaf)
            if (found.stats.weight > 0).all():  # else its rows are all alike
                self._cut(leaf, found, second)
                return found
        self.exhausted = not self.waiting
        return None

    def _cut(self, leaf: Leaf, found: loop.Fit, second: np.ndarray) -> None:
        self.children[leaf.node] = len(self.children), len(self.children) + 1
        self.cuts.append((leaf.node, -leaf.rank))
        for j, half in enumerate((~second, second)):
            rows = np.flatnonzero(half) if leaf.rows is None else leaf.rows[half]
            self._add(found.params[j], rows, float(found.stats.weight[j]), float(found.stats.cost[j]))
        self.rows[leaf.node] = None

    def cost(self) -> float:
        """The objective."""
        return sum(self.costs[node] for node in self.open())

    def open(self) -> list[int]:
        """The nodes that were not cut, those of one branch beside each other."""
        found, stack = [], [0]
        while stack:
            node = stack.pop()
            first, second = self.children[node]
            if first < 0:
                found.append(node)
            else:
                stack += [second, first]
        return found

    def tree(self) -> Tree:
        leaves = self.open()
        clusters = np.full(len(self.children), -1, np.int32)
        clusters[leaves] = np.arange(len(leaves))
        return Tree(np.array(self.children, np.int32), np.stack(self.centers), clusters)

    def labels(self, tree: Tree) -> Any:
        """What the tree says of every row; where there is room for it, it is known already."""
        room = self.source.room(-1, np.int32)
        if room[0] is None:
            return self.source.join(self.engine.map(partial(Bisected().assign, tree), self.source))
        labels = self.source.join(room)
        for cluster, node in enumerate(tree.leaves()):
            labels[self.rows[node]] = cluster
        return labels

    def _add(self, center: np.ndarray, rows: np.ndarray | None, weight: float, cost: float) -> None:
        node = len(self.children)
        self.children.append((-1, -1))
        self.centers.append(center)
        self.costs.append(cost)
        self.rows.append(slice(None) if rows is None else rows)
        if cost > 0:
            heapq.heappush(self.waiting, Leaf(-weight if self.by_weight else -cost, node, rows, weight, cost))
