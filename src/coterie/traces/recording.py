"""The recorded iterations of a fit, from which traces are computed when they are needed."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

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
