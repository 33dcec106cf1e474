"""Check the states in a checkpoint before a fit is resumed from them."""

from typing import Any

import numpy as np

from coterie.core.checkpoint import DescentState
from coterie.core.protocols import Source
from coterie.errors import ModelFileError
from coterie.persistence import classes
from coterie.persistence.rules import is_consistent, tag_of
from coterie.persistence.trial_predictions import ROWS, as_model_file_errors, without_warnings

PARAMETERS = {  # tags of the parameters by estimator; the parameters of all others are centers (k, d)
    "BalancedKMeans": ("checkpoint.Division",),
    "BayesianGaussianMixture": ("bayesian.Components",),
    "GaussianMixture": ("gaussian_mixture.Components",),
    "Mixture": ("dirichlet_process.Parameters", "mixture.Parameters", "gaussian_mixture.Components"),
}
WITH_RECORDS = ("BayesianGaussianMixture", "GaussianMixture", "Mixture")  # estimators with a history recorder
STATES = {  # tags of the states
    "starts": "checkpoint.Restarts",
    "end": "checkpoint.Restarts",
    "batches": "checkpoint.Batches",
    "search": "checkpoint.Search",
}


def check_state(name: str, state: Any, estimator: str, model: Any, source: Source) -> None:
    """Reject a state that does not belong to a fit of this estimator to data of this shape."""
    if name not in STATES or tag_of(state) != STATES[name]:
        raise ModelFileError(f"it contains {name!r}, which is not a state of a fit")
    if name == "batches":
        types = [type(value) for value in state.stopping] if isinstance(state.stopping, tuple) else []
        if types[3:] != [int, int] or not all(issubclass(kind, (float, type(None))) for kind in types[:3]):
            raise ModelFileError("the state of the stopping rule is malformed")
    elif name == "search":
        numbers = (state.best_objective, state.spent, state.allowed, state.seconds)
        are_pairs = all(isinstance(pair, tuple) and len(pair) == 2 for pair in state.population)
        if not are_pairs or not all(isinstance(x, float) for x in (*numbers, *(pair[0] for pair in state.population))):
            raise ModelFileError("the state of the search is malformed")
    else:
        descents = [descent for descent in (state.current, state.best) if descent is not None]
        for descent in descents:
            _check_descent(descent, estimator, model, source)
        if estimator in WITH_RECORDS:
            _check_records(state.records or {}, descents)


def _check_records(records: dict[Any, Any], descents: list[DescentState]) -> None:
    """Check the history of every restart: columns of equal length, and the events of components."""
    if not {descent.run for descent in descents} <= set(records):
        raise ModelFileError("the history of a restart is missing")
    for record in records.values():
        parts = record if isinstance(record, tuple) else (record,)
        events = [event for part in parts if isinstance(part, tuple) for event in part]
        columns = [part for part in parts if not isinstance(part, tuple)]
        are_columns = all(isinstance(column, np.ndarray) and column.ndim > 0 for column in columns)
        if (
            not are_columns
            or not all(tag_of(event) == "mixture.Event" for event in events)
            or len(set(map(len, columns))) > 1
        ):
            raise ModelFileError("the history of a restart is malformed")


def count_of(model: Any) -> int:
    """The number of clusters of a model."""
    return int(model.n_clusters if hasattr(model, "n_clusters") else model.n_components)


def _check_descent(descent: DescentState, estimator: str, model: Any, source: Source) -> None:
    are_vectors = all(isinstance(vector, np.ndarray) and vector.dtype == np.float64 for vector in descent.trail)
    types = type(descent.converged), type(descent.stretch)
    if not are_vectors or types != (bool, float) or len(descent.history) == 0:
        raise ModelFileError("the state of a restart is malformed")
    if not _matches(descent.params, estimator, model, source):
        raise ModelFileError("its parameters do not match the estimator and the data")
    if estimator != "BalancedKMeans":  # its parameters contain the labels of all rows, not only of a few
        with without_warnings(), as_model_file_errors("its parameters do not match the data"):
            chunk = source.pick(np.arange(min(ROWS, source.shape[0])))
            if chunk.w is not None:  # the density of rows with weight 0 may be 0
                positive = np.flatnonzero(chunk.w > 0)
                y = None if chunk.y is None else chunk.y[positive]
                chunk = chunk._replace(X=chunk.X[positive], w=chunk.w[positive], y=y)
            stats, _ = model.e_step(descent.params, chunk, None)
            objective = model.objective(descent.params, stats)
        if estimator in WITH_RECORDS and not np.isfinite(objective):
            raise ModelFileError("the likelihood of the data with its parameters is not finite")


def _matches(params: Any, estimator: str, model: Any, source: Source) -> bool:
    k, d = count_of(model), source.shape[1]
    if estimator == "TimeSeriesKMeans":
        return _are_series(params, k, d, model.channels)
    if estimator not in PARAMETERS:
        are_floats = isinstance(params, np.ndarray) and params.dtype.kind == "f" and params.shape == (k, d)
        return are_floats and bool(np.isfinite(params).all())
    if tag_of(params) not in PARAMETERS[estimator]:
        return False
    if estimator == "BalancedKMeans":
        return _is_division(params, k, source)
    family = getattr(model, "family", None)
    parts = {"_components": params, "_fitted_model": model, "family_": getattr(family, "family", family)}
    declaration = classes.model_declaration("Mixture" if family is not None else "GaussianMixture")
    return is_consistent(declaration, parts, {"K": k, "D": d})


def _are_series(params: Any, k: int, d: int, channels: int) -> bool:
    """Whether these are series of at least one value, with NaN only after the end of each series."""
    if not isinstance(params, np.ndarray) or params.dtype.kind != "f" or params.ndim != 2 or len(params) != k:
        return False
    if params.shape[1] < d or params.shape[1] % channels:
        return False
    missing = np.isnan(params)
    return not (missing[:, :channels].any() or (missing[:, :-1] & ~missing[:, 1:]).any() or np.isinf(params).any())


def _is_division(params: Any, k: int, source: Source) -> bool:
    sizes = [0 if part is None else len(part) for part in source.allocate(0, np.int8)]
    return len(sizes) == len(params.labels) and all(
        isinstance(labels, np.ndarray)
        and labels.dtype == np.int32
        and labels.shape == (n,)
        and (n == 0 or (labels.min() >= 0 and labels.max() < k))
        for labels, n in zip(params.labels, sizes, strict=True)
    )
