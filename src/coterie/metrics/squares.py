"""Sums of squares within and between clusters, and of all rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from coterie.core.arguments import as_floats
from coterie.core.errors import InputError, ParameterError
from coterie.core.protocols import Source
from coterie.core.scale import SQUARES, Scale, multiplied
from coterie.metrics.labels import Array, Labels
from coterie.metrics.moments import Means, cluster_moments, opened, scatter_about


def inertia(X: Any, labels: Any, *, centers: Any = None, sample_weight: Any = None, n_jobs: int | None = None) -> float:
    r"""Sum of squares within clusters (WCSS), the objective of K-means.

    .. math:: W = \sum_k \sum_{i \in C_k} w_i \lVert x_i - \mu_k \rVert^2

    From 0 up, lower is tighter. It falls with every further cluster, so it does not say how many there are; and its
    size means nothing without the units of the columns.

    Parameters
    ----------
    X : array, frame, sparse matrix, LazyFrame, path of a file or Dask array (n, d)
    labels : labels (n,)
        The cluster of each row, of any kind; -1 is a cluster like any other.
    centers : array (k, d), optional
        The :math:`\mu_k`, if not the means: `labels` are then numbers of their rows.
    sample_weight : array (n,), optional
    n_jobs : int or None, default=None
        Threads; None is all cores. The result does not depend on it.

    Notes
    -----
    Costs O(n d): three passes over the rows, one with `centers`. With `bcss` it makes `tss`, whatever the labels.

    References
    ----------
    .. [1] Steinhaus (1956), Sur la division des corps matériels en parties, Bull. Acad. Polon. Sci. 4.

    Examples
    --------
    >>> from coterie.metrics import bcss, inertia, tss
    >>> X, labels = [[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1]
    >>> inertia(X, labels), bcss(X, labels), tss(X)
    (4.0, 100.0, 104.0)
    """
    source, engine, found, scale = opened(X, labels, sample_weight, n_jobs)
    if centers is None:
        return _in_units("inertia", cluster_moments(source, engine, found).sum_square.sum(), scale)
    rows = np.ldexp(_centers_of(centers, found, source), -scale.rows)
    means = Means(np.zeros_like(rows), rows)
    return _in_units("inertia", engine.sum(partial(scatter_about, means), source).sum_square.sum(), scale)


def bcss(X: Any, labels: Any, *, sample_weight: Any = None, n_jobs: int | None = None) -> float:
    r"""Sum of squares between clusters (BCSS): of their means, each as heavy as its rows, about the mean of all.

    .. math:: B = \sum_k n_k \lVert \mu_k - \mu \rVert^2

    From 0 to `tss`, higher is further apart. Like `inertia`, it cannot compare different numbers of clusters;
    `calinski_harabasz_score` sets one against the other. Parameters and cost are those of `inertia`.

    Examples
    --------
    >>> from coterie.metrics import bcss
    >>> bcss([[0.0], [2.0], [10.0], [12.0]], ["a", "a", "b", "b"])
    100.0
    """
    source, engine, found, scale = opened(X, labels, sample_weight, n_jobs)
    return _in_units("bcss", cluster_moments(source, engine, found).between, scale)


def tss(X: Any, *, sample_weight: Any = None, n_jobs: int | None = None) -> float:
    r"""Total sum of squares, about the mean of all rows: what clusters divide into within and between.

    .. math:: T = \sum_i w_i \lVert x_i - \mu \rVert^2 = W + B

    Parameters and cost are those of `inertia`.

    Examples
    --------
    >>> from coterie.metrics import tss
    >>> tss([[0.0], [2.0], [10.0], [12.0]])
    104.0
    """
    source, engine, one, scale = opened(X, None, sample_weight, n_jobs)
    return _in_units("tss", cluster_moments(source, engine, one).sum_square.sum(), scale)


def _in_units(name: str, squares: float, scale: Scale) -> float:
    found: float = multiplied({name: float(squares)}, {name: SQUARES}, scale)[name]
    return found


def _centers_of(centers: Any, found: Labels, source: Source) -> Array:
    """The center of each label (k, d)."""
    try:
        given: Array = as_floats(centers)
    except (TypeError, ValueError):
        raise ParameterError("centers must be numbers, a row for each cluster") from None
    if given.ndim != 2 or given.shape[1] != source.shape[1] or not np.isfinite(given).all():
        raise ParameterError(
            f"centers must be finite numbers, a row for each cluster and {source.shape[1]} columns; "
            f"its shape is {given.shape}"
        )
    if found.names.dtype.kind not in "iu" or found.names.min() < 0 or found.names.max() >= len(given):
        raise InputError(
            f"labels must be numbers of the {len(given)} rows of centers, from 0 up, where centers are given"
        )
    return given[found.names]
