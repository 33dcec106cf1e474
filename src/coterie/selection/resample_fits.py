"""Fits to resamples that are good enough to be compared: clusters differ because of the rows, not of the restarts."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from coterie import machine
from coterie.core.protocols import parameters_of
from coterie.medoids.kmedoids import KMedoids
from coterie.mixture.base_mixture import MixtureEstimator
from coterie.selection.estimator_sweeps import objective_of
from coterie.selection.resampling import COMPARABLE, Resample, ResamplingData

STARTS = 10  # results from which a sample can start


def fit_samples(data: ResamplingData, k: int, samples: Sequence[Resample], n_jobs: int | None) -> list[Any]:
    """Fit all samples, the first of which are all rows.

    Each sample is fitted from its own initialisation, and then from another result: of those that are best for all
    rows, the one that is best for the sample. The better fit is used. So a cluster that one initialisation in ten finds
    is found in every sample. Several results are tried, because a single one would make samples more alike than their
    rows are. Estimators that cannot start from a result are fitted once.
    """
    fits = list(machine.in_threads(data.fit, [(k, sample) for sample in samples], n_jobs))
    if not _can_start_at_result(data):
        return fits
    scores = np.array(list(machine.in_threads(_score, [(data, samples[0], fit) for fit in fits], n_jobs)))
    results = [fits[i] for i in np.argsort(-scores, kind="stable")[:STARTS]]

    def better_fit(sample: Resample, fit: Any) -> Any:
        best = max(results, key=partial(_score, data, sample))
        return min(fit, data.fit(k, sample, partial(_options_of_start, best)), key=objective_of)

    return list(machine.in_threads(better_fit, list(zip(samples, fits, strict=True)), n_jobs))


def _can_start_at_result(data: ResamplingData) -> bool:
    if isinstance(data.estimator, KMedoids):
        return not data.pairwise and data.estimator.objective != "silhouette"
    return isinstance(data.estimator, COMPARABLE)


def _score(data: ResamplingData, sample: Resample, model: Any) -> float:
    """Score of the fitted estimator for the rows of a sample."""
    return float(model.score(data.X[sample.rows], sample_weight=sample.weights))


def _options_of_start(result: Any, X: Any) -> dict[str, Any]:
    """Options of a fit to `X` that starts from the result of another fit."""
    if isinstance(result, MixtureEstimator):
        return {"init_params": result.predict_proba(X), "n_init": 1}
    known, frozen = parameters_of(result), parameters_of(result).get("frozen_centers")
    if isinstance(result, KMedoids):
        start = result.transform(X).argmin(axis=0)  # the rows nearest to the medoids
        if len(np.unique(start)) < len(start):
            return {}
    else:
        start = result.cluster_centers_[0 if frozen is None else len(frozen) :]
    options = {"init": start, "n_init": 1, "search": "none", "search_budget": None}
    return {name: value for name, value in options.items() if name in known}
