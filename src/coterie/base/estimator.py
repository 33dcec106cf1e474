"""The base class of estimators with a model: the scikit-learn API with a source, an engine and a model."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from coterie import interrupts, machine
from coterie.base.device_options import check_options_on_device, chosen_device
from coterie.core import loop
from coterie.core.arguments import as_rng
from coterie.core.arrays import is_sparse
from coterie.core.attachments import detach
from coterie.core.checkpoint import Checkpointer, HistoryRecorder, Store
from coterie.core.protocols import Chunk, Engine, Model, Source
from coterie.core.repr_html import EstimatorHTMLMixin
from coterie.core.scale import LENGTHS, Powers, Scale, is_numbers, multiplied, times_power
from coterie.data import as_source, label_files, opened, streams
from coterie.data.files import FileSource
from coterie.data.frames import empty_frame, is_frame
from coterie.data.locations import is_paths
from coterie.data.memory import MemorySource
from coterie.data.open_files import scan_files
from coterie.data.scale_check import check_weights, divide_by_scale
from coterie.data.summary import Summary, summarize
from coterie.data.tensors import as_array, check_device, is_on_device
from coterie.engines import as_engine, local, released_on_error
from coterie.errors import InputError, ParameterError, ScaleError
from coterie.sklearn_export import SklearnExport

COLUMNS = ("n_features_in_", "feature_names_in_")


def in_memory(chunk: Chunk, as_one_part: bool = False) -> tuple[Source, Engine]:
    """A source of the rows of one chunk, and a serial engine, which is fastest for few rows."""
    return MemorySource(chunk.X, chunk.w, chunk_rows=chunk.X.shape[0] if as_one_part else None), local.Serial()


def check_columns(estimator: BaseEstimator, columns: Any, reset: bool) -> None:
    """Check, or with `reset` store, number and names of the columns of a table."""
    has_names = is_frame(columns) or hasattr(estimator, "feature_names_in_")
    is_table = getattr(columns, "ndim", 0) == 2
    if has_names or not is_table or not (reset or columns.shape[1] == getattr(estimator, "n_features_in_", None)):
        validate_data(estimator, columns, reset=reset, skip_check_array=True)
    elif reset:  # looking for names in an array takes as long as a prediction
        estimator.n_features_in_ = columns.shape[1]


class Estimator(EstimatorHTMLMixin, SklearnExport, BaseEstimator):
    """Base class of estimators with a model: it opens the data, runs the loop, and predicts with the model.

    A subclass has the options `engine`, `n_jobs` and `random_state`. Its method `_model` returns the model, and its
    property `_params` the fitted parameters of the model.
    """

    engine: Any
    n_jobs: int | None
    random_state: Any
    _powers: ClassVar[dict[str, Powers] | None] = None  # of fitted attributes; None: X is never rescaled
    _powers_of_options: ClassVar[dict[str, int]] = {}  # of options in the units of X
    _powers_of_outputs: ClassVar[Mapping[str, float]] = {"distances": 1}  # of results of model methods for new rows

    @property
    def _name_in_errors(self) -> str:
        """The name of the class, with the options that restrict its input."""
        return type(self).__name__

    @property
    def _device(self) -> str:
        """Where the rows are processed; estimators without the option `device` use the CPU."""
        return check_device(getattr(self, "device", "cpu"))

    @property
    def _not_on_device(self) -> dict[str, str]:
        """Options whose values a GPU does not support, and what to use instead."""
        return {}

    @property
    def _sparse(self) -> bool:
        """Whether X may be sparse."""
        return True

    @property
    def _allows_missing(self) -> bool:
        """Whether X may contain NaN, as missing values."""
        return False

    _allows_empty_columns: ClassVar[bool] = False  # whether a column may be NaN in every row of a fit

    def _model(self, summary: Summary | None = None) -> Any:
        raise NotImplementedError

    @property
    def _params(self) -> Any:
        raise NotImplementedError

    def predict(self, X: Any) -> Any:
        """Predict the cluster of every row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Rows with the same columns as in `fit`.

        Returns
        -------
        array of shape (n,)
            Labels from 0 to K - 1.
        """
        return self._map(X, "assign")

    def predict_to(self, X: Any, path: Any, overwrite: bool = False) -> list[str]:
        """Predict the cluster of every row, and write the labels to Parquet files, one for each part of the rows.

        On a cluster each worker writes the labels of its rows, to a folder that all of them share. The column `cluster`
        of all files, in the order of their names, is the result of `predict`.

        Parameters
        ----------
        X : array-like, sparse matrix, Dask array or path (n, d)
            Rows with the same columns as in `fit`.
        path : str or Path
            Pattern of the file names, such as ``'labels/*.parquet'``. The folder is created.
        overwrite : bool, default=False
            Whether existing files that match the pattern are deleted first.

        Returns
        -------
        list of str
            The paths of the files.
        """
        source, engine, model = self._open_fitted(X, None)
        pattern = label_files.check_pattern(path, overwrite)
        step = partial(label_files.write_labels, partial(model.assign, self._params), pattern)
        return list(engine.sum(step, source))

    def _map(self, X: Any, method: str) -> Any:
        """The results of a method of the model for all rows of `X`."""
        source, engine, model = self._open_fitted(X, None)
        result = source.join(engine.map(partial(getattr(model, method), self._params), source))
        power = Powers(self._powers_of_outputs.get(method, 0), 0)
        return multiplied({method: result}, {method: power}, self._scale)[method] if power.rows else result

    def _sum(self, X: Any, sample_weight: Any) -> tuple[Any, Any]:
        """The model, and its statistics of `X` at the fitted parameters."""
        source, engine, model = self._open_fitted(X, sample_weight)
        stats, _ = engine.scan(partial(model.e_step, self._params), source, None)
        return model, stats

    def _open_fitted(self, X: Any, sample_weight: Any) -> tuple[Source, Engine, Any]:
        if "n_features_in_" not in vars(self):
            check_is_fitted(self)
        source, engine, _ = self._open(X, sample_weight, first=False)
        return source, engine, self._model()

    def _open(self, X: Any, sample_weight: Any, first: bool, y: Any = None) -> tuple[Source, Engine, Summary]:
        """The rows as the model needs them, the engine, and a summary of the rows.

        In a fit (`first`), rows out of range raise a `ScaleError`. If the class has `_powers`, `_fit_rescaled` fits
        them.
        """
        source, engine, summary = self._open_rows(X, sample_weight, first, y)
        prepared = self._prepare_rows(source, engine, first)
        if prepared is source:
            return source, engine, summary
        return prepared, engine, self._summarize(prepared, engine, first)

    def _prepare_rows(self, source: Source, engine: Engine, first: bool) -> Source:
        """The rows as the model needs them, such as normalised to unit length; by default unchanged."""
        return source

    def _open_rows(self, X: Any, sample_weight: Any, first: bool, y: Any = None) -> tuple[Source, Engine, Summary]:
        """The rows unchanged, the engine and a summary; unless `first`, the columns must be those of `fit`."""
        X = self._read(X)
        source = as_source(X, sample_weight, y, chosen_device(self, self._device, X))
        if source.engine == "cuda":
            check_options_on_device(self)
        if not self._sparse and is_sparse(getattr(source, "X", None)):
            raise InputError(f"Input X is sparse: {self._name_in_errors} needs dense rows (X.toarray() converts them)")
        self._check_columns(X, source, BaseEstimator() if first else self, reset=first)
        engine = as_engine(self.engine, source, self.n_jobs)
        if not first:
            source = divide_by_scale(source, self._scale, engine)
            check_weights(source)
        return source, engine, self._summarize(source, engine, first)

    def _summarize(self, source: Source, engine: Engine, first: bool) -> Summary:
        return summarize(source, engine, self._allows_missing, first, self._rescales, self._allows_empty_columns)

    # rows and weights out of range

    @property
    def _rescales(self) -> bool:
        """Whether X is divided by its scale if its squares could leave the range of float64."""
        return self._powers is not None

    @property
    def _scale(self) -> Scale:
        """Exponents of the powers of two by which rows and weights were divided before the fit."""
        return Scale(*vars(self).get("_exponents", (0, 0)))

    def _store_scale(self, scale: Scale) -> None:
        self.__dict__.pop("_exponents", None)  # from an earlier fit
        if any(scale):
            self._exponents = tuple(scale)

    def _scale_of(self, sample_weight: Any) -> Scale:
        """The scale of new rows; without weights, weights were not divided."""
        return self._scale if sample_weight is not None else self._scale._replace(weights=0)

    @property
    def _is_warm(self) -> bool:
        """Whether a fit starts at the result of the last one."""
        return False

    def _read(self, X: Any) -> Any:
        """`X` in a form that can be used more than once: streams are read, and files, unless workers read them."""
        if is_on_device(X) and self._device != "cpu":
            return X
        is_local = isinstance(self.engine, local.Serial | local.Threads) or self.engine in ("auto", "serial", "threads")
        return opened(X) if is_local or not is_paths(X) else scan_files(X, cache="none")

    _as_array = staticmethod(as_array)

    @staticmethod
    def _is_stream(X: Any) -> bool:
        """Whether `X` gives its rows in batches, each of which is a step of `partial_fit`."""
        return streams.is_stream(X) or (isinstance(X, FileSource) and X.cache == "none")

    def _partial_fit_batches(self, X: Any, sample_weight: Any, **fit_params: Any) -> Self:
        """Update the estimator with each batch of a stream."""
        if sample_weight is not None or any(value is not None for value in fit_params.values()):
            names = " and ".join(["sample_weight", *fit_params])
            raise ParameterError(f"{names} must be None for a stream: call partial_fit for each batch with its own")
        for batch in streams.batches(X):
            self.partial_fit(batch)
        return self

    def _fit_rescaled(self, error: ScaleError, X: Any, sample_weight: Any, **fit_params: Any) -> Self:
        """Fit rows and weights divided by their scale, and multiply the results by it; no digit changes."""
        self._check_rescalable(error)
        X, scale = X if is_on_device(X) else opened(X), Scale(error.rows, error.weights)
        rows, weights = self._divided(X, sample_weight, scale)
        inner = self._with_divided_options(scale)
        if (recorder := vars(self).get("_recorder")) is not None:
            inner._recorder = recorder
        inner.fit(rows, sample_weight=weights, **fit_params)
        return self._take_fit(inner, X, sample_weight, scale)

    def _check_rescalable(self, error: ScaleError) -> None:
        """Raise the error if rows or weights of this scale cannot be divided."""
        if self._powers is None or self._is_warm:
            raise error

    def _with_divided_options(self, scale: Scale) -> Self:
        """An estimator for rows divided by this scale."""
        options = self.get_params(deep=False)
        numbers = {name: value for name in self._powers_of_options if is_numbers(value := options[name])}
        for name, value in numbers.items():
            power = self._powers_of_options[name]
            options[name] = np.ldexp(np.asarray(value, dtype=np.float64), -power * scale.rows)
        return type(self)(**options)

    def _take_fit(self, inner: Self, X: Any, sample_weight: Any, scale: Scale) -> Self:
        """Take over the fit of an estimator to rows and weights divided by this scale, in the units of `X`."""
        self._learn_columns(X, self._source(X, sample_weight))
        options = inner.get_params(deep=False)
        fitted = {name: value for name, value in vars(inner).items() if name not in (*options, *COLUMNS)}
        for name, value in multiplied(fitted, self._powers or {}, scale).items():
            setattr(self, name, value)
        self._store_scale(scale)
        return self

    def _divided(self, X: Any, sample_weight: Any, scale: Scale) -> tuple[Any, Any]:
        """Rows and weights divided by their scale; files that are read in every pass stay a source."""
        source = self._source(X, sample_weight)
        scaled = divide_by_scale(source, scale, as_engine(self.engine, source, self.n_jobs))
        rows = getattr(scaled, "X", scaled)
        return rows if is_on_device(X) else as_array(rows), scaled.w

    def _source(self, X: Any, sample_weight: Any) -> Any:
        """The rows, unchanged."""
        return as_source(X if is_on_device(X) else opened(X), sample_weight, device=self._device)

    def _reject_rescaled(self, method: str) -> None:
        if any(self._scale):
            raise InputError(
                f"{method} cannot continue a fit whose rows or weights were rescaled; they are about "
                f"2^{self._scale.rows} and 2^{self._scale.weights}: divide them by a power of two before the first fit"
            )

    def _in_fitted_units(self, centers: Any) -> Any:
        """Centers in the units of the rescaled rows."""
        exponent = int(self._scale.rows * (self._powers or {}).get("cluster_centers_", LENGTHS).rows)
        return times_power(-exponent, centers) if exponent else centers

    def _learn_columns(self, X: Any, source: Source) -> None:
        """Store number and names of the columns after a fit, and delete what was added after the last one."""
        detach(self)
        self._store_scale(Scale(0, 0))
        self._check_columns(X, source, self, reset=True)

    @staticmethod
    def _check_columns(X: Any, source: Source, estimator: BaseEstimator, reset: bool) -> None:
        names = getattr(source, "columns", None)
        has_scalars = is_frame(X) and X.shape[1] == source.shape[1]  # a column of vectors becomes several columns
        columns = X if has_scalars else getattr(source, "X", X) if names is None else empty_frame(names)
        check_columns(estimator, columns, reset)

    _released_on_error = staticmethod(released_on_error)

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
        recorder: HistoryRecorder | None = None,
        **loop_options: Any,
    ) -> tuple[loop.Fit, Any]:
        """The fit, and the labels of its rows. The random generator is `rng`, by default made from `random_state`.

        States are saved in `store`, by default in the file `checkpoint` if there is one, with those of `recorder`.
        """
        rng = as_rng(self.random_state) if rng is None else rng
        store = self._store(source, engine) if store is None else store
        checkpointer = None
        if store is not None:
            checkpointer, rng = Checkpointer(store, "end", recorder), store.initial_rng(rng)
        options = {
            "n_init": n_init,
            "max_iter": max_iter,
            "callback": self._with_recorder(callback, model, source, engine, loop_options.get("key")),
            "checkpointer": checkpointer,
            **loop_options,
        }
        with machine.one_blas_thread, self._released_on_error(engine, source):
            # One BLAS thread, so that initialisations and M-steps do not depend on the number of threads.
            result = loop.fit(model, source, engine, rng=rng, **options)
            pieces = self._assign(model, source, engine, result)
        result = replace(result, memos=None)  # frees their memory before the labels are joined
        if (trace_recorder := vars(self).get("_recorder")) is not None:
            trace_recorder.chose(result)
        if model.converges and max_iter > 0 and not (result.converged or result.stopped):
            warnings.warn(
                f"{type(self).__name__} did not converge in max_iter={max_iter} iterations: "
                "raise max_iter, or raise tol to stop earlier",
                ConvergenceWarning,
                stacklevel=3,
            )
        labels = source.join(pieces)
        if store is not None:
            store.remove()
        return result, labels

    @staticmethod
    def _assign(model: Model, source: Source, engine: Engine, result: loop.Fit) -> list[Any]:
        """Labels at the end of a fit. After the first Ctrl-C they are computed again, to keep the result."""
        with interrupts.outermost() as is_outermost:
            try:
                return engine.map(partial(model.assign, result.params), source, result.memos)
            except KeyboardInterrupt as error:
                interrupts.keep_result(error, is_outermost, has_result=True, kept="the result is complete")
                return engine.map(partial(model.assign, result.params), source)

    def _with_recorder(
        self, callback: Any, model: Any, source: Source, engine: Engine, key: Any = None, start: Any = None
    ) -> Any:
        """`callback`, after that of the recorder of `fit_trace` if it runs; `start` is needed for mini-batches only."""
        recorder = vars(self).get("_recorder")
        return callback if recorder is None else recorder.watching(callback, model, source, engine, key, start)

    def _store(self, source: Source, engine: Engine) -> Store | None:
        """The storage of states; None without `checkpoint`, or if a trace is recorded, which needs all iterations."""
        path = getattr(self, "checkpoint", None)
        if path is None or vars(self).get("_recorder") is not None:
            return None
        from coterie.persistence.checkpoint_file import CheckpointFile

        return CheckpointFile(path, self, source, engine)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._sparse
        tags.input_tags.allow_nan = self._allows_missing
        return tags
