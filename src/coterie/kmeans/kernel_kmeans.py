"""Kernel K-means."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from coterie.base import Partitional, Summary, summarize
from coterie.core.arguments import as_rng, is_number, one_of, whole_number
from coterie.core.in_memory import check_in_memory
from coterie.core.protocols import ClusterEngine, Engine, Source
from coterie.core.scale import Powers, Scale, multiplied
from coterie.core.stored import stored
from coterie.errors import ParameterError, ScaleError
from coterie.kmeans.center_estimator import check_enough_rows, checked_options
from coterie.kmeans.kernel_functions import (
    Kernel,
    Precomputed,
    as_kernel,
    check_matrix,
    diagonal_and_duplicates,
    is_symmetric,
    kernel_matrix,
)
from coterie.kmeans.kernel_lloyd import IndefiniteKernelLloyd, KernelLloyd
from coterie.kmeans.kernel_seeding import check_start, initial_labels
from coterie.kmeans.lloyd import warn_of_empty_clusters
from coterie.kmeans.nystrom import FeatureLloyd, nystrom_features

EXACT_UP_TO = 10_000  # rows
STORED = 1 << 30  # maximum number of bytes of a stored kernel matrix
PART_ROWS = 256  # rows of one part of the kernel matrix
LANDMARKS = 500  # default number of landmarks


def _is_consistent(model: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether features exist exactly for the Nyström approximation, whose centers are an array."""
    return (model["_features"] is not None) == isinstance(model["_centers"], np.ndarray)


@stored(
    check=_is_consistent,
    _kernel="<kernel.*>",
    _centers="real K R | <kernel_kmeans.Means>",
    _features="none | <kernel_kmeans.Features>",
    labels_="index<K *",
    approximation_="text",
)
@dataclass(eq=False, repr=False, kw_only=True)
class KernelKMeans(Partitional):
    r"""Kernel K-means: K-means in the feature space :math:`\varphi(x)` of a kernel.

    .. math:: J = \sum_i w_i \min_k \lVert \varphi(x_i) - m_k \rVert^2, \qquad
              \varphi(x) \cdot \varphi(y) = k(x, y)

    The means :math:`m_k = \sum_{c(i) = k} w_i \varphi(x_i) / W_k` have no coordinates, but distances only need values
    of the kernel: :math:`k(x, x) - 2 \sum_{c(j) = k} w_j k(x, x_j) / W_k + \lVert m_k \rVert^2` [1]_. Rows are assigned
    to their nearest mean until none changes. Then single rows are moved while that lowers the objective, with the means
    updated after each move [2]_. The objective never increases, even if the kernel is not positive definite. The result
    is a local optimum.

    Use it for clusters that are not linearly separable, such as rings. For round clusters, `KMeans` is much faster. The
    kernel matters: a wide 'rbf' kernel (small gamma) gives K-means, and a very narrow one can produce arbitrary
    clusters.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    kernel : {'rbf', 'linear', 'poly', 'polynomial', 'sigmoid', 'cosine', 'precomputed'} or callable, default='rbf'
        Kernel function. 'linear' is x·y, which gives K-means. 'rbf' is exp(-gamma ‖x - y‖²). 'poly' is (gamma x·y +
        coef0)^degree. 'sigmoid' is tanh(gamma x·y + coef0), which in general is not positive definite. 'cosine' is x·y
        for rows of unit length. With 'precomputed', `X` is the symmetric kernel matrix (n, n), and `predict` takes the
        kernel between new rows and the rows of the fit (n_new, n). A callable is called as ``kernel(X, Y,
        **kernel_params)`` with blocks of rows and returns an array (len(X), len(Y)).
    gamma : None, 'scale', 'auto' or float, default=None
        Coefficient of 'rbf', 'poly' and 'sigmoid'. 'scale' is 1 / (sum of the variances of the columns), 'auto' is 1 /
        (number of columns). None is 'scale' for 'rbf' and 'auto' for the others.
    degree : int, default=3
        Degree of 'poly'.
    coef0 : float, default=1
        Constant term of 'poly' and 'sigmoid'.
    kernel_params : dict or None, default=None
        Additional arguments of a callable kernel.
    approximation : {'auto', 'exact', 'nystrom'}, default='auto'
        'exact' uses all n² values of the kernel in every full pass. 'nystrom' computes coordinates of the rows from
        their kernel values with `n_landmarks` rows [3]_, and runs K-means on these features. 'auto' is exact up to 10
        000 rows and for a precomputed kernel. `approximation_` is the method that was used.
    n_landmarks : int or None, default=None
        Number of landmarks, at most the number of rows. None is 500, or ten per cluster if that is more. With all rows
        as landmarks the features are exact.
    init : {'k-means++', 'forgy', 'random', 'random_partition', 'farthest'}, array (n,) of int, or callable
        Initialisation method. Default: 'k-means++'. An array has the initial cluster of each row. A callable is called
        for every initialisation as ``init(X, n_clusters, random_state)`` and returns such an array.
    n_init : int or 'auto', default='auto'
        Number of initialisations; the best result is kept. 'auto' is 10 for 'forgy', 'random', 'random_partition' and
        callables, and 1 for the others.
    max_iter : int, default=300
        Maximum number of iterations of one run.
    tol : float, default=1e-5
        Relative tolerance. Iterations stop when the objective decreases by no more than this fraction.
    engine, n_jobs, random_state, callback, verbose
        As in `KMeans`. The `params` of a `Progress` are a `coterie.kmeans.kernel_lloyd.Means`.

    Attributes
    ----------
    labels_ : array (n,) of int32
        Cluster of each row. `predict` returns the same labels for the same rows.
    inertia_ : float
        Objective. With the Nyström approximation it is the objective of the features.
    history_ : array (n_iter + 1,)
        Objective of the best run, initially and after every iteration.
    n_iter_ : int
        Number of iterations of the best run.
    converged_ : bool
        True if the best run converged before `max_iter`.
    approximation_ : {'exact', 'nystrom'}
        Method that was used.
    gamma_ : float or None
        Value of gamma; None if the kernel has none.
    landmarks_ : array (m,) of int
        Indices of the landmark rows; empty for an exact fit.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Exact: the kernel matrix takes n² d operations. It is stored in the dtype of the data if it needs at most 1 GiB (11
    585 rows of float64). Otherwise it is recomputed in blocks in every pass; the result is identical. A full pass takes
    n² k operations, and a pass in which m rows change cluster takes n m k operations. In addition to the rows and the
    matrix it needs 16 k bytes per row. The fitted model contains the rows: `predict` computes n kernel values per row.

    Nyström: m landmarks take n m d operations once, and n m² operations for the features, of which up to 1 GiB are
    stored. Then K-means runs on the features. Eigenvalues of the kernel matrix of the landmarks that are negative or
    below rounding are dropped.

    float32 rows give float32 kernel values, accurate to about 1e-7 gamma ‖x‖² for 'rbf'. Sums and distances are in
    float64. Rows are centered for 'linear' and 'rbf'. Distances whose difference is within rounding count as equal, and
    of equally near means the first is chosen. Sparse rows stay sparse; a callable kernel then receives sparse blocks.

    References
    ----------
    .. [1] I. S. Dhillon, Y. Guan, B. Kulis (2004), Kernel k-means, spectral clustering and normalized cuts, KDD,
       551-556. https://doi.org/10.1145/1014052.1014118
    .. [2] M. Telgarsky, A. Vattani (2010), Hartigan's method: k-means clustering without Voronoi, AISTATS, PMLR 9,
       820-827.
    .. [3] C. K. I. Williams, M. Seeger (2001), Using the Nyström method to speed up kernel machines, NIPS 13, 682-688.

    Examples
    --------
    Two concentric rings, which K-means cannot separate:

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

    init: Any = "k-means++"
    kernel: Any = "rbf"
    gamma: Any = None
    degree: int = 3
    coef0: float = 1
    kernel_params: dict[str, Any] | None = None
    approximation: str = "auto"
    n_landmarks: int | None = None
    tol: float = 1e-5

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of `X`.

        Parameters
        ----------
        X : array, sparse matrix, frame, LazyFrame, or path of a file (n, d)
            Rows to cluster; for a precomputed kernel, the kernel matrix (n, n).
        y : ignored
        sample_weight : array (n,), optional
            Weights of the rows. A row of weight two has the effect of that row twice.

        Returns
        -------
        self : KernelKMeans
            The fitted estimator.
        """
        n_init, max_iter, callback = self._check_options()
        X, scale = self._read(X), Scale(0, 0)
        try:
            source, engine, summary = self._open_rows(X, sample_weight, first=True)
        except ScaleError as error:
            if error.rows and callable(self.kernel):
                raise
            scale = Scale(error.rows + error.rows % 2, error.weights)  # even, for the roots of a kernel matrix
            source, engine, summary = self._open_rows(*self._divided(X, sample_weight, scale), first=True)
        check_enough_rows(self.n_clusters, summary)
        check_start(self.init, source.shape[0], self.n_clusters)
        kernel = as_kernel(self, source, summary, scale.rows)
        approximation = self._approximation(source.shape[0])
        descend = self._descend_exactly if approximation == "exact" else self._descend_by_features
        result, labels = descend(kernel, source, engine, n_init=n_init, max_iter=max_iter, callback=callback)
        self._learn_columns(X, source)
        self._store_scale(scale)
        self._kernel, self.approximation_ = kernel, approximation
        gamma, history = getattr(kernel, "gamma", None), np.array(result.history)
        results = {"gamma_": gamma, "inertia_": result.objective, "history_": history}
        self.gamma_, self.inertia_, self.history_ = multiplied(results, self._powers, scale).values()
        self.labels_, self.n_iter_, self.converged_ = labels, len(result.history) - 1, result.converged
        self._n_features_out = self.n_clusters
        warn_of_empty_clusters(result.stats, "X has too few distinct rows for more")
        return self

    def _descend_exactly(self, kernel: Kernel, source: Any, engine: Engine, **options: Any) -> tuple[Any, np.ndarray]:
        source = replace(source, chunk_rows=PART_ROWS)
        matrix = source if isinstance(kernel, Precomputed) else None
        if matrix is None and source.shape[0] ** 2 * source.dtype.itemsize <= STORED:
            matrix = kernel_matrix(kernel, source, engine)
        model_class = KernelLloyd if kernel.is_definite else IndefiniteKernelLloyd
        init = partial(self.init, source.X) if callable(self.init) else self.init
        model = model_class(self.n_clusters, kernel, init, matrix is not None, float(self.tol))
        result, labels = self._descend(model, source if matrix is None else matrix, engine, **options)
        rows = None if isinstance(kernel, Precomputed) else kernel.prepare(source.X).copy()
        self._centers: Any = result.params._replace(rows=rows)
        self._features: Any = None  # only the Nyström approximation has features
        self.landmarks_ = np.zeros(0, np.int64)
        # The objective of the nearest means is never larger than that of the partition.
        inertia = KernelLloyd.objective(model, result.params, result.stats)
        return replace(result, objective=inertia, history=(*result.history[:-1], inertia)), labels

    def _descend_by_features(
        self, kernel: Kernel, source: Any, engine: Engine, **options: Any
    ) -> tuple[Any, np.ndarray]:
        rng, n = as_rng(self.random_state), source.shape[0]
        m = max(LANDMARKS, 10 * self.n_clusters) if self.n_landmarks is None else self.n_landmarks
        features, rows = nystrom_features(source, engine, kernel, min(m, n), rng)
        mapped = features.source(source, engine)
        is_method = isinstance(self.init, str)
        init = partial(self.init, source.X) if callable(self.init) else self.init
        model = FeatureLloyd(
            self.n_clusters,
            self.init if is_method else "k-means++",
            summarize(mapped, engine).unit,
            labels=None if is_method else partial(initial_labels, init, n, self.n_clusters, counts=source.w),
            gain=float(self.tol),
        )
        result, labels = self._descend(model, mapped, engine, rng=rng, **options)
        self._centers, self._features, self.landmarks_ = result.params, features, rows
        return result, labels

    # rows and weights out of range

    @property
    def _degree(self) -> int:
        """Power of the scale of `X` in kernel values; 0 if `gamma` is divided by the square of that scale instead."""
        return {"linear": 2, "precomputed": 1}.get(self.kernel, 0) if isinstance(self.kernel, str) else 0

    @property
    def _powers(self) -> dict[str, Powers]:  # type: ignore[override]
        objective = Powers(self._degree, 1)
        has_gamma = self.kernel in ("rbf", "poly", "polynomial", "sigmoid")
        return {"inertia_": objective, "history_": objective, **({"gamma_": Powers(-2, 0)} if has_gamma else {})}

    @property
    def _powers_of_outputs(self) -> dict[str, float]:  # type: ignore[override]
        return {"distances": self._degree / 2}

    @property
    def _rescales(self) -> bool:
        return not callable(self.kernel)  # a user's function can depend on the scale in any way

    def _approximation(self, n: int) -> str:
        if self.kernel == "precomputed":
            return "exact"
        if self.approximation == "auto":
            return "exact" if n <= EXACT_UP_TO else "nystrom"
        return self.approximation

    def _model(self, summary: Summary | None = None) -> Any:
        k = self._n_features_out  # `n_clusters` may have been set after the fit
        if self.approximation_ == "nystrom":
            return FeatureLloyd(k, bounds=False)
        return KernelLloyd(k, self._kernel, stored=isinstance(self._kernel, Precomputed))

    @property
    def _params(self) -> Any:
        return self._centers

    def _prepare_rows(self, source: Any, engine: Engine, first: bool) -> Any:
        if self._features is None:
            return replace(source, chunk_rows=PART_ROWS)
        return self._features.source(source, engine)

    def _open_rows(self, X: Any, sample_weight: Any, first: bool, y: Any = None) -> tuple[Source, Engine, Summary]:
        source: Any
        source, engine, summary = super()._open_rows(X, sample_weight, first, y)
        check_in_memory(source, "KernelKMeans")
        if isinstance(engine, ClusterEngine):
            raise ParameterError(
                f"engine={self.engine!r} is a cluster, but KernelKMeans needs the kernel of every pair of rows in one "
                "memory: use engine='threads'"
            )
        if self.kernel == "precomputed":
            if first:
                check_matrix(source.X)
            if is_symmetric(source.X):
                source = replace(source, y=diagonal_and_duplicates(source.X.diagonal(), np.arange(len(source.X))))
        return source, engine, summary

    def _check_options(self) -> tuple[int, int, Any]:
        options = checked_options(self)
        one_of("approximation", self.approximation, ("auto", "exact", "nystrom"))
        if self.kernel == "precomputed" and self.approximation == "nystrom":
            raise ParameterError(
                "approximation='nystrom' needs rows, but kernel='precomputed' has none: use approximation='exact'"
            )
        if self.n_landmarks is not None:
            whole_number("n_landmarks", self.n_landmarks, self.n_clusters)
        whole_number("degree", self.degree, 1)
        if not is_number(self.coef0):
            raise ParameterError(f"coef0 must be a number; got {self.coef0!r}")
        return options

    @property
    def _sparse(self) -> bool:
        return self.kernel != "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
