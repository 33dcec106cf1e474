"""A fitted model with its results, from which reports are built."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.core.protocols import can_predict
from coterie.plots.convergence_display import Starts
from coterie.preparation.column_selection import DISTANCE, LABEL, NAME, NOISE, PROBABILITY
from coterie.preparation.preparation import BLOCK_ROWS


@dataclass(frozen=True)
class FittedModel:
    """A fitted estimator, its labels and scores."""

    model: Any
    labels: NDArray[np.integer]  # (n,)
    scores: dict[str, float]
    iterated: Any  # the model with the iterations of the fit; None if there are none, or only those of a sweep over K
    converged: bool
    seconds: float | None  # None if the fit is from a sweep over K
    options: dict[str, Any]  # parameters of the estimator that are not its defaults
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    recording: Any = None  # the iterations of the fit, if they were recorded (`coterie.traces.Recording`)
    restarts: Starts | None = None  # the objectives of every restart, if there were several
    sweep_ks: tuple[int, ...] | None = None  # numbers of clusters of the sweep that it is from
    is_renumbered: bool = False  # whether clusters have other numbers than in the fit

    @property
    def iterations(self) -> int | None:
        """Number of iterations, or of batches, of the fit; None if there are none, or only those of a sweep over K."""
        return None if self.iterated is None else int(getattr(self.iterated, "n_steps_", self.iterated.n_iter_))

    def columns(self, X: Any, rows: Any, *, names: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
        """Labels of some rows, with names if there are any, and distances and probabilities if the model has them."""
        labels = self.labels[rows]
        columns: dict[str, NDArray[Any]] = {LABEL: labels.astype(np.int64)}
        if names is not None:
            columns[NAME] = np.array([*names, NOISE])[labels]
        for name, method in {DISTANCE: "transform", PROBABILITY: "predict_proba"}.items():
            values = self._of_assigned(method, X[rows], labels)
            if values is not None:
                columns[name] = values.astype(np.float64)
        return columns

    def probabilities(self, X: Any) -> NDArray[np.floating] | None:
        """Probability of each row for its cluster; None for models without probabilities."""
        return self._of_assigned("predict_proba", X, self.labels)

    def _of_assigned(self, method: str, X: Any, labels: NDArray[np.integer]) -> NDArray[np.floating] | None:
        """The output of a method for each row and its cluster, block by block; None if the model has no such method."""
        if not can_predict(self.model, method):
            return None
        compute = getattr(self.model, method)
        blocks = [slice(start, start + BLOCK_ROWS) for start in range(0, len(labels), BLOCK_ROWS)]
        values = np.concatenate(
            [np.take_along_axis(compute(X[rows]), labels[rows, np.newaxis], 1)[:, 0] for rows in blocks]
        )
        return np.where(labels < 0, 0.0, values)
