"""What the states in a checkpoint must look like, so that no fit goes on from what it cannot stand on."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.core.checkpoint import Batches, Reached, Runs
from coterie.core.errors import ModelFileError
from coterie.core.protocols import Source
from coterie.kmeans.search_state import SearchState
from coterie.mixture.em import Event
from coterie.persistence import classes
from coterie.persistence.rules import is_consistent, tag_of
from coterie.persistence.trial import ROWS, quiet, raising

PARAMETERS = {  # tags of the parameters of each model; those of others are centers (k, d)
    "BalancedKMeans": ("checkpoint.Division",),
    "BayesianGaussianMixture": ("bayesian.Components",),
    "GaussianMixture": ("gaussian_mixture.Components",),
    "Mixture": ("dirichlet_process.Parameters", "mixture.Parameters", "gaussian_mixture.Components"),
}
NOTED = ("BayesianGaussianMixture", "GaussianMixture", "Mixture")  # who write a history of their own
STATES = {"starts": Runs, "end": Runs, "batches": Batches, "search": SearchState}


def check_state(name: str, state: Any, estimator: str, model: Any, source: Source) -> None:
    """Refuse a state that is not one of a fit of that estimator to rows like these."""
    if name not in STATES or type(state) is not STATES[name]:
        raise ModelFileError(f"it holds {name!r}, which is no state of a fit")
    if isinstance(state, Batches):
        _check_batches(state)
    elif isinstance(state, SearchState):
        _check_search(state)
    elif isinstance(state, Runs):
        known = [reached for reached in (state.now, state.best) if reached is not None]
        for reached in known:
            _check_reached(reached, estimator, model, source)
        if estimator in NOTED:
            _check_notes(state.notes or {}, known)


def _check_notes(notes: dict[Any, Any], known: list[Reached]) -> None:
    """The history of every start: columns of one length, and what happened to components."""
    if not {reached.run for reached in known} <= set(notes):
        raise ModelFileError("it lacks the history of a start")
    for note in notes.values():
        parts = note if isinstance(note, tuple) else (note,)
        events = [event for part in parts if isinstance(part, tuple) for event in part]
        columns = [part for part in parts if not isinstance(part, tuple)]
        good = all(isinstance(column, np.ndarray) and column.ndim > 0 for column in columns)
        if not good or not all(isinstance(event, Event) for event in events) or len(set(map(len, columns))) > 1:
            raise ModelFileError("the history of a start is malformed")


def _check_batches(state: Batches) -> None:
    kinds_of = [type(value) for value in state.stopping] if isinstance(state.stopping, tuple) else []
    if kinds_of[3:] != [int, int] or not all(issubclass(kind, (float, type(None))) for kind in kinds_of[:3]):
        raise ModelFileError("what the end of a fit depends on is malformed")


def _check_search(state: SearchState) -> None:
    numbers = (state.best_objective, state.spent, state.allowed, state.seconds)
    pairs = all(isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], float) for one in state.population)
    if not pairs or not all(isinstance(value, float) for value in numbers):
        raise ModelFileError("how far a search has come is malformed")


def count_of(model: Any) -> int:
    """How many clusters a model has."""
    return int(model.n_clusters if hasattr(model, "n_clusters") else model.n_components)


def _check_reached(reached: Reached, estimator: str, model: Any, source: Source) -> None:
    vectors = all(isinstance(vector, np.ndarray) and vector.dtype == np.float64 for vector in reached.trail)
    kinds_of = type(reached.converged), type(reached.stretch)
    if not vectors or kinds_of != (bool, float) or len(reached.history) == 0:
        raise ModelFileError("how far a start has come is malformed")
    if not _goes_with(reached.params, estimator, model, source):
        raise ModelFileError("its parameters do not go with the estimator and the rows")
    if estimator != "BalancedKMeans":  # whose parameters are the labels of all rows
        with quiet(), raising("its parameters do not go with the rows"):
            chunk = source.pick(np.arange(min(ROWS, source.shape[0])))
            if chunk.w is not None:  # a row without weight may have the density 0
                counted = np.flatnonzero(chunk.w > 0)
                y = None if chunk.y is None else chunk.y[counted]
                chunk = chunk._replace(X=chunk.X[counted], w=chunk.w[counted], y=y)
            stats, _ = model.e_step(reached.params, chunk, None)
            objective = model.objective(reached.params, stats)
        if estimator in NOTED and not np.isfinite(objective):
            raise ModelFileError("its parameters give rows of X no finite likelihood")


def _goes_with(params: Any, estimator: str, model: Any, source: Source) -> bool:
    k, d = count_of(model), source.shape[1]
    if estimator == "TimeSeriesKMeans":
        return _are_series(params, k, d, model.channels)
    if estimator not in PARAMETERS:
        return _are_centers(params, (k, d))
    if tag_of(params) not in PARAMETERS[estimator]:
        return False
    if estimator == "BalancedKMeans":
        return _is_division(params, k, source)
    family = getattr(model, "family", None)
    parts = {"_components": params, "_fitted_model": model, "family_": getattr(family, "family", family)}
    declaration = classes.model_declaration("Mixture" if family is not None else "GaussianMixture")
    return is_consistent(declaration, parts, {"K": k, "D": d})


def _are_centers(params: Any, shape: tuple[int, int]) -> bool:
    good = isinstance(params, np.ndarray) and params.dtype.kind == "f" and params.shape == shape
    return good and bool(np.isfinite(params).all())


def _are_series(params: Any, k: int, d: int, channels: int) -> bool:
    """Series that begin, and end once."""
    if not isinstance(params, np.ndarray) or params.dtype.kind != "f" or params.ndim != 2 or len(params) != k:
        return False
    if params.shape[1] < d or params.shape[1] % channels:
        return False
    gone = np.isnan(params)
    return not (gone[:, :channels].any() or (gone[:, :-1] & ~gone[:, 1:]).any() or np.isinf(params).any())


def _is_division(params: Any, k: int, source: Source) -> bool:
    parts = [0 if part is None else len(part) for part in source.room(0, np.int8)]
    return len(parts) == len(params.labels) and all(
        isinstance(mine, np.ndarray)
        and mine.dtype == np.int32
        and mine.shape == (rows,)
        and (rows == 0 or (mine.min() >= 0 and mine.max() < k))
        for mine, rows in zip(params.labels, parts, strict=True)
    )
