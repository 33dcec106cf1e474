"""The mixin that adds `fit_trace` to estimators."""

from typing import Any, ClassVar

import numpy as np

from coterie import machine
from coterie.core.arrays import as_dense
from coterie.core.protocols import Chunk
from coterie.data.row_sample import sample_rows
from coterie.data.summary import column_names
from coterie.traces.half_steps import HalfSteps
from coterie.traces.recorder import Recorder
from coterie.traces.trace import Trace

MAX_ROWS, MIN_ROWS = 5000, 100  # size of the sample of rows in a trace
MAX_VALUES = 20_000_000  # maximum number of values in this sample, unless it has `MIN_ROWS` rows


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
        recorder = Recorder()
        self._recorder = recorder
        try:
            self.fit(X, sample_weight=sample_weight, **fit_params)  # type: ignore[attr-defined]
        finally:
            del self._recorder
        with machine.one_blas_thread:
            return self._build_trace(recorder)

    def _build_trace(self, recorder: Recorder) -> Trace:
        source, model = recorder.source, recorder.model
        n, d = source.shape
        index = sample_rows(n, max(MIN_ROWS, min(MAX_ROWS, MAX_VALUES // d)))
        chunk = source.pick(index)
        names = vars(self).get("feature_names_in_")  # of the rows before they were divided
        names = column_names(source) if names is None else names
        rows, has_missing, fill = _fill_missing(chunk)
        steps = HalfSteps(recorder, chunk, index, fill)
        objective = steps.objective_name or self._objective.rstrip("_")
        trace = Trace(
            self, steps.all(), objective, "higher" if steps.objective_name else "lower", rows, list(names),
            n, has_missing, self._scale, model, chunk,  # type: ignore[attr-defined]
        )  # fmt: skip
        return self._in_user_units(trace)

    def _in_user_units(self, trace: Trace) -> Trace:
        """Return the trace with rows and centers in the units of the user; by default they are those of the model."""
        return trace


def _fill_missing(chunk: Chunk) -> tuple[np.ndarray, bool, np.ndarray]:
    """Return dense rows with column means for missing values, whether values are missing, and the means (d,)."""
    X = np.array(as_dense(chunk.X))
    is_missing = np.isnan(X)
    means = np.where(is_missing, 0.0, X).sum(axis=0) / np.maximum((~is_missing).sum(axis=0), 1)
    return np.where(is_missing, means, X).astype(X.dtype), bool(is_missing.any()), means
