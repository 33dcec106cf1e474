"""Many small K-means fits on a GPU at once: restarts, references of the gap statistic, and resamples."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from coterie import interrupts
from coterie.core.protocols import Source

MAX_ROWS = 1 << 20  # of a table; single fits of more rows are as fast


class SharedFit(NamedTuple):
    """One of several fits of the same rows."""

    centers: np.ndarray  # (k, d)
    weight: np.ndarray  # (k,)
    history: tuple[float, ...]
    converged: bool


class TableFits(NamedTuple):
    """The best fit of each problem."""

    inertia: np.ndarray  # (problems,)
    labels: np.ndarray  # (problems, n) of all rows of the table


def fit_together(
    source: Any, starts: Sequence[np.ndarray], tolerances: Sequence[float], max_iter: int
) -> list[SharedFit | None]:
    """Fits from each of `starts` (k, d), at once; None for a fit that needs repairs. See `can_fit_together`.

    The results are those of single fits: sums are the same integers, and labels are exact.
    """
    from coterie.kernels.cuda import as_tensor, batched

    ks = np.array([len(start) for start in starts])
    centers = np.zeros((len(starts), ks.max(), source.shape[1]), np.float32)
    for padded, start in zip(centers, starts, strict=True):
        padded[: len(start)] = start
    table = batched.as_table(source.parts()[0]().X)
    fits: list[SharedFit | None] = []
    size = max(1, batched.MAX_ENTRIES // source.shape[0])
    for first in range(0, len(starts), size):
        some = slice(first, first + size)
        interrupts.check()
        result = batched.fit_all(
            table, np.zeros(len(ks[some]), int), ks[some], as_tensor(centers[some], source.device),
            np.asarray(tolerances)[some], max_iter,
        )  # fmt: skip
        fits += [
            None if alone else SharedFit(c[:k], w[:k], tuple(history.tolist()), bool(converged))
            for k, c, w, history, converged, alone in zip(
                ks[some], result.centers, result.weight, result.histories, result.converged, result.needs_own_fit,
                strict=True,
            )
        ]  # fmt: skip
    return fits


def can_fit_together(source: Source, k: int) -> bool:
    """Whether fits with up to k clusters can share their passes: few float32 rows on one GPU, without weights."""
    n, d = source.shape
    if source.engine != "cuda" or source.dtype != np.float32 or n > MAX_ROWS or len(source.parts()) > 1:
        return False
    from coterie.kernels.cuda import batched

    return source.w is None and bool(source.is_float32) and batched.is_small(k, d)  # type: ignore[attr-defined]


def can_fit_tables(n: int, d: int, k: int) -> bool:
    """Whether tables of n float32 rows of d columns can be fitted at once with up to k clusters."""
    from coterie.kernels.cuda import batched

    return n <= MAX_ROWS and batched.is_small(k, d)


class Options(NamedTuple):
    """Of the fits of tables."""

    n_init: int = 4
    tol: float = 1e-3  # share of the mean variance of the columns
    max_iter: int = 20


def fit_tables(
    X: Any,  # (tables, n, d) float32 tensor on the device
    which: np.ndarray,  # (problems,) the table of each problem
    ks: np.ndarray,  # (problems,)
    generators: Sequence[np.random.Generator],  # one for each problem
    options: Options,
    weights: Any = None,  # (samples, n) tensor of whole numbers
    samples: Any = None,  # (problems,) the weights of each problem
    rows: Any = slice(None),  # whose labels are returned
) -> TableFits:
    """The best of several fits of each problem. A result does not depend on other problems."""
    from coterie.kernels.cuda import batched
    from coterie.kernels.cuda.device_array import as_numpy

    total = X.shape[1] * (1 if weights is None else batched.MAX_WEIGHT)
    tables = batched.as_tables(X, total)
    variances = np.array([float(table.double().var(0, unbiased=False).mean()) for table in X])
    inertia, labels = np.empty(len(ks)), []
    size = max(1, batched.MAX_ENTRIES // (options.n_init * X.shape[1]))
    for first in range(0, len(ks), size):
        interrupts.check()
        last = min(first + size, len(ks))
        some = np.repeat(np.arange(first, last), options.n_init)
        w = None if weights is None else weights[samples[some]]
        children = [child for rng in generators[first:last] for child in rng.spawn(options.n_init)]
        centers = batched.seed(tables, which[some], ks[some], children, w)
        tolerances = options.tol * variances[which[some]]
        fits = batched.fit_all(tables, which[some], ks[some], centers, tolerances, options.max_iter, w, True)
        best = batched.best_of(fits, options.n_init)
        inertia[first:last] = [fits.histories[b][-1] for b in best]
        labels.append(as_numpy(fits.labels[best])[:, rows])
    return TableFits(inertia, np.concatenate(labels))
