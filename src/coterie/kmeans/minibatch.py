"""K-means from small batches of rows: for data too large, or too endless, for whole passes."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np

from coterie.base import Partitional, Summary, as_rng, callbacks, in_memory, not_negative, print_progress, whole_number
from coterie.core import loop, online
from coterie.core.protocols import Chunk
from coterie.kmeans.kmeans import check_enough_rows, starting_point
from coterie.kmeans.lloyd import Lloyd, warn_of_equal_centers


class MiniBatchKMeans(Partitional):
    r"""K-means by small steps: every batch moves its centers a little way towards the means of its rows.

    .. math:: \mu_k \leftarrow \mu_k + \frac{b}{v_k + b} (\bar x_k - \mu_k)

    where :math:`b` is the weight of the batch's rows nearest to :math:`\mu_k`, :math:`\bar x_k` their mean, and
    :math:`v_k` the weight of all such rows before [1]_. A center is thus the mean of all rows that ever joined it.

    Do not use it where `KMeans` is fast enough: its objective is usually a few percent worse.

    Parameters
    ----------
    n_clusters : int, default=8
        How many centers.
    init : {'k-means++', 'forgy', 'random', 'random_partition', 'farthest'}, array (k, d) or callable
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
    engine, n_jobs, random_state, callback, verbose
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
    history_ : array (n_steps_,)
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centers of `X` from batches of its rows, then label every row."""
        self._check_options()
        source, engine, summary = self._open(X, sample_weight, reset=True)
        check_enough_rows(self.n_clusters, summary)
        rng = as_rng(self.random_state)
        n = source.shape[0]
        batch_size = min(self.batch_size, n)
        draw = partial(_draw, source, rng)
        model, state = self._start(draw(min(self._init_size(), n)), summary, rng)
        stopping = _Stopping(self, summary, batch_size / n)
        watch = callbacks(self.callback, print_progress if self.verbose else None)
        history: list[float] = []
        for step in range(max(1, self.max_iter * n // batch_size)):
            before = state.params
            state, stats = self._learn(model, state, draw(batch_size), rng)
            history.append(float(stats.cost.sum() / max(stats.weight.sum(), np.finfo(float).tiny)))
            if watch(loop.Progress(0, step + 1, state.params, history[-1])) or stopping(
                before, state.params, history[-1]
            ):
                break
        found, memos = engine.scan(partial(model.e_step, state.params), source, None)
        self._publish(state, source.join(engine.map(partial(model.assign, state.params), source, memos)), found)
        self.n_steps_, self.n_iter_ = len(history), -(-len(history) * batch_size // n)
        self.history_ = np.array(history)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """One step with `X` as the batch; the first batch also starts the centers, so it needs n_clusters rows."""
        self._check_options()
        first = not hasattr(self, "cluster_centers_")
        source, _, summary = self._open(X, sample_weight, reset=first)
        if first:
            check_enough_rows(self.n_clusters, summary)
            self._random = as_rng(self.random_state)
            self.n_steps_ = 0
        whole = source.pick(slice(None))
        if first:
            model, state = self._start(whole, summary, self._random)
        else:
            model, state = self._model(summary), self._state
        state, _ = self._learn(model, state, whole, self._random)
        stats, memo = model.e_step(state.params, whole)
        self._publish(state, memo.labels, stats)
        self.n_steps_ += 1
        self.n_iter_ = self.n_steps_
        return self

    def _start(self, chunk: Chunk, summary: Summary, rng: np.random.Generator) -> tuple[Lloyd, online.State]:
        """The best of `n_init` starts on `chunk`."""
        source, engine = in_memory(chunk)
        start = starting_point(self.init, self.n_clusters, source, self.random_state)
        model = Lloyd(self.n_clusters, start, summary.unit, bounds=False)
        fits = [model.init(source, engine, child) for child in rng.spawn(self._n_init())]
        costs = [model.objective(model.e_step(centers, chunk)[0]) for centers in fits]
        return model, online.State(fits[int(np.argmin(costs))])

    def _learn(self, model: Lloyd, state: online.State, chunk: Chunk, rng: np.random.Generator) -> tuple[Any, Any]:
        state, stats = online.step(model, state, chunk)
        return _reseed(state, chunk, self.reassignment_ratio, rng), stats

    def _publish(self, state: online.State, labels: Any, stats: Any) -> None:
        self._state = state
        self.cluster_centers_, self.labels_ = state.params, labels
        self.counts_, self.inertia_ = state.seen.weight, float(stats.cost.sum())
        self._n_features_out = self.n_clusters
        warn_of_equal_centers(state.params)

    def _model(self, summary: Summary | None = None) -> Lloyd:
        return Lloyd(len(self.cluster_centers_), bounds=False)

    @property
    def _params(self) -> np.ndarray:
        return self.cluster_centers_

    def _n_init(self) -> int:
        if self.n_init != "auto":
            return self.n_init
        return 3 if callable(self.init) or self.init in ("forgy", "random", "random_partition") else 1

    def _init_size(self) -> int:
        return max(3 * self.batch_size, 3 * self.n_clusters) if self.init_size is None else self.init_size

    def _check_options(self) -> None:
        whole_number("n_clusters", self.n_clusters, 1)
        whole_number("max_iter", self.max_iter, 1)
        whole_number("batch_size", self.batch_size, 1)
        not_negative("tol", self.tol)
        not_negative("reassignment_ratio", self.reassignment_ratio)
        if self.n_init != "auto":
            whole_number("n_init", self.n_init, 1)
        if self.max_no_improvement is not None:
            whole_number("max_no_improvement", self.max_no_improvement, 0)
        if self.init_size is not None:
            whole_number("init_size", self.init_size, self.n_clusters)


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
        tired = self.patience is not None and self.waited >= self.patience
        return tired or (self.tol > 0 and self.step <= self.tol)


def _draw(source: Any, rng: np.random.Generator, size: int) -> Chunk:
    return source.pick(np.sort(rng.integers(source.shape[0], size=size)))  # sorted: memory and Dask like that


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
