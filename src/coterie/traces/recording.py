"""The recorded iterations of a fit, from which traces are computed when they are needed, and `fit_trace`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from coterie import machine
from coterie.core.arrays import as_dense
from coterie.core.protocols import Chunk
from coterie.data.row_sample import sample_rows
from coterie.data.summary import column_names
from coterie.traces.half_steps import HalfSteps
from coterie.traces.recorder import Recorder
from coterie.traces.trace import Step, Trace

MAX_ROWS, MIN_ROWS = 5000, 100  # size of the sample of rows in a trace
MAX_VALUES = 20_000_000  # maximum number of values in this sample, unless it has `MIN_ROWS` rows


class Recording:
    """The recorded iterations of the best restart, and the rows; `columns` are names of columns for traces."""

    def __init__(self, estimator: Any, recorder: Recorder, columns: list[str] | None) -> None:
        self._estimator, self._recorder, self._columns = estimator, recorder, columns
        self._trace: Trace | None = None
        n, d = recorder.source.shape
        self._index = sample_rows(n, max(MIN_ROWS, min(MAX_ROWS, MAX_VALUES // d)))

    def trace(self) -> Trace:
        """The trace with a sample of the rows; it is computed at the first call."""
        if self._trace is None:
            with machine.one_blas_thread:
                chunk = self._recorder.source.pick(self._index)
                half_steps = HalfSteps(self._recorder, chunk, self._index, _fill_missing(chunk)[2])
                self._trace = self._with_steps(half_steps, half_steps.steps())
        return self._trace

    def all_rows(self, max_iterations: int) -> tuple[Trace, Iterator[Step]]:
        """A trace without steps, and its steps one by one, with the labels of all rows (n,) that were fitted.

        Of more iterations than `max_iterations`, the first ones and pairs at equal distances are used. Only one set of
        labels is in memory at a time.
        """
        chunk = self._recorder.source.pick(self._index)
        half_steps = HalfSteps(self._recorder, chunk, None, _fill_missing(chunk)[2], max_iterations)
        return self._with_steps(half_steps, ()), half_steps.steps()

    def renumber(self, numbers: np.ndarray) -> None:
        """Number the clusters in another way (k,) in traces that are computed from now on."""
        self._recorder.numbers = numbers

    @property
    def n_iterations(self) -> int:
        """Number of iterations that were recorded."""
        return len(self._recorder.run.iterations)

    def of_rows(self, trace: Trace, rows: np.ndarray) -> Trace:
        """The trace with other rows, so that its shares are those of these rows."""
        return replace(trace, _chunk=self._recorder.source.pick(rows))

    def _with_steps(self, half_steps: HalfSteps, steps: Iterable[Step]) -> Trace:
        recorder, estimator = self._recorder, self._estimator
        names = vars(estimator).get("feature_names_in_")  # of the rows before they were divided
        names = column_names(recorder.source) if names is None else names
        rows, has_missing, _ = _fill_missing(half_steps.chunk)
        objective = half_steps.objective_name or estimator._objective.rstrip("_")
        trace = Trace(
            estimator, list(steps), objective, "higher" if half_steps.objective_name else "lower", rows,
            list(names if self._columns is None else self._columns), recorder.source.shape[0], has_missing,
            estimator._scale, recorder.model, half_steps.chunk,
        )  # fmt: skip
        return estimator._in_user_units(trace)


def _fill_missing(chunk: Chunk) -> tuple[np.ndarray, bool, np.ndarray]:
    """Return dense rows with column means for missing values, whether values are missing, and the means (d,)."""
    X = np.array(as_dense(chunk.X))
    is_missing = np.isnan(X)
    means = np.where(is_missing, 0.0, X).sum(axis=0) / np.maximum((~is_missing).sum(axis=0), 1)
    return np.where(is_missing, means, X).astype(X.dtype), bool(is_missing.any()), means


class Traced:
    """Mixin for estimators that pass their callback through `_with_recorder`, so that a fit can be recorded."""

    _objective: ClassVar[str]  # fitted attribute that holds the objective, unless the model maximises one

    def fit_trace(self, X: Any, sample_weight: Any = None, **fit_params: Any) -> Trace:
        """Fit the model and return a trace of the fit, with every half step.

        The result of the fit is identical to that of `fit`. A callback records the parameters of every iteration. After
        the fit, two or three passes over the rows for each iteration of the best restart compute the number of rows
        that changed cluster, and the objective after each half step. The trace contains a sample of at most 5,000 rows.
        If rows or weights were divided by a power of two, the values of the trace are in these units: see
        `Trace.scale`.

        Parameters
        ----------
        X : array, DataFrame or other input of `fit`
            The rows.
        sample_weight : array of shape (n,) or None, default=None
            Row weights.
        **fit_params
            Other arguments of `fit`, such as `known_labels` of mixtures.

        Returns
        -------
        coterie.traces.Trace
            The trace; its `model` is this fitted estimator. Notebooks show it as a player; `save` writes it to a file.

        Examples
        --------
        >>> from coterie import KMeans
        >>> from coterie.datasets import make_blobs
        >>> X, _ = make_blobs(200, 2, centers=3, random_state=0)
        >>> trace = KMeans(3, random_state=0).fit_trace(X)
        >>> [step.kind for step in trace.steps[:4]]
        ['start', 'assign', 'update', 'assign']
        >>> bool(trace.objectives[-1] == trace.model.inertia_)
        True
        """
        return self.fit_recorded(X, sample_weight, **fit_params).trace()

    def fit_recorded(
        self, X: Any, sample_weight: Any = None, *, columns: Sequence[str] | None = None, **fit_params: Any
    ) -> Recording:
        """Fit the model and return the recorded iterations, from which traces of any rows are computed later.

        Parameters
        ----------
        X, sample_weight, **fit_params
            As for `fit_trace`.
        columns : sequence of str or None, default=None
            Names of the columns in traces; None: those of `X`.

        Returns
        -------
        coterie.traces.Recording
        """
        recorder = Recorder()
        self._recorder = recorder
        try:
            self.fit(X, sample_weight=sample_weight, **fit_params)  # type: ignore[attr-defined]
        finally:
            del self._recorder
        return Recording(self, recorder, None if columns is None else list(columns))

    def _in_user_units(self, trace: Trace) -> Trace:
        """Return the trace with rows and centers in the units of the user; by default they are those of the model."""
        return trace
