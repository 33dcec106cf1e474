"""The kernel K-means estimator."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from coterie.base import Partitional, Summary, callbacks, summarize
from coterie.core.arguments import as_rng, not_negative, one_of, whole_number
from coterie.core.errors import InputError, ParameterError
from coterie.core.protocols import Engine, Source
from coterie.core.stored import stored
from coterie.kmeans.kernel_functions import (
    Kernel,
    Precomputed,
    as_kernel,
    check_matrix,
    facts,
    is_symmetric,
    kernel_matrix,
)
from coterie.kmeans.kernel_lloyd import KernelLloyd, Partition
from coterie.kmeans.kernel_seeding import check_labels, check_start
from coterie.kmeans.kmeans import check_enough_rows
from coterie.kmeans.lloyd import warn_of_empty_clusters
from coterie.kmeans.nystrom import FeatureLloyd, features_of
from coterie.seeding import starts

EXACT_UP_TO = 10_000  # rows
STORED = 1 << 30  # bytes of a kernel matrix that is kept
PART_ROWS = 256  # rows whose products with all others are looked at together
LANDMARKS = 500


def _is_consistent(model: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether there are features exactly for Nyström's approximation, whose centers are an array."""
    return (model["_features"] is not None) == isinstance(model["_centers"], np.ndarray)


@stored(
    "KernelKMeans",
    check=_is_consistent,
    _kernel="<kernel.*>",
    _centers="real K R | <kernel_kmeans.Means>",
    _features="none | <kernel_kmeans.Features>",
    labels_="index<K *",
    approximation_="text",
)
class KernelKMeans(Partitional):
    r"""Kernel K-means: K-means of the rows :math:`\varphi(x)` of a space of which only products are known.

    .. math:: J = \sum_i w_i \min_k \lVert \varphi(x_i) - m_k \rVert^2, \qquad
              \varphi(x) \cdot \varphi(y) = k(x, y)

    Means are :math:`m_k = \sum_{c(i) = k} w_i \varphi(x_i) / W_k`, so that distances need products alone:
    :math:`k(x, x) - 2 \sum_{c(j) = k} w_j k(x, x_j) / W_k + \lVert m_k \rVert^2` [1]_. Rows join their nearest mean
    until none moves, then single rows move as long as that pays once the means have followed [2]_. The objective never
    rises, also where the kernel is not positive definite; the answer is a local optimum.

    Do not use it where clusters are round: `KMeans` finds them at a fraction of the cost. Nor without thought for the
    kernel: a wide `rbf` (small gamma) is K-means, a narrow one finds any cluster it is given.

    Parameters
    ----------
    n_clusters : int, default=8
        How many clusters.
    kernel : {'rbf', 'linear', 'poly', 'polynomial', 'sigmoid', 'cosine', 'precomputed'} or callable, default='rbf'
        'linear' is x·y, and the fit that of K-means; 'rbf' is exp(-gamma ‖x - y‖²); 'poly' is
        (gamma x·y + coef0)^degree; 'sigmoid' is tanh(gamma x·y + coef0), in general not positive definite; 'cosine' is
        x·y of rows at unit length. 'precomputed': `X` is the square and symmetric matrix of products, and `predict` is
        given those of new rows with the rows of the fit (n_new, n). A callable is called as
        ``kernel(X, Y, **kernel_params)`` with blocks of rows and returns all their products (len(X), len(Y)).
    gamma : None, 'scale', 'auto' or float, default=None
        'scale' is 1 / (sum of the variances of the columns), 'auto' is 1 / (number of columns); None is 'scale' for
        'rbf', else 'auto'.
    degree : int, default=3
        Of 'poly'.
    coef0 : float, default=1
        Of 'poly' and 'sigmoid'.
    kernel_params : dict or None
        More arguments of a kernel that is a callable.
    approximation : {'auto', 'exact', 'nystrom'}, default='auto'
        'exact' looks at all n² products in every full pass. 'nystrom' gives rows coordinates by their products with
        `n_landmarks` rows [3]_, and runs K-means on those. 'auto' is exact up to 10 000 rows, and for a precomputed
        kernel. `approximation_` says which it was.
    n_landmarks : int or None, default=None
        None is 500, or ten for each cluster if that is more; never more than there are rows. With all rows the
        features are exact.
    init : {'k-means++', 'forgy', 'random', 'random_partition', 'farthest'}, array (n,) of int, or callable
        Where it starts. An array is a cluster for each row; a callable is called for every start as
        ``init(X, n_clusters, random_state)`` and returns such an array.
    n_init : int or 'auto', default='auto'
        Starts, of which the best is kept; 'auto' is 10 for the random ones and 1 for the others.
    max_iter : int, default=300
        Iterations of one start at most.
    tol : float, default=1e-5
        A fit ends when an iteration lowers the objective by no more than this share of it.
    engine, n_jobs, random_state, callback, verbose
        As in `KMeans`; a callback sees means as `coterie.kmeans.kernel_lloyd.Means`.

    Attributes
    ----------
    labels_ : array (n,) of int32
        Always what `predict` says of the same rows.
    inertia_ : float
        The objective. By Nyström's features it is that of the features.
    history_ : array (iterations + 1,)
        The objective at the start and after every iteration of the best start.
    n_iter_ : int
        Iterations of the best start.
    converged_ : bool
        Whether it ended by itself.
    approximation_ : {'exact', 'nystrom'}
        How products were found.
    gamma_ : float or None
        The gamma used; None where the kernel has none.
    landmarks_ : array (m,) of int
        The rows that Nyström's features were made from; there without any in an exact fit.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Exact: the kernel matrix takes n² d operations to make. It is kept where it takes no more than 1 GiB (11 585 rows of
    float64), in the type of the data, and made anew in blocks in every pass where it would take more; both give the
    same bits. A full pass takes n² k operations, one in which m rows change cluster n m k. Beside rows and matrix there
    are 16 k bytes a row. The fitted model keeps the rows: `predict` costs n products a row.

    Nyström: m landmarks take n m d operations once, and n m² for the features, of which up to 1 GiB are kept; then
    iterations of K-means on them. Eigenvalues of the products of landmarks below rounding are left out, and negative
    ones too.

    float32 rows give float32 products, good to about 1e-7 gamma ‖x‖² of 'rbf'; sums and distances are in float64. Rows
    of 'linear' and 'rbf' are taken about their mean. Distances that differ by less than rounding can explain are equal,
    and of equally near means the first counts. Sparse rows stay sparse (a callable is given sparse blocks, too).

    References
    ----------
    .. [1] I. S. Dhillon, Y. Guan, B. Kulis (2004), Kernel k-means, spectral clustering and normalized cuts, KDD,
       551-556. https://doi.org/10.1145/1014052.1014118
    .. [2] M. Telgarsky, A. Vattani (2010), Hartigan's method: k-means clustering without Voronoi, AISTATS, PMLR 9,
       820-827.
    .. [3] C. K. I. Williams, M. Seeger (2001), Using the Nyström method to speed up kernel machines, NIPS 13, 682-688.

    Examples
    --------
    Two rings, one inside the other, which no K-means can tell apart:

    >>> import numpy as np
    >>> from coterie import KernelKMeans
    >>> angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> X = np.concatenate([ring, 4 * ring])
    >>> model = KernelKMeans(n_clusters=2, gamma=0.2, n_init=5, random_state=0).fit(X)
    >>> np.bincount(model.labels_).tolist()
    [100, 100]
    >>> bool(model.predict([[0.0, 1.1]])[0] == model.labels_[0])
    True
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        kernel="rbf",
        gamma=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        approximation="auto",
        n_landmarks=None,
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-5,
        engine="auto",
        n_jobs=None,
        random_state=None,
        callback=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.approximation = approximation
        self.n_landmarks = n_landmarks
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of `X`.

        Parameters
        ----------
        X : array, sparse matrix, frame, LazyFrame, or path of a file (n, d)
            The rows; if precomputed, their products (n, n).
        y : ignored
        sample_weight : array (n,), optional
            How much each row counts; a row of weight two is that row twice.
        """
        n_init, max_iter, watch = self._check_options()
        source, engine, summary = self._given(X, sample_weight, first=True)
        check_enough_rows(self.n_clusters, summary)
        check_start(self.init, source.shape[0], self.n_clusters)
        kernel = as_kernel(self, source, summary)
        approximation = self._approximation(source.shape[0])
        descend = self._descend_exactly if approximation == "exact" else self._descend_by_features
        found, labels = descend(kernel, source, engine, n_init=n_init, max_iter=max_iter, callback=watch)
        self._learn_columns(X, source)
        self._kernel, self.approximation_, self.gamma_ = kernel, approximation, getattr(kernel, "gamma", None)
        self.labels_, self.inertia_, self.history_ = labels, found.objective, np.array(found.history)
        self.n_iter_, self.converged_ = len(found.history) - 1, found.converged
        self._n_features_out = self.n_clusters
        warn_of_empty_clusters(found.stats, "X has too few distinct rows for more")
        return self

    def _descend_exactly(self, kernel: Kernel, source: Any, engine: Engine, **how: Any) -> tuple[Any, np.ndarray]:
        source = in_parts(source)
        small = source.shape[0] ** 2 * source.dtype.itemsize <= STORED
        matrix = source if isinstance(kernel, Precomputed) else kernel_matrix(kernel, source, engine) if small else None
        kind = KernelLloyd if kernel.definite else Partition
        start = partial(self.init, source.X) if callable(self.init) else self.init
        model = kind(self.n_clusters, kernel, start, matrix is not None, float(self.tol))
        found, labels = self._descend(model, source if matrix is None else matrix, engine, **how)
        rows = None if isinstance(kernel, Precomputed) else kernel.ready(source.X).copy()
        self._centers, self._features = found.params._replace(rows=rows), None
        self.landmarks_ = np.zeros(0, np.int64)
        inertia = KernelLloyd.objective(
            model, found.params, found.stats
        )  # at the nearest means, no more than at others
        return replace(found, objective=inertia, history=(*found.history[:-1], inertia)), labels

    def _descend_by_features(self, kernel: Kernel, source: Any, engine: Engine, **how: Any) -> tuple[Any, np.ndarray]:
        rng, n = as_rng(self.random_state), source.shape[0]
        m = max(LANDMARKS, 10 * self.n_clusters) if self.n_landmarks is None else self.n_landmarks
        features, rows = features_of(source, engine, kernel, min(m, n), rng)
        mapped = features.source(source, engine)
        by_name = isinstance(self.init, str)
        model = FeatureLloyd(
            self.n_clusters,
            self.init if by_name else "k-means++",
            summarize(mapped, engine).unit,
            labels=None if by_name else partial(labels_of, self.init, source, self.n_clusters),
            gain=float(self.tol),
        )
        found, labels = self._descend(model, mapped, engine, rng=rng, **how)
        self._centers, self._features, self.landmarks_ = found.params, features, rows
        return found, labels

    def _approximation(self, n: int) -> str:
        if self.kernel == "precomputed":
            return "exact"
        if self.approximation == "auto":
            return "exact" if n <= EXACT_UP_TO else "nystrom"
        return self.approximation

    def _model(self, summary: Summary | None = None) -> Any:
        if self.approximation_ == "nystrom":
            return FeatureLloyd(self.n_clusters, bounds=False)
        return KernelLloyd(self.n_clusters, self._kernel, stored=isinstance(self._kernel, Precomputed))

    @property
    def _params(self) -> Any:
        return self._centers

    def _ready(self, source: Any, engine: Engine, first: bool) -> Any:
        return in_parts(source) if self._features is None else self._features.source(source, engine)

    def _given(self, X: Any, sample_weight: Any, first: bool, y: Any = None) -> tuple[Source, Engine, Summary]:
        source, engine, summary = super()._given(X, sample_weight, first, y)
        if source.engine == "dask":
            raise InputError(
                "X is a Dask array: KernelKMeans needs the product of every two rows, in memory; pass X.compute(), or "
                "a sample of the rows"
            )
        if self.kernel == "precomputed":
            if first:
                check_matrix(source.X)
            if is_symmetric(source.X):
                source = replace(source, y=facts(source.X.diagonal(), np.arange(len(source.X))))
        return source, engine, summary

    def _check_options(self) -> tuple[int, int, Any]:
        whole_number("n_clusters", self.n_clusters, 1)
        one_of("approximation", self.approximation, ("auto", "exact", "nystrom"))
        if self.kernel == "precomputed" and self.approximation == "nystrom":
            raise ParameterError("approximation='nystrom' needs rows; a precomputed kernel is always exact")
        if self.n_landmarks is not None:
            whole_number("n_landmarks", self.n_landmarks, self.n_clusters)
        whole_number("degree", self.degree, 1)
        if isinstance(self.coef0, bool) or not isinstance(self.coef0, int | float | np.number):
            raise ParameterError(f"coef0 must be a number; got {self.coef0!r}")
        not_negative("tol", self.tol)
        watch = callbacks(self.callback, self.verbose)
        return starts(self.init, self.n_init, if_random=10), whole_number("max_iter", self.max_iter, 1), watch

    @property
    def _sparse(self) -> bool:
        return self.kernel != "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def in_parts(source: Any) -> Any:
    """Parts are cut by what is computed on them, their products with n rows, not by how wide the rows are."""
    return replace(source, chunk_rows=PART_ROWS)


def labels_of(init: Any, source: Any, k: int, rng: np.random.Generator) -> np.ndarray:
    """The labels that a start is given as, or that a function makes."""
    if callable(init):
        init = init(source.X, k, np.random.RandomState(rng.integers(2**32)))
    return check_labels(init, source.shape[0], k, source.w)
