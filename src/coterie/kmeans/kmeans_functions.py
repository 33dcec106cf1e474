"""K-means and k-means++ as functions, with the signatures of scikit-learn."""

from typing import Any

from coterie.core.arguments import as_rng, whole_number
from coterie.core.in_memory import check_in_memory
from coterie.kmeans.center_estimator import check_enough_rows
from coterie.kmeans.kmeans import KMeans
from coterie.seeding import greedy_rows
from coterie.seeding.costs import SQUARES


def k_means(
    X: Any,
    n_clusters: int,
    *,
    sample_weight: Any = None,
    init: Any = "auto",
    n_init: Any = "auto",
    max_iter: int = 300,
    verbose: Any = False,
    tol: float = 1e-4,
    random_state: Any = None,
    copy_x: bool = True,
    algorithm: str = "auto",
    return_n_iter: bool = False,
) -> tuple[Any, ...]:
    """Run K-means clustering and return the centers, labels and inertia.

    Parameters
    ----------
    X : array, sparse matrix, frame, path of a file, or Dask array (n, d)
        Rows to cluster.
    n_clusters : int
        Number of clusters.
    sample_weight : array (n,), default=None
        Weights of the rows.
    init, n_init, max_iter, verbose, tol, random_state, copy_x, algorithm
        As in `KMeans`.
    return_n_iter : bool, default=False
        Also return the number of iterations.

    Returns
    -------
    centers : array (n_clusters, d)
        Centers.
    labels : array (n,)
        Cluster of each row.
    inertia : float
        Sum of the weighted squared distances to the nearest center.
    n_iter : int
        Number of iterations of the best run. Only if `return_n_iter` is true.

    Examples
    --------
    >>> from coterie.kmeans import k_means
    >>> centers, labels, inertia = k_means([[1.0], [2.0], [8.0], [9.0]], 2, random_state=0)
    >>> sorted(centers.ravel().tolist()), inertia
    ([1.5, 8.5], 1.0)
    """
    model = KMeans(
        n_clusters,
        init=init,
        n_init=n_init,
        max_iter=max_iter,
        verbose=verbose,
        tol=tol,
        random_state=random_state,
        copy_x=copy_x,
        algorithm=algorithm,
    ).fit(X, sample_weight=sample_weight)
    result = model.cluster_centers_, model.labels_, model.inertia_
    return (*result, model.n_iter_) if return_n_iter else result


def kmeans_plusplus(
    X: Any,
    n_clusters: int,
    *,
    sample_weight: Any = None,
    x_squared_norms: Any = None,
    random_state: Any = None,
    n_local_trials: int | None = None,
) -> tuple[Any, Any]:
    """Choose initial centers among the rows by greedy k-means++.

    Parameters
    ----------
    X : array or sparse matrix (n, d)
        Rows to choose from. They must be in memory.
    n_clusters : int
        Number of centers.
    sample_weight : array (n,), default=None
        Weights of the rows.
    x_squared_norms : ignored
        For compatibility with scikit-learn.
    random_state : None, int, RandomState or Generator, default=None
        Random state.
    n_local_trials : int, default=None
        Number of candidates for each center; the best is chosen. None is 2 + log(n_clusters).

    Returns
    -------
    centers : array (n_clusters, d)
        Chosen rows.
    indices : array (n_clusters,)
        Indices of these rows in `X`.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.kmeans import kmeans_plusplus
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> centers, indices = kmeans_plusplus(X, 2, random_state=0)
    >>> bool((X[indices] == centers).all())
    True
    """
    whole_number("n_clusters", n_clusters, 1)
    if n_local_trials is not None:
        whole_number("n_local_trials", n_local_trials, 1)
    source: Any
    source, _, summary = KMeans(n_clusters)._open(X, sample_weight, first=True)
    check_in_memory(source, "kmeans_plusplus, which returns indices of rows,")
    check_enough_rows(n_clusters, summary)
    rows = source.gather(slice(None))
    indices = greedy_rows(rows, as_rng(random_state), n_clusters, summary.unit, n_local_trials)
    return SQUARES.take(rows.X, indices), indices
