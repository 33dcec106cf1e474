"""K-means from small batches of rows, for large data and data streams."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from coterie import interrupts
from coterie.base import CENTERS_STORED, Partitional, Summary, in_memory
from coterie.core import loop, online
from coterie.core.arguments import as_rng, not_negative, whole_number
from coterie.core.arrays import as_dense
from coterie.core.attachments import detach
from coterie.core.checkpoint import MiniBatchState, Store
from coterie.core.clock import Clock
from coterie.core.in_memory import check_in_memory, is_in_memory
from coterie.core.progress import Callback, Progress
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.scale import LENGTHS, SQUARES, Powers
from coterie.core.stored import stored
from coterie.errors import ScaleError
from coterie.kmeans.center_estimator import check_enough_rows, checked_options
from coterie.kmeans.lloyd import Lloyd, warn_of_empty_clusters
from coterie.seeding import check_start
from coterie.traces import Traced


@stored(**CENTERS_STORED, _state="<online.State>", _random="generator", counts_="real K")
@dataclass(eq=False, repr=False, kw_only=True)
class MiniBatchKMeans(Traced, Partitional):
    r"""Mini-batch K-means: update the centers from small random batches of rows.

    .. math:: \mu_k \leftarrow \mu_k + \frac{b}{v_k + b} (\bar x_k - \mu_k)

    Here :math:`b` is the weight of the rows of the batch that are nearest to :math:`\mu_k`, :math:`\bar x_k` is their
    mean, and :math:`v_k` is the weight of all such rows before [1]_. A center is therefore the mean of all rows that
    were ever assigned to it.

    Use it for data that is too large for full passes, and for streams (`partial_fit`). Use `KMeans` if it is fast
    enough: the objective of mini-batches is usually a few percent worse.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of centers.
    init : {'auto', 'k-means++', 'k-means||', 'forgy', 'random', 'random_partition', 'farthest'}, array or callable
        Initialisation method, or the initial centers. Default: 'auto', which is 'k-means++'. The method runs on
        `init_size` random rows.
    n_init : int or 'auto', default='auto'
        Number of initialisations; the best on the same rows is kept. 'auto' is 3 for 'forgy', 'random',
        'random_partition' and callables, and 1 for the others.
    max_iter : int, default=100
        Maximum number of passes over the data.
    batch_size : int, default=1024
        Number of random rows of a batch.
    tol : float, default=0.0
        Relative tolerance. The fit stops when the smoothed squared movement of the centers falls below `tol` times the
        mean variance of the columns.
    max_no_improvement : int or None, default=10
        Number of consecutive batches without a decrease of the smoothed objective after which the fit stops. None
        disables this rule.
    init_size : int or None, default=None
        Number of rows used for the initialisation. None is the larger of three batches and three rows per cluster.
    reassignment_ratio : float, default=0.01
        A center whose weight is less than this fraction of the largest weight is moved to a row of the batch.
    device, engine, n_jobs, random_state, callback, verbose, checkpoint
        As in `KMeans`.

    Attributes
    ----------
    cluster_centers_, labels_, inertia_, n_features_in_, feature_names_in_
        As in `KMeans`. After `partial_fit` without `fit`, `labels_` and `inertia_` are those of the last batch.
    counts_ : array (k,)
        Weight of the rows that were assigned to each center.
    n_iter_ : int
        Number of passes over the data, rounded up.
    n_steps_ : int
        Number of batches.
    converged_ : bool
        Whether `tol` or `max_no_improvement` ended the fit.
    history_ : array (n_steps,)
        Mean cost of a row of every batch, before its update.

    Notes
    -----
    A batch costs 2 b d k operations. `fit` ends with one pass over all rows for labels and inertia.

    References
    ----------
    .. [1] D. Sculley (2010), Web-scale k-means clustering, WWW. https://doi.org/10.1145/1772690.1772862

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import MiniBatchKMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = MiniBatchKMeans(n_clusters=2, random_state=0)
    >>> for batch in (X[:4], X[4:]):
    ...     model = model.partial_fit(batch)
    >>> bool(model.predict([[0, 0]])[0] != model.predict([[12, 3]])[0])
    True
    """

    max_iter: int = 100
    batch_size: int = 1024
    tol: float = 0.0
    max_no_improvement: int | None = 10
    init_size: int | None = None
    reassignment_ratio: float = 0.01
    device: str = "auto"
    checkpoint: Any = None

    _powers: ClassVar[dict[str, Powers]] = {
        "cluster_centers_": LENGTHS,
        "inertia_": SQUARES,
        "history_": Powers(2, 0),
        "counts_": Powers(0, 1),
    }
    _powers_of_options: ClassVar[dict[str, int]] = {"init": 1}

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centers of `X` from random batches of its rows, then assign every row.

        Parameters
        ----------
        X : array, sparse matrix, frame, LazyFrame, path of a file, or Dask array (n, d)
            Rows to cluster.
        y : ignored
        sample_weight : array (n,), optional
            Weights of the rows.

        Returns
        -------
        self : MiniBatchKMeans
            The fitted estimator.
        """
        n_init, callback = self._check_options()
        X = self._read(X)
        try:
            source, engine, summary = self._open(X, sample_weight, first=True)
        except ScaleError as error:
            return self._fit_rescaled(error, X, sample_weight)
        if source.engine != "dask":  # of files, every batch would read all
            check_in_memory(source, "MiniBatchKMeans.fit, unlike partial_fit,")
        check_enough_rows(self.n_clusters, summary)
        rng, store = as_rng(self.random_state), self._store(source, engine)
        if store is not None:
            rng = store.initial_rng(rng)
        rows = _RandomRows(source, rng)
        batch_size = min(self.batch_size, rows.count)
        stopping = _Stopping(self, summary, batch_size / rows.count)
        batch_fit = _BatchFit(self._model(summary), rows, batch_size, self.reassignment_ratio, stopping, store)
        if not batch_fit.resume():
            init_size = 3 * max(self.batch_size, self.n_clusters) if self.init_size is None else self.init_size
            sample = rows.draw_distinct(init_size)
            batch_fit.state = self._initial_state(batch_fit.model, *in_memory(sample), n_init, rng)
        callback = self._with_recorder(callback, batch_fit.model, source, engine, start=batch_fit.state.params)
        batch_fit.run(max(1, self.max_iter * rows.count // batch_size), callback)
        model, state, history = batch_fit.model, batch_fit.state, batch_fit.history
        stats, memos = engine.scan(partial(model.e_step, state.params), source, None)
        labels = source.join(engine.map(partial(model.assign, state.params), source, memos))
        self._learn_columns(X, source)
        self.n_steps_, self.n_iter_ = len(history), -(-len(history) * batch_size // rows.count)
        self.history_, self.converged_ = np.array(history), batch_fit.converged
        self._publish(state, rows.rng, labels, stats)
        if store is not None:
            store.remove()
        warn_of_empty_clusters(stats, "raise reassignment_ratio, or lower n_clusters")
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update the centers with `X` as one batch, or with each batch of a stream.

        The first batch also initialises the centers and must have at least `n_clusters` rows.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. `X` are the rows of the batch; those of a Dask array stay where they are. If `X` is an iterator
            of batches, an Arrow stream or files that are read in every pass (``scan_files(..., cache="none")``), each
            batch or part is one update; then `sample_weight` must be None.

        Returns
        -------
        self : MiniBatchKMeans
            The updated estimator.
        """
        if self._is_stream(X):
            return self._partial_fit_batches(X, sample_weight)
        n_init, _ = self._check_options()
        first = not hasattr(self, "cluster_centers_")
        self._reject_rescaled("partial_fit")
        source: Any
        source, engine, summary = self._open(X, sample_weight, first=first)
        is_on_device = source.engine == "cuda"
        if first:
            check_enough_rows(self.n_clusters, summary)
            rng = as_rng(self.random_state)
            model = self._model(summary)
            rows, engine_of_rows = in_memory(source.pick(slice(None))) if is_on_device else (source, engine)
            state = self._initial_state(model, rows, engine_of_rows, n_init, rng)
        else:
            rng, model, state = self._random, self._model(), self._state
        if first:
            self._learn_columns(X, source)
        if is_in_memory(source) and not is_on_device:  # one part, because the rows are one batch
            source, engine = in_memory(source.pick(slice(None)), as_one_part=True)
        stats, _ = engine.scan(partial(model.e_step, state.params), source, None)
        state = _reseed(
            online.add(model, state, stats), source.shape[0], self._as_array(source.w),
            lambda rows: source.pick(rows).X, self.reassignment_ratio, rng,
        )  # fmt: skip
        stats, memos = engine.scan(partial(model.e_step, state.params), source, None)
        labels = source.join(engine.map(partial(model.assign, state.params), source, memos))
        detach(self, "history_", "converged_")  # of an earlier `fit`
        self.n_steps_ = self.n_iter_ = 1 if first else self.n_steps_ + 1
        self._publish(state, rng, labels, stats)
        return self

    def _initial_state(
        self, model: Lloyd, source: Source, engine: Engine, n_init: int, rng: np.random.Generator
    ) -> online.State:
        """Best of `n_init` initialisations on these rows."""
        check_start(self.init, source, self.n_clusters)
        candidates = [model.init(source, engine, child) for child in rng.spawn(n_init)]
        costs = [loop.objective_at(model, centers, source, engine) for centers in candidates]
        return online.State(candidates[int(np.argmin(costs))])

    def _publish(self, state: online.State, rng: np.random.Generator, labels: Any, stats: Any) -> None:
        self._state, self._random = state, rng
        self.cluster_centers_, self.labels_ = state.params, labels
        self.counts_, self.inertia_ = state.seen.weight, float(stats.cost.sum())
        self._n_features_out = self.n_clusters

    def _model(self, summary: Summary | None = None) -> Lloyd:
        if summary is None:
            return Lloyd(len(self.cluster_centers_), bounds=False)
        return Lloyd(self.n_clusters, self.init, summary.unit, bounds=False)

    @property
    def _params(self) -> np.ndarray:
        return self._in_fitted_units(self.cluster_centers_)

    def _check_options(self) -> tuple[int, Any]:
        n_init, _, callback = checked_options(self, if_random=3)
        whole_number("batch_size", self.batch_size, 1)
        not_negative("reassignment_ratio", self.reassignment_ratio)
        if self.max_no_improvement is not None:
            whole_number("max_no_improvement", self.max_no_improvement, 0)
        if self.init_size is not None:
            whole_number("init_size", self.init_size, self.n_clusters)
        return n_init, callback


def full_models(
    estimator: MiniBatchKMeans, ks: list[int], X: Any, sample_weight: Any
) -> tuple[dict[int, Lloyd], Source, Engine]:
    """Models of all rows for ascending numbers of clusters, the rows and their engine."""
    source, engine, summary = estimator._open(X, sample_weight, first=True)
    check_enough_rows(ks[-1], summary)
    return {k: Lloyd(k, "k-means++", summary.unit, bounds=False) for k in ks}, source, engine


def use_if_better(fitted: MiniBatchKMeans, centers: np.ndarray, model: Lloyd, source: Source, engine: Engine) -> None:
    """Replace the centers of a fitted estimator if these have a smaller inertia."""
    stats, memos = engine.scan(partial(model.e_step, centers), source, None)
    if model.objective(centers, stats) < fitted.inertia_:
        labels = source.join(engine.map(partial(model.assign, centers), source, memos))
        fitted._publish(online.State(centers, stats), fitted._random, labels, stats)


class _BatchFit:
    """Fit by batches that keeps its state, so that it can be interrupted and resumed."""

    state: online.State

    def __init__(
        self, model: Lloyd, rows: _RandomRows, batch_size: int, ratio: float, stopping: _Stopping, store: Store | None
    ):
        self.model, self.rows, self.batch_size, self.ratio = model, rows, batch_size, ratio
        self.stopping, self.store = stopping, store
        self.history: list[float] = []
        self.converged = self.done = False
        self.complete: tuple[online.State, int, Any, Any] | None = None  # last state that the callback received

    def resume(self) -> bool:
        """Resume from the checkpoint; return False if there is none."""
        saved: MiniBatchState | None = None if self.store is None else self.store.read("batches", self.model)
        if saved is None:
            return False
        self.state, self.history = online.State(saved.params, saved.seen), saved.history.tolist()
        self.rows.rng = saved.rng
        self.converged = self.done = self.stopping.resume(saved.stopping)
        return True

    def run(self, steps: int, callback: Callback) -> None:
        self.clock = Clock(before=len(self.history) / steps)
        with interrupts.deferred(), interrupts.outermost() as is_outermost:
            try:
                while not self.done and len(self.history) < steps:
                    self._step(steps, callback)
                    interrupts.check()
            except BaseException as error:
                self._save(at_once=True)
                has_centers = self.state.seen is not None
                interrupts.keep_result(error, is_outermost, has_centers, "the centers reached so far are kept")
                self._leave()

    def _step(self, steps: int, callback: Callback) -> None:
        before, rng = self.state.params, self.rows.rng
        chunk = self.rows.draw(self.batch_size)
        state, stats = online.step(self.model, self.state, chunk)
        self.state = _reseed(state, chunk.X.shape[0], chunk.w, chunk.X.__getitem__, self.ratio, rng)
        self.history.append(float(stats.cost.sum() / stats.weight.sum()))
        left = self.clock.left(len(self.history) / steps) if self.stopping.is_disabled else None
        progress = Progress("batch", len(self.history), None, left, 0, self.state.params, self.history[-1])
        stopped = bool(callback(progress))
        self.converged = self.stopping(before, self.state.params, self.history[-1])
        self.done = self.converged or stopped
        if self.store is not None:
            self.complete = self.state, len(self.history), rng.bit_generator.state, self.stopping.state()
            self._save(at_once=stopped)
        if stopped:
            self._leave()

    def _leave(self) -> None:
        if self.store is not None:
            self.store.stop_writing()

    def _save(self, at_once: bool) -> None:
        if self.store is not None and self.complete is not None:
            self.store.write("batches", partial(self._saved_batches, *self.complete), at_once)

    def _saved_batches(self, state: online.State, steps: int, rng_state: Any, stopping: Any) -> MiniBatchState:
        rng = copy.deepcopy(self.rows.rng)
        rng.bit_generator.state = rng_state
        return MiniBatchState(state.params, state.seen, np.array(self.history[:steps]), rng, stopping)


class _Stopping:
    """Stopping rule: whether the smoothed objective or the smoothed movement has stopped changing."""

    def __init__(self, options: MiniBatchKMeans, summary: Summary, share: float):
        self.alpha = min(1.0, 2.0 * share)
        self.patience = options.max_no_improvement
        self.tol = summary.tolerance(options.tol)
        self.cost: float | None = None
        self.step: float | None = None
        self.best, self.failures, self.batches = np.inf, 0, 0

    def __call__(self, before: np.ndarray, after: np.ndarray, cost: float) -> bool:
        self.batches += 1
        if self.batches == 1:  # its cost is too low, because the initial centers were chosen on such rows
            return False
        cost = cost if self.cost is None else self.alpha * cost + (1 - self.alpha) * self.cost
        moved = float(((after.astype(np.float64) - before) ** 2).sum())
        self.step = moved if self.step is None else self.alpha * moved + (1 - self.alpha) * self.step
        self.failures = 0 if cost < self.best else self.failures + 1
        self.cost, self.best = cost, min(self.best, cost)
        return self._is_over()

    @property
    def is_disabled(self) -> bool:
        """Whether only the number of steps ends the fit."""
        return self.patience is None and self.tol == 0

    def _is_over(self) -> bool:
        has_no_improvement = self.patience is not None and self.failures >= self.patience
        return has_no_improvement or (self.step is not None and self.tol > 0 and self.step <= self.tol)

    def state(self) -> tuple[Any, ...]:
        return self.cost, self.step, self.best, self.failures, self.batches

    def resume(self, state: tuple[Any, ...]) -> bool:
        """Resume from a saved state; return whether the fit is over."""
        self.cost, self.step, self.best, self.failures, self.batches = state
        return self._is_over()


class _RandomRows:
    """Random rows of positive weight."""

    def __init__(self, source: Any, rng: np.random.Generator):
        self.source, self.rng = source, rng
        self.positive = None if source.w is None else np.flatnonzero(np.asarray(source.w))
        self.count = source.shape[0] if self.positive is None else len(self.positive)

    def draw(self, size: int) -> Chunk:
        return self.source.gather(self._rows(self.rng.integers(self.count, size=size)))

    def draw_distinct(self, size: int) -> Chunk:
        return self.source.pick(self._rows(self.rng.choice(self.count, min(size, self.count), replace=False)))

    def _rows(self, indices: np.ndarray) -> np.ndarray:
        rows = np.sort(indices)  # sorted access is faster for memory and Dask
        return rows if self.positive is None else self.positive[rows]


def _reseed(
    state: online.State, n: int, w: Any, take: Callable[[Any], Any], ratio: float, rng: np.random.Generator
) -> online.State:
    """Move centers of small weight to rows of the batch. They get the smallest weight of the other centers.

    The batch has `n` rows with weights `w`, and ``take(indices)`` returns some of them.
    """
    weight = state.seen.weight
    small = np.flatnonzero(weight < ratio * weight.max())
    candidates = n if w is None else np.flatnonzero(np.asarray(w))
    limit = (candidates if isinstance(candidates, int) else len(candidates)) // 2
    small = small[np.argsort(weight[small], kind="stable")][:limit]
    if len(small) == 0:
        return state
    rows = rng.choice(candidates, len(small), replace=False)
    centers, seen = state.params.copy(), weight.copy()
    centers[small] = as_dense(take(rows))
    others = np.delete(seen, small)
    seen[small] = others.min() if len(others) else 1.0
    return online.State(centers, type(state.seen)(seen, state.seen.sum_dx, state.seen.cost, 0))
