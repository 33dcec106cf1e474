"""Distances between all rows of one table, or of two."""

from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.core.arrays import Array
from coterie.data import as_source, opened
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
        if B is None and distance.symmetric:
            step = partial(_condensed_strip if condensed else _upper_strip, distance, A, result)
            machine.run_in_threads(step, strips(n, m, distance.work, MIRRORED), n_jobs)
        else:
            fill(distance, A, A if B is None else B, result, n_jobs)
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


def fill(distance: Distance, A: Any, B: Any, out: Array, n_jobs: int | None) -> None:
    """Compute the distances of all prepared rows of A to all of B, in strips of rows on all threads."""

    def strip(start: int, stop: int) -> None:
        distance.between(A[start:stop], B, out[start:stop])

    machine.run_in_threads(strip, strips(len(A), out.shape[1], distance.work), n_jobs)


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


# Validation of precomputed distances.

BLOCK = 512  # number of rows and columns that are compared with their transpose at a time
TOLERANCE = {4: 1e-5, 8: 1e-8}  # by itemsize: allowed difference of d(i, j) and d(j, i), relative to the maximum


def as_square(D: Any, name: str = "X") -> Array:
    """Check a distance matrix: it must be square, symmetric, finite and >= 0, with a zero diagonal."""
    D = _numbers(D, name)
    n = len(D)
    if D.ndim != 2 or D.shape != (n, n):
        raise InputError(
            f"metric='precomputed' needs a square {name}, with a row and a column per object; its shape is {D.shape}"
        )
    check_values(D, name)
    rounding = TOLERANCE[D.itemsize] * float(D.max())
    i = int(np.diagonal(D).argmax())
    if D[i, i] > rounding:
        raise InputError(
            f"{name}[{i}, {i}] is {D[i, i]:g}: the distance of an object to itself must be 0. Are these similarities?"
        )
    difference, i, j = largest_asymmetry(D)
    if difference > rounding:
        raise InputError(
            f"{name} is not symmetric: {name}[{i}, {j}] is {D[i, j]:g} and {name}[{j}, {i}] is {D[j, i]:g}. "
            f"Pass ({name} + {name}.T) / 2 if both mean the same distance"
        )
    return D


def largest_asymmetry(D: Array) -> tuple[float, int, int]:
    """The largest difference between an entry of a square matrix and its transpose, and its indices."""
    return max(machine.in_threads(partial(_block_asymmetry, D), _block_pairs(len(D)), None), key=itemgetter(0))


def put_symmetric(D: Array, out: Array) -> None:
    """Copy the upper triangle of `D` to both triangles of `out`, which makes it exactly symmetric."""
    for a, b in _block_pairs(len(D)):
        block = D[a, b]
        if a == b:
            block = np.triu(block, 1)
            block = block + block.T
        out[a, b], out[b, a] = block, block.T


def as_cross(D: Any, columns: int) -> Array:
    """Check the distances of new objects (rows) to the objects of a fit, whose number is `columns`."""
    D = _numbers(D, "X")
    if D.ndim != 2 or D.shape[1] != columns:
        raise InputError(
            f"metric='precomputed' needs the distances of new objects to the {columns} objects of the fit, one column "
            f"per object of the fit; X has shape {D.shape}"
        )
    check_values(D, "X")
    return D


def _numbers(D: Any, name: str) -> Array:
    try:
        D = np.asarray(opened(D))
        return np.ascontiguousarray(D, dtype=np.float32 if D.dtype == np.float32 else np.float64)
    except (TypeError, ValueError):
        raise InputError(f"metric='precomputed' needs {name} to contain numbers only") from None


def check_values(D: Array, name: str) -> None:
    """Reject distances that are NaN, infinite or negative; the error states the first position."""
    if D.size == 0:
        raise InputError(f"{name} is empty: its shape is {D.shape}")
    strips = [(D[start : start + BLOCK],) for start in range(0, len(D), BLOCK)]
    if all(machine.in_threads(_is_valid, strips, None)):
        return
    for problem, mask in (("not finite", ~np.isfinite(D)), ("negative", D < 0)):
        if mask.any():
            i, j = np.argwhere(mask)[0]
            raise InputError(
                f"{name} has {int(mask.sum())} distances that are {problem}, the first at [{i}, {j}]: {D[i, j]}"
            )


def _is_valid(strip: Array) -> bool:
    return bool(strip.min() >= 0 and strip.max() < np.inf)  # both are false for NaN


def _block_asymmetry(D: Array, a: slice, b: slice) -> tuple[float, int, int]:
    """The largest difference between a block of D and its transpose, and its position."""
    block, transposed = D[a, b], D[b, a].T
    if np.array_equal(block, transposed):
        return 0.0, 0, 0
    difference = np.abs(block - transposed)
    i, j = np.unravel_index(int(difference.argmax()), difference.shape)
    return float(difference[i, j]), a.start + int(i), b.start + int(j)


def _block_pairs(n: int) -> Iterator[tuple[slice, slice]]:
    """Slices of the rows and columns of all blocks on and above the diagonal."""
    blocks = [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]
    return ((a, b) for i, a in enumerate(blocks) for b in blocks[i:])
