"""The mixin that adds `fit_trace` to estimators."""

from collections.abc import Sequence
from typing import Any, ClassVar

from coterie.traces.recorder import Recorder
from coterie.traces.recording import Recording
from coterie.traces.trace import Trace


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
