"""The scikit-learn contract, and the one place where source, engine and model meet."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from coterie import interrupts, machine
from coterie.core import loop
from coterie.core.arguments import as_rng
from coterie.core.checkpoint import Keeper, Notes, Store
from coterie.core.clock import Now, spoken
from coterie.core.errors import FitInterruptedWarning, InputError, ParameterError
from coterie.core.progress import Callback, Progress
from coterie.core.protocols import Chunk, Engine, Model, Source
from coterie.core.scale import LENGTHS, SQUARES, Powers, Scale, ScaleError, is_numbers, multiplied, times_power
from coterie.data import as_source, opened
from coterie.data.frames import header, is_frame
from coterie.data.memory import MemorySource
from coterie.data.scale import check_weights, divided
from coterie.data.summary import Summary, summarize
from coterie.distances.distance import Distance, as_distance
from coterie.engines import as_engine, local
from coterie.sklearn_export import SklearnExport

PAUSE = 1.0  # seconds between two lines that are printed


COLUMNS = ("n_features_in_", "feature_names_in_")
CENTERS_STORED = {"cluster_centers_": "real K D", "labels_": "index<K *"}
CENTERS = {"cluster_centers_": LENGTHS, "inertia_": SQUARES, "history_": SQUARES}  # what K-means finds


def in_memory(chunk: Chunk) -> tuple[Source, Engine]:
    """A chunk as a source of its own, and the engine for one that small."""
    return MemorySource(chunk.X, chunk.w), local.Serial()


class Estimator(SklearnExport, BaseEstimator):
    """An estimator around a model: opens the rows, runs the loop, and asks the model for answers.

    A subclass has the options `engine`, `n_jobs` and `random_state`, builds its model in `_model`, and keeps what a
    model needs to answer for new rows in `_params`.
    """

    engine: Any
    n_jobs: int | None
    random_state: Any
    _sparse = True  # whether rows may be sparse
    _holes = False  # whether NaN may stand for values that are missing
    _powers: ClassVar[dict[str, Powers] | None] = None  # of fitted attributes, where rows of any scale can be fitted
    _powers_of_options: ClassVar[dict[str, int]] = {}  # of options that are given in the units of the rows
    _powers_of_answers: ClassVar[dict[str, int]] = {"distances": 1}  # of what the model says of new rows

    @property
    def _called(self) -> str:
        """Its name, and the options that decide what rows it takes."""
        return type(self).__name__

    def _model(self, summary: Summary | None = None) -> Any:
        raise NotImplementedError

    @property
    def _params(self) -> Any:
        raise NotImplementedError

    def predict(self, X: Any) -> Any:
        """The cluster of every row (n,)."""
        return self._map(X, "assign")

    def _map(self, X: Any, verb: str) -> Any:
        source, engine, model = self._answer(X, None)
        found = source.join(engine.map(partial(getattr(model, verb), self._params), source))
        exponent = self._scale.rows * self._powers_of_answers.get(verb, 0)
        return times_power(exponent, found) if exponent else found

    def _sum(self, X: Any, sample_weight: Any) -> tuple[Any, Any]:
        """The model, and its statistics on `X` at the parameters found."""
        source, engine, model = self._answer(X, sample_weight)
        stats, _ = engine.scan(partial(model.e_step, self._params), source, None)
        return model, stats

    def _answer(self, X: Any, sample_weight: Any) -> tuple[Source, Engine, Any]:
        check_is_fitted(self)
        source, engine, _ = self._open(X, sample_weight, first=False)
        return source, engine, self._model()

    def _open(self, X: Any, sample_weight: Any, first: bool, y: Any = None) -> tuple[Source, Engine, Summary]:
        """The rows as the model wants them, and where to compute on them.

        Rows to fit that are out of range are a `ScaleError`: where a class has `_powers`, `_fit_rescaled` fits them.
        """
        source, engine, summary = self._given(X, sample_weight, first, y)
        ready = self._ready(source, engine, first)
        if ready is source:
            return source, engine, summary
        return ready, engine, summarize(ready, engine, self._holes, first, self._rescales)

    def _ready(self, source: Source, engine: Engine, first: bool) -> Source:
        """The rows as the model wants them: of unit length, in other units; by default as they are."""
        return source

    def _given(self, X: Any, sample_weight: Any, first: bool, y: Any = None) -> tuple[Source, Engine, Summary]:
        """The rows as they are; unless `first`, their columns must be those of `fit`."""
        source = as_source(X, sample_weight, y)
        if not self._sparse and hasattr(getattr(source, "X", None), "indptr"):
            raise InputError(f"Input X is sparse: {self._called} needs dense rows (X.toarray() makes them so)")
        self._check_columns(X, source, BaseEstimator() if first else self, reset=first)
        engine = as_engine(self.engine, source, self.n_jobs)
        if not first:
            source = divided(source, self._scale, engine)
            check_weights(source)
        return source, engine, summarize(source, engine, self._holes, first, self._rescales)

    # rows and weights out of range

    @property
    def _rescales(self) -> bool:
        """Whether rows are divided by their scale well before their squares leave the range of float64."""
        return self._powers is not None and vars(self).get("_recorder") is None

    @property
    def _scale(self) -> Scale:
        """Powers of two by which rows and weights were divided before the fit."""
        return Scale(*vars(self).get("_exponents", (0, 0)))

    def _scale_of(self, sample_weight: Any) -> Scale:
        """The same for rows that are to be answered for: none by which weights were divided, if there are none."""
        return self._scale if sample_weight is not None else self._scale._replace(weights=0)

    def _fit_rescaled(self, error: ScaleError, X: Any, sample_weight: Any, **more: Any) -> Self:
        """Fit rows and weights divided by their scale, and multiply what was found by it: no digit changes."""
        going_on = getattr(self, "warm_start", False) and hasattr(self, "weights_")
        if self._powers is None or going_on or vars(self).get("_recorder") is not None:
            raise error
        X, scale = opened(X), error.scale
        source = as_source(X, sample_weight)
        small = divided(source, scale, as_engine(self.engine, source, self.n_jobs))
        options = self.get_params(deep=False)
        given = {name: value for name in self._powers_of_options if is_numbers(value := options[name])}
        for name, value in given.items():
            power = self._powers_of_options[name]
            options[name] = np.ldexp(np.asarray(value, dtype=np.float64), -power * scale.rows)
        inner = type(self)(**options).fit(small.X, sample_weight=small.w, **more)
        self._learn_columns(X, source)
        fitted = {name: value for name, value in vars(inner).items() if name not in (*options, *COLUMNS)}
        for name, value in multiplied(fitted, self._powers, scale).items():
            setattr(self, name, value)
        self._exponents = tuple(scale)
        return self

    def _refuse_rescaled(self, method: str) -> None:
        if any(self._scale):
            raise InputError(
                f"{method} cannot go on from a fit of rows or weights out of range, of about 2^{self._scale.rows} and "
                f"2^{self._scale.weights}: divide them by a power of two before the first fit"
            )

    def _in_fitted_units(self, centers: Any) -> Any:
        """Centers in the units of the rows as the model computes with them."""
        exponent = self._scale.rows * (self._powers or {}).get("cluster_centers_", LENGTHS).rows
        return times_power(-exponent, centers) if exponent else centers

    def _learn_columns(self, X: Any, source: Source) -> None:
        """Number and names of the columns, kept once a fit has succeeded."""
        self.__dict__.pop("_exponents", None)  # those of an earlier fit
        self._check_columns(X, source, self, reset=True)

    @staticmethod
    def _check_columns(X: Any, source: Source, estimator: BaseEstimator, reset: bool) -> None:
        names = getattr(source, "columns", None)
        whole = is_frame(X) and X.shape[1] == source.shape[1]  # else it has vectors, which are several columns
        named = X if whole else getattr(source, "X", X) if names is None else header(names)
        validate_data(estimator, named, reset=reset, skip_check_array=True)

    def _descend(
        self,
        model: Model,
        source: Source,
        engine: Engine,
        n_init: int,
        max_iter: int,
        callback: Any,
        rng: np.random.Generator | None = None,
        store: Store | None = None,
        notes: Notes | None = None,
        **how: Any,
    ) -> tuple[loop.Fit, Any]:
        """The fit, and the labels of the rows it was made with; chance is `rng`, or what `random_state` makes.

        States go to `store`, by default the file `checkpoint` if it names one, and with them what `notes` has written.
        """
        rng = as_rng(self.random_state) if rng is None else rng
        store = self._store(source, engine) if store is None else store
        keeper = None
        if store is not None:
            keeper, rng = Keeper(store, "end", notes), store.chance(rng)
        callback = self._watched(callback, model, source, engine, how.get("key"))
        how = {"n_init": n_init, "max_iter": max_iter, "callback": callback, "keeper": keeper, **how}
        with machine.one_blas_thread:  # starts and M-steps, too, give the same bits on any number of threads
            found = loop.fit(model, source, engine, rng=rng, **how)
            pieces = self._assign(model, source, engine, found)
        found = replace(found, memos=None)  # bounds are let go before the labels are joined
        if (recorder := vars(self).get("_recorder")) is not None:
            recorder.chose(found)
        if model.converges and not (found.converged or found.stopped):
            warnings.warn(
                f"{type(self).__name__} did not converge in max_iter={max_iter} iterations: "
                "raise max_iter, or tol to stop earlier",
                ConvergenceWarning,
                stacklevel=3,
            )
        labels = source.join(pieces)
        if store is not None:
            store.remove()
        return found, labels

    @staticmethod
    def _assign(model: Model, source: Source, engine: Engine, found: loop.Fit) -> list[Any]:
        """Labels at the end of a fit. The first Ctrl-C that comes so late does not cost the result."""
        with interrupts.outermost() as keeps:
            try:
                return engine.map(partial(model.assign, found.params), source, found.memos)
            except KeyboardInterrupt:
                if not keeps:
                    raise
                warnings.warn("interrupted: the result is complete", FitInterruptedWarning, stacklevel=3)
                return engine.map(partial(model.assign, found.params), source)

    def _watched(
        self, callback: Any, model: Any, source: Source, engine: Engine, key: Any = None, start: Any = None
    ) -> Any:
        """`callback`; while `fit_trace` runs, with the recorder before it. `start` is that of a fit by batches."""
        recorder = vars(self).get("_recorder")
        return callback if recorder is None else recorder.watching(callback, model, source, engine, key, start)

    def _store(self, source: Source, engine: Engine) -> Store | None:
        """Where the states of this fit are kept; None unless `checkpoint` says so. A trace needs the whole way."""
        path = getattr(self, "checkpoint", None)
        if path is None or vars(self).get("_recorder") is not None:
            return None
        from coterie.persistence.checkpoint import CheckpointFile

        return CheckpointFile(path, self, source, engine)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._sparse
        tags.input_tags.allow_nan = self._holes
        return tags


class Partitional(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):
    """An estimator of centers: labels and distances to centers go out."""

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the cluster of every row."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Fit, and return the distance of every row to every center."""
        return super().fit_transform(opened(X), y, **options)

    def transform(self, X: Any) -> Any:
        """The distance of every row to every center (n, k)."""
        return self._map(X, "distances")

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The objective on `X`, negated: larger is better."""
        model, stats = self._sum(X, sample_weight)
        name = getattr(self, "_objective", "inertia_")
        objective = {name: model.objective(self._params, stats)}
        return -multiplied(objective, self._powers or {}, self._scale_of(sample_weight))[name]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class ByDistance(SklearnExport, BaseEstimator):
    """An estimator that needs distances and nothing else: those of a `metric`, or given ones."""

    metric: Any
    metric_params: Any

    @property
    def _given_distances(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def _as_distance(self) -> Distance | None:
        """The distance; None where the distances are given."""
        if not self._given_distances:
            return as_distance(self.metric, **(self.metric_params or {}))
        if self.metric_params:
            raise ParameterError(f"metric='precomputed' takes no metric_params; got {self.metric_params!r}")
        return None

    def _check_columns(self, X: Any, reset: bool) -> None:
        """Number and names of the columns of what `opened` gave; lists of series have none."""
        if isinstance(X, list) and len({np.shape(row) for row in X}) > 1:
            return
        names = getattr(X, "columns", None)
        named = X if is_frame(X) else np.asarray(X) if names is None else header(names)
        validate_data(self, named, reset=reset, skip_check_array=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._given_distances
        return tags


def callbacks(callback: Any, verbose: Any, *others: Callback) -> Callback:
    """What is called after every iteration: `others`, the user's `callback`, and what prints lines if `verbose`."""
    if callback is not None and not callable(callback):
        raise ParameterError(f"callback must be None or a function of one argument; got {callback!r}")
    asked = (*others, callback, Lines(every=int(verbose) > 1) if verbose else None)
    called = [function for function in asked if function is not None]
    return lambda progress: bool(sum(bool(function(progress)) for function in called))


class Lines:
    """Prints how far a fit is: now and then, or after `every` iteration."""

    def __init__(self, every: bool = False, now: Now = time.monotonic) -> None:
        self.every, self.now, self.last = every, now, -np.inf

    def __call__(self, progress: Progress) -> None:
        if not self.every and self.now() - self.last < PAUSE:
            return
        self.last = self.now()
        left = spoken(progress.left)
        where = f"start {progress.run + 1}, iteration {progress.iteration}: objective {progress.objective:.6g}"
        print(f"{where}, {left}" if left else where)
