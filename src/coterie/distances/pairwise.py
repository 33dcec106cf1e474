"""Distances between all rows of one table, or of two."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.core.arrays import Array
from coterie.data import as_source
from coterie.data.tensors import is_on_device
from coterie.distances.distance import Distance, as_distance
from coterie.errors import InputError, ParameterError

STRIP = 1 << 21  # maximum number of distances in a strip of rows that one thread computes at a time
MIRRORED = 128  # maximum number of rows of a strip that is also written as columns
REMEDY = "pass out='distances.npy' to write them to disk, condensed=True for half of them, or float32 rows"


def pairwise(
    X: Any,
    Y: Any = None,
    metric: Any = "euclidean",
    *,
    condensed: bool = False,
    out: Any = None,
    n_jobs: int | None = None,
    **params: Any,
) -> Array:
    """Compute the distances between all rows of `X`, or between the rows of `X` and those of `Y`.

    Parameters
    ----------
    X, Y : array or data frame (n, d), (m, d)
        The rows, or lists of series for 'dtw'. If all are float32, so are the distances. `Y` is None by default.
    metric : str, function or Distance, default='euclidean'
        'euclidean', 'sqeuclidean', 'seuclidean' (`V`), 'nan_euclidean' (missing values), 'manhattan', 'chebyshev',
        'minkowski' (`p`), 'mahalanobis' (`cov`, `VI`, `shrinkage`, `pseudo_inverse`), 'cosine', 'correlation',
        'hamming', 'jaccard', 'canberra', 'braycurtis', 'haversine' (radians), 'gower' (mixed columns, missing values),
        'dtw' (series). Most accept column weights `w`. A function ``f(x, y, **params)`` of two rows is compiled.
    condensed : bool, default=False
        Return the n (n - 1) / 2 distances above the diagonal, row by row, as `pdist` of SciPy does. Not with `Y`.
    out : array, or path of an .npy file, default=None
        Destination of the distances: an array of matching shape and dtype, which may be memory-mapped, or a new file.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    **params
        Parameters of the metric.

    Returns
    -------
    array (n, n), (n, m) or (n (n - 1) / 2,)
        The distances.

    Notes
    -----
    Takes O(n m d) operations, with SIMD instructions: as fast as a matrix product for about 16 columns, and up to twice
    its time for many columns. In addition to the result, each thread needs memory for a strip of rows.

    Examples
    --------
    >>> from coterie.distances import pairwise
    >>> pairwise([[0.0, 0.0], [3.0, 4.0]])
    array([[0., 5.],
           [5., 0.]])
    >>> pairwise([[0.0, 0.0], [3.0, 4.0]], metric="manhattan", condensed=True)
    array([7.])
    """
    if is_on_device(X):
        return _on_device(X, Y, metric, condensed, out, params)
    if condensed and Y is not None:
        raise ParameterError("condensed=True requires Y=None: a condensed result contains the distances within X only")
    distance, A, B = fit_and_prepare(as_distance(metric, **params), X, Y)
    if condensed and not distance.symmetric:
        raise ParameterError(
            f"condensed=True requires a symmetric metric; metric={distance.name!r} is not: use condensed=False"
        )
    n, m = len(A), len(A if B is None else B)
    shape = (n * (n - 1) // 2,) if condensed else (n, m)
    result = _output(out, shape, np.result_type(A.dtype, A.dtype if B is None else B.dtype))
    with machine.one_blas_thread:
        if condensed:
            step = partial(_condensed_strip, distance, A, result)
        elif B is None and distance.symmetric:
            step = partial(_upper_strip, distance, A, result)
        else:
            step = partial(_strip, distance, A, A if B is None else B, result)
        max_rows = MIRRORED if B is None and distance.symmetric else None
        machine.run_in_threads(step, strips(n, m, distance.work, max_rows), n_jobs)
    return result


def _on_device(X: Any, Y: Any, metric: Any, condensed: bool, out: Any, params: dict[str, Any]) -> Any:
    """Distances of rows on a GPU, as a tensor there."""
    if metric not in ("euclidean", "sqeuclidean") or condensed or out is not None or params:
        raise ParameterError(
            "tensors on a GPU support metric='euclidean' and 'sqeuclidean', without condensed, out and parameters; got "
            f"metric={metric!r}: pass X.cpu() for the others"
        )
    rows, others = (as_source(each, device="auto").gather(slice(None)).X for each in (X, X if Y is None else Y))
    dtype = np.result_type(rows.dtype, others.dtype)
    distances = kernels.for_centers(rows, len(others)).distances(rows.astype(dtype, copy=False), others)
    return (distances if metric == "euclidean" else distances**2).tensor


def fit_and_prepare(distance: Distance, X: Any, Y: Any = None) -> tuple[Distance, Any, Any]:
    """The distance fitted to the rows, and the prepared rows of `X` and of `Y` (None if `Y` is None)."""
    rows, others = distance.rows(X, "X"), None if Y is None else distance.rows(Y, "Y")
    _check_columns(rows, others)
    distance = distance.fitted(rows, others)
    return distance, distance.prepare(rows), None if others is None else distance.prepare(others)


def strips(n: int, m: int, work: int = 1, max_rows: int | None = None) -> list[tuple[int, int]]:
    """Bounds of strips of at most `max_rows` rows of an (n, m) matrix; they depend only on these arguments."""
    height = max(1, min(max_rows or n, STRIP // max(1, m * work)))
    return [(start, min(start + height, n)) for start in range(0, n, height)]


def _strip(distance: Distance, A: Any, B: Any, out: Array, start: int, stop: int) -> None:
    distance.between(A[start:stop], B, out[start:stop])


def _upper_strip(distance: Distance, A: Any, out: Array, start: int, stop: int) -> None:
    """Compute a strip from the diagonal on, and copy it to the columns below the diagonal."""
    right = distance.table(A[start:stop], A[start:], out.dtype)
    block = np.triu(right[:, : stop - start], 1)
    out[start:stop, start:stop] = block + block.T
    out[start:stop, stop:] = right[:, stop - start :]
    out[stop:, start:stop] = right[:, stop - start :].T


def _condensed_strip(distance: Distance, A: Any, out: Array, start: int, stop: int) -> None:
    n = len(A)
    right = distance.table(A[start:stop], A[start:], out.dtype)
    for i in range(start, stop):
        first = i * n - i * (i + 1) // 2
        out[first : first + n - 1 - i] = right[i - start, i - start + 1 :]


def _output(out: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """The array for the result: `out` if it is one, a new file, or a new array."""
    if isinstance(out, str | Path):
        if Path(out).suffix != ".npy":
            raise ParameterError(f"out must be the path of an .npy file, or an array; got {str(out)!r}")
        return np.lib.format.open_memmap(out, mode="w+", dtype=dtype, shape=shape)
    if out is None:
        machine.check_memory(int(np.prod(shape, dtype=object)) * dtype.itemsize, f"{shape} distances", REMEDY)
        return np.empty(shape, dtype)
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous:
        description = f"{out.shape} of {out.dtype}" if isinstance(out, np.ndarray) else repr(out)
        raise ParameterError(f"out must be a C-ordered array of shape {shape} and type {dtype}; got {description}")
    return out


def _check_columns(X: Any, Y: Any) -> None:
    if isinstance(X, np.ndarray) and Y is not None and X.shape[1] != Y.shape[1]:
        raise InputError(f"X has {X.shape[1]} columns and Y has {Y.shape[1]}: distances need the same columns")
