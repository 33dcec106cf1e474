"""What an estimator needs to tell the way of its fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie import machine
from coterie.core.protocols import Chunk
from coterie.data.picking import some
from coterie.traces.recorder import Recorder
from coterie.traces.steps import Steps
from coterie.traces.trace import Trace

SHOWN, FEWEST = 5000, 100  # rows that are kept to be shown
NUMBERS = 20_000_000  # that they have at most, unless they are very few


class Traced:
    """An estimator whose fit can be watched: one that hands `_with_recorder` callbacks to its loop."""

    def fit_trace(self, X: Any, sample_weight: Any = None, **fit_params: Any) -> Trace:
        """Fit exactly as `fit` does, and return the way there, half step by half step.

        The fit is that of `fit`, to the last bit; its callback notes the parameters of every iteration. When it is
        over, two or three passes over the rows for each iteration of the best start find out how many rows changed
        their cluster, and the objective between the two halves: with the rows as they were, and the centers or
        components moved. Of the rows themselves 5,000 at most are kept.

        Parameters
        ----------
        X : rows, as for `fit`
        sample_weight : array (n,), optional
        **fit_params
            Other arguments of `fit`, such as `known_labels` of mixtures.

        Returns
        -------
        `coterie.traces.Trace`
            Its `model` is this estimator, fitted. Notebooks show it as a player; `save` writes that to a file.

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
            return self._traced(recorder)

    def _traced(self, recorder: Recorder) -> Trace:
        source, model = recorder.source, recorder.model
        n, d = source.shape
        kept = some(n, max(FEWEST, min(SHOWN, NUMBERS // d)))
        shown = source.pick(kept)
        names = getattr(source, "columns", None) or [f"column {j}" for j in range(d)]
        rows, holes, fill = _filled(shown)
        steps = Steps(recorder, shown, kept, fill)
        called = steps.called or str(getattr(self, "_objective", "inertia_")).rstrip("_")
        trace = Trace(
            self, steps.all(), called, "higher" if steps.called else "lower", rows, list(names),
            n, holes, model, shown,
        )  # fmt: skip
        return self._in_own_units(trace)

    def _in_own_units(self, trace: Trace) -> Trace:
        """The trace with rows and centers as the user gave them; by default those of the model."""
        return trace


def _filled(chunk: Chunk) -> tuple[np.ndarray, bool, np.ndarray]:
    """Dense rows, holes filled with the means of their columns, whether there were any, and the means (d,)."""
    X = chunk.X.toarray() if hasattr(chunk.X, "indptr") else np.array(chunk.X)
    holes = np.isnan(X)
    means = np.where(holes, 0.0, X).sum(axis=0) / np.maximum((~holes).sum(axis=0), 1)
    return np.where(holes, means, X).astype(X.dtype), bool(holes.any()), means
