"""K-means from small batches of rows: for data too large, or too endless, for whole passes."""

from __future__ import annotations

import copy
import warnings
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from coterie import interrupts
from coterie.base import CENTERS_STORED, Partitional, Summary, callbacks, in_memory
from coterie.core import online
from coterie.core.arguments import as_rng, not_negative, whole_number
from coterie.core.checkpoint import Batches, Store
from coterie.core.clock import Clock
from coterie.core.errors import FitInterruptedWarning
from coterie.core.progress import Callback, Progress
from coterie.core.protocols import Chunk
from coterie.core.scale import LENGTHS, SQUARES, Powers, ScaleError
from coterie.core.stored import stored
from coterie.kmeans.kmeans import check_enough_rows
from coterie.kmeans.lloyd import Lloyd, warn_of_empty_clusters
from coterie.seeding import check_start, starts
from coterie.traces import Traced


@stored("MiniBatchKMeans", **CENTERS_STORED, _state="<online.State>", _random="generator", counts_="real K")
class MiniBatchKMeans(Traced, Partitional):
    r"""K-means by small steps: every batch moves its centers a little way towards the means of its rows.

    .. math:: \mu_k \leftarrow \mu_k + \frac{b}{v_k + b} (\bar x_k - \mu_k)

    where :math:`b` is the weight of the batch's rows nearest to :math:`\mu_k`, :math:`\bar x_k` their mean, and
    :math:`v_k` the weight of all such rows before [1]_. A center is thus the mean of all rows that ever joined it.

    Do not use it where `KMeans` is fast enough: its objective is usually a few percent worse.

    Parameters
    ----------
    n_clusters : int, default=8
        How many centers.
    init : {'k-means++', 'k-means||', 'forgy', 'random', 'random_partition', 'farthest'}, array (k, d) or callable
        Where they start, found on `init_size` rows drawn at random.
    n_init : int or 'auto', default='auto'
        Starts, of which the best on the same rows is kept; 'auto' is 1 for k-means++, farthest and arrays, else 3.
    max_iter : int, default=100
        Times the whole data may be gone through.
    batch_size : int, default=1024
        Rows of a batch, drawn at random.
    tol : float, default=0.0
        Ends the fit when the centers' squared steps, smoothed, are below `tol` times the mean variance.
    max_no_improvement : int or None, default=10
        Ends the fit after so many batches that did not lower the smoothed objective; None goes on.
    init_size : int or None
        Rows the start is found on; None is the larger of three batches and three rows a cluster.
    reassignment_ratio : float, default=0.01
        A center with less than this share of the largest weight is moved to a row of the batch.
    engine, n_jobs, random_state, callback, verbose, checkpoint
        As in `KMeans`.

    Attributes
    ----------
    cluster_centers_, labels_, inertia_, n_features_in_, feature_names_in_
        As in `KMeans`; after `partial_fit` alone, `labels_` and `inertia_` are those of the last batch.
    counts_ : array (k,)
        The weight every center has seen.
    n_iter_ : int
        Times the data was gone through, rounded up.
    n_steps_ : int
        Batches used.
    history_ : array (steps,)
        The mean cost of a row in every batch, before its step.

    Notes
    -----
    A batch costs 2 b d k operations. `fit` ends with one pass over all rows, for labels and inertia.

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

    def __init__(
        self,
        n_clusters=8,
        *,
        init="k-means++",
        n_init="auto",
        max_iter=100,
        batch_size=1024,
        tol=0.0,
        max_no_improvement=10,
        init_size=None,
        reassignment_ratio=0.01,
        engine="auto",
        n_jobs=None,
        random_state=None,
        callback=None,
        verbose=0,
        checkpoint=None,
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.tol = tol
        self.max_no_improvement = max_no_improvement
        self.init_size = init_size
        self.reassignment_ratio = reassignment_ratio
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose
        self.checkpoint = checkpoint

    _powers: ClassVar[dict[str, Powers]] = {
        "cluster_centers_": LENGTHS,
        "inertia_": SQUARES,
        "history_": Powers(2, 0),
        "counts_": Powers(0, 1),
    }
    _powers_of_options: ClassVar[dict[str, int]] = {"init": 1}

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centers of `X` from batches of its rows, then label every row."""
        n_init, watch = self._check_options()
        try:
            source, engine, summary = self._open(X, sample_weight, first=True)
        except ScaleError as error:
            return self._fit_rescaled(error, X, sample_weight)
        check_enough_rows(self.n_clusters, summary)
        rng, store = as_rng(self.random_state), self._store(source, engine)
        if store is not None:
            rng = store.chance(rng)
        rows = _Rows(source, rng)
        batch_size = min(self.batch_size, rows.count)
        stopping = _Stopping(self, summary, batch_size / rows.count)
        course = _Course(self._starting(summary), rows, batch_size, self.reassignment_ratio, stopping, store)
        if not course.go_on():
            course.begin(self._start(course.model, rows.different(self._init_size()), n_init, rng))
        watch = self._watched(watch, course.model, source, engine, start=course.state.params)
        course.go(max(1, self.max_iter * rows.count // batch_size), watch)
        model, state, history = course.model, course.state, course.history
        found, memos = engine.scan(partial(model.e_step, state.params), source, None)
        labels = source.join(engine.map(partial(model.assign, state.params), source, memos))
        self._learn_columns(X, source)
        self.n_steps_, self.n_iter_ = len(history), -(-len(history) * batch_size // rows.count)
        self.history_ = np.array(history)
        self._publish(state, rows.rng, labels, found)
        if store is not None:
            store.remove()
        warn_of_empty_clusters(found, "raise reassignment_ratio, or ask for fewer clusters")
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """One step with `X` as the batch; the first batch also starts the centers, so it needs n_clusters rows."""
        n_init, _ = self._check_options()
        first = not hasattr(self, "cluster_centers_")
        self._refuse_rescaled("partial_fit")
        source, _, summary = self._open(X, sample_weight, first=first)
        batch = source.pick(slice(None))
        if first:
            check_enough_rows(self.n_clusters, summary)
            rng = as_rng(self.random_state)
            model = self._starting(summary)
            state = self._start(model, batch, n_init, rng)
        else:
            rng, model, state = self._random, self._model(), self._state
        state, _ = _learn(model, state, batch, self.reassignment_ratio, rng)
        stats, memo = model.e_step(state.params, batch)
        if first:
            self._learn_columns(X, source)
        self.n_steps_ = self.n_iter_ = 1 if first else self.n_steps_ + 1
        self._publish(state, rng, memo.labels, stats)
        return self

    def _starting(self, summary: Summary) -> Lloyd:
        return Lloyd(self.n_clusters, self.init, summary.unit, bounds=False)

    def _start(self, model: Lloyd, chunk: Chunk, n_init: int, rng: np.random.Generator) -> online.State:
        """The best of `n_init` starts on `chunk`."""
        source, engine = in_memory(chunk)
        check_start(self.init, source, self.n_clusters)
        tries = [model.init(source, engine, child) for child in rng.spawn(n_init)]
        costs = [model.objective(centers, model.e_step(centers, chunk)[0]) for centers in tries]
        return online.State(tries[int(np.argmin(costs))])

    def _publish(self, state: online.State, rng: np.random.Generator, labels: Any, stats: Any) -> None:
        self._state, self._random = state, rng
        self.cluster_centers_, self.labels_ = state.params, labels
        self.counts_, self.inertia_ = state.seen.weight, float(stats.cost.sum())
        self._n_features_out = self.n_clusters

    def _model(self, summary: Summary | None = None) -> Lloyd:
        return Lloyd(len(self.cluster_centers_), bounds=False)

    @property
    def _params(self) -> np.ndarray:
        return self._in_fitted_units(self.cluster_centers_)

    def _init_size(self) -> int:
        return max(3 * self.batch_size, 3 * self.n_clusters) if self.init_size is None else self.init_size

    def _check_options(self) -> tuple[int, Any]:
        whole_number("n_clusters", self.n_clusters, 1)
        whole_number("max_iter", self.max_iter, 1)
        whole_number("batch_size", self.batch_size, 1)
        not_negative("tol", self.tol)
        not_negative("reassignment_ratio", self.reassignment_ratio)
        if self.max_no_improvement is not None:
            whole_number("max_no_improvement", self.max_no_improvement, 0)
        if self.init_size is not None:
            whole_number("init_size", self.init_size, self.n_clusters)
        return starts(self.init, self.n_init, if_random=3), callbacks(self.callback, self.verbose)


class _Course:
    """One fit by batches, which knows how far it got when it is cut short."""

    state: online.State

    def __init__(
        self, model: Lloyd, rows: _Rows, batch_size: int, ratio: float, stopping: _Stopping, store: Store | None
    ):
        self.model, self.rows, self.batch_size, self.ratio = model, rows, batch_size, ratio
        self.stopping, self.store = stopping, store
        self.history: list[float] = []
        self.done = False
        self.complete: tuple[online.State, int, Any, Any] | None = None  # the last that the callback was told of

    def begin(self, state: online.State) -> None:
        self.state = state

    def go_on(self) -> bool:
        """Whether there is a fit to go on with."""
        last: Batches | None = None if self.store is None else self.store.read("batches", self.model)
        if last is None:
            return False
        self.state, self.history, self.rows.rng = (
            online.State(last.params, last.seen),
            last.history.tolist(),
            last.chance,
        )
        self.done = self.stopping.go_on(last.stopping)
        return True

    def go(self, steps: int, watch: Callback) -> None:
        self.clock = Clock(before=len(self.history) / steps)
        with interrupts.deferred(), interrupts.outermost() as keeps:
            try:
                while not self.done and len(self.history) < steps:
                    self._step(steps, watch)
                    interrupts.check()
            except BaseException as error:
                self._keep(at_once=True)
                if not (keeps and isinstance(error, KeyboardInterrupt)) or self.state.seen is None:
                    raise
                warnings.warn("interrupted: the centers reached so far are kept", FitInterruptedWarning, stacklevel=3)
                self._leave()

    def _step(self, steps: int, watch: Callback) -> None:
        before, rng = self.state.params, self.rows.rng
        self.state, stats = _learn(self.model, self.state, self.rows.any(self.batch_size), self.ratio, rng)
        self.history.append(float(stats.cost.sum() / stats.weight.sum()))
        left = self.clock.left(len(self.history) / steps) if self.stopping.never else None
        progress = Progress("batch", len(self.history), None, left, 0, self.state.params, self.history[-1])
        stopped = bool(watch(progress))
        self.done = self.stopping(before, self.state.params, self.history[-1]) or stopped
        if self.store is not None:
            self.complete = self.state, len(self.history), rng.bit_generator.state, self.stopping.known()
            self._keep(at_once=stopped)
        if stopped:
            self._leave()

    def _leave(self) -> None:
        if self.store is not None:
            self.store.leave()

    def _keep(self, at_once: bool) -> None:
        if self.store is not None and self.complete is not None:
            self.store.write("batches", partial(self._batches, *self.complete), at_once)

    def _batches(self, state: online.State, steps: int, bits: Any, stopping: Any) -> Batches:
        chance = copy.deepcopy(self.rows.rng)
        chance.bit_generator.state = bits
        return Batches(state.params, state.seen, np.array(self.history[:steps]), chance, stopping)


def _learn(
    model: Lloyd, state: online.State, chunk: Chunk, ratio: float, rng: np.random.Generator
) -> tuple[online.State, Any]:
    state, stats = online.step(model, state, chunk)
    return _reseed(state, chunk, ratio, rng), stats


class _Stopping:
    """Whether the smoothed objective, or the smoothed steps, have stopped changing."""

    def __init__(self, options: MiniBatchKMeans, summary: Summary, share: float):
        self.alpha = min(1.0, 2.0 * share)
        self.patience = options.max_no_improvement
        self.tol = float(options.tol) * float(summary.variance.mean())
        self.cost = self.step = None
        self.least, self.waited, self.batches = np.inf, 0, 0

    def __call__(self, before: np.ndarray, after: np.ndarray, cost: float) -> bool:
        self.batches += 1
        if self.batches == 1:  # the first batch is cheap for centers that were found on such rows
            return False
        self.cost = cost if self.cost is None else self.alpha * cost + (1 - self.alpha) * self.cost
        moved = float(((after.astype(np.float64) - before) ** 2).sum())
        self.step = moved if self.step is None else self.alpha * moved + (1 - self.alpha) * self.step
        self.waited = 0 if self.cost < self.least else self.waited + 1
        self.least = min(self.least, self.cost)
        return self._over()

    @property
    def never(self) -> bool:
        """Whether nothing but the number of steps ends the fit."""
        return self.patience is None and self.tol == 0

    def _over(self) -> bool:
        tired = self.patience is not None and self.waited >= self.patience
        return tired or (self.step is not None and self.tol > 0 and self.step <= self.tol)

    def known(self) -> tuple[Any, ...]:
        return self.cost, self.step, self.least, self.waited, self.batches

    def go_on(self, known: tuple[Any, ...]) -> bool:
        """Go on with what was known; whether that is the end."""
        self.cost, self.step, self.least, self.waited, self.batches = known
        return self._over()


class _Rows:
    """Rows drawn at random from those that count."""

    def __init__(self, source: Any, rng: np.random.Generator):
        self.source, self.rng = source, rng
        self.counting = None if source.w is None else np.flatnonzero(np.asarray(source.w))
        self.count = source.shape[0] if self.counting is None else len(self.counting)

    def any(self, size: int) -> Chunk:
        return self._pick(self.rng.integers(self.count, size=size))

    def different(self, size: int) -> Chunk:
        return self._pick(self.rng.choice(self.count, min(size, self.count), replace=False))

    def _pick(self, drawn: np.ndarray) -> Chunk:
        rows = np.sort(drawn)  # memory and Dask like sorted rows
        return self.source.pick(rows if self.counting is None else self.counting[rows])


def _reseed(state: online.State, chunk: Chunk, ratio: float, rng: np.random.Generator) -> online.State:
    """Centers that hardly any row has joined move to rows of the batch, as light as the lightest of the others."""
    weight = state.seen.weight
    light = np.flatnonzero(weight < ratio * weight.max())
    usable = chunk.X.shape[0] if chunk.w is None else np.flatnonzero(chunk.w)
    limit = (usable if isinstance(usable, int) else len(usable)) // 2
    light = light[np.argsort(weight[light], kind="stable")][:limit]
    if len(light) == 0:
        return state
    rows = rng.choice(usable, len(light), replace=False)
    centers, seen = state.params.copy(), weight.copy()
    picked = chunk.X[rows]
    centers[light] = picked.toarray() if hasattr(picked, "toarray") else picked
    others = np.delete(seen, light)
    seen[light] = others.min() if len(others) else 1.0
    return online.State(centers, type(state.seen)(seen, state.seen.sum_dx, state.seen.cost, 0))
