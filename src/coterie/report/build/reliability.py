"""How reliable clusters are: certainty of memberships, stability under resampling, and diagnosis."""

import copy
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import clone

from coterie.core.protocols import parameters_of
from coterie.data.row_sample import sample_rows
from coterie.diagnosis import diagnose
from coterie.diagnosis.findings import Check, Diagnosis, join_names, not_measured
from coterie.plots.silhouette_display import outline
from coterie.preparation.fit_preparation import PreparedTable
from coterie.preparation.preparation import Preparation
from coterie.report.build.fitted_model import FittedModel
from coterie.report.html.report import Absent, Certainty, Stability
from coterie.selection import stability

RESAMPLES, FEW_RESAMPLES = 20, 10
ROWS, FEW_ROWS = 5_000, 1_000  # rows that are resampled
ROWS_PER_CLUSTER = 20  # minimum
DISTINCT = 4  # distinct rows per cluster, so that a resample has some of each
MAX_CLUSTERS = 250  # above this number resampling takes too long
RESTARTS = 3  # of each fit to a resample
CERTAIN = 0.9  # probability below which a row is uncertain
SHOWN = 30  # clusters that are drawn
CHECKED, MIN_CHECKED, CHECKED_VALUES = 200_000, 10_000, 20_000_000  # rows that are diagnosed, and their values
NAMED = 5  # rows in a sentence
SLOW = ("kernel", "linkage", "metric", "init_params")  # parameters of methods that use all pairs or search for starts


def certainty(
    fit: FittedModel | None, prepared: PreparedTable, codes: NDArray[np.integer], names: list[str]
) -> Certainty | None:
    """Probabilities of rows for their clusters, if the model has them."""
    probabilities = None if fit is None or len(names) < 2 else fit.probabilities(prepared.rows.model_input)
    if probabilities is None:
        return None
    clusters = [np.sort(probabilities[codes == j])[::-1].astype(np.float64) for j in range(len(names))]
    means = np.array([each.mean() for each in clusters])
    return Certainty(
        names=names,
        sizes=np.array([len(each) for each in clusters]),
        means=means,
        below=np.array([(each < CERTAIN).mean() for each in clusters]),
        outlines=[outline(each) for each in clusters],
        mean=float(probabilities.mean()),
        shown=np.sort(np.argsort(means, kind="stable")[:SHOWN]),
        n=len(probabilities),
    )


def resampling_stability(
    prepared: PreparedTable, k: int, model: Any, seed: int, threads: int | None
) -> Stability | Absent:
    """Mean adjusted Rand index of the clusters of resampled rows, of all rows or of a random sample."""
    reason = _reason_not_resampled(prepared.preparation, k, model)
    if reason is not None:
        return Absent(reason)
    X, weight = prepared.rows.X, prepared.weight
    slow = any(name in model.get_params(deep=False) for name in SLOW)
    sample = sample_rows(len(X), max(FEW_ROWS if slow else ROWS, ROWS_PER_CLUSTER * k))
    if len(np.unique(X[sample], axis=0)) < DISTINCT * k:
        return Absent("too few distinct rows for resampling")
    n_resamples = FEW_RESAMPLES if slow else RESAMPLES
    estimator = clone(model)
    if isinstance(estimator.get_params(deep=False).get("n_init"), int):
        estimator.set_params(n_init=min(RESTARTS, estimator.n_init))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits to resamples may have empty clusters
        result = stability(
            estimator, X[sample], [k], n_resamples=n_resamples, n_jobs=threads, random_state=seed,
            resampling="subsample" if parameters_of(model).get("method") == "diana" else "auto",  # without weights
            sample_weight=None if weight is None else weight[sample],
        )  # fmt: skip
    return Stability(float(result.mean[0]), n_resamples, len(sample))


def _reason_not_resampled(preparation: Preparation, k: int, model: Any) -> str | None:
    if model is None:
        return "labels alone cannot be refitted: use --model"
    if not {"n_clusters", "n_components"} & set(model.get_params(deep=False)):
        return "not available for density-based clusters"
    if k < 2:
        return "not defined for one cluster"
    if preparation.mixed or preparation.series:
        return f"not available for {'series' if preparation.series else 'mixed column types'}"
    if k > MAX_CLUSTERS:
        return f"not available for more than {MAX_CLUSTERS} clusters: see coterie.selection.stability"
    return None


def diagnosis(
    prepared: PreparedTable, codes: NDArray[np.integer], model: Any, seed: int, threads: int | None
) -> Diagnosis | Absent:
    """All checks of `coterie.diagnose`, with the names of the columns."""
    preparation = prepared.preparation
    if preparation.mixed or preparation.series:
        kind = "series" if preparation.series else "categories"
        return Absent(f"The checks are for numeric rows, not for {kind}.")
    X, weight = prepared.rows.X, prepared.weight
    sample = sample_rows(len(X), checked_rows(prepared))
    counts: dict[str, int] = {}
    names = []  # distinct, as a frame requires; names of one-hot columns may repeat
    for name in preparation.names:
        counts[name] = counts.get(name, 0) + 1
        names.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    frame, fitted = pl.DataFrame(np.asarray(X[sample]), schema=names), codes[sample]
    if model is not None and len(getattr(model, "labels_", ())) == len(codes):  # fitted to all rows
        fitted = copy.copy(model)
        fitted.labels_ = np.asarray(model.labels_)[sample]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = diagnose(
            frame, model=fitted, sample_weight=None if weight is None else weight[sample],
            random_state=seed, n_jobs=threads,
        )  # fmt: skip
    table_rows = np.flatnonzero(prepared.rows.row_mask)[sample]
    checks = {name: _in_table(check, table_rows) for name, check in result.checks.items()}
    if prepared.has_missing and not prepared.rows.has_missing:  # the rows that are checked have no missing values
        checks["missing_values"] = not_measured("missing_values", prepared.rows.treatment)
    if len(frame) < len(X):  # the better solution is one for the sample
        checks["missed_optimum"] = not_measured("missed_optimum", "needs all rows of the table, and these are a sample")
    return replace(result, checks=checks)


def checked_rows(prepared: PreparedTable) -> int:
    """Number of rows that are diagnosed."""
    n, d = prepared.rows.X.shape
    return min(n, max(MIN_CHECKED, min(CHECKED, CHECKED_VALUES // d)))


def _in_table(check: Check, table_rows: NDArray[np.integer]) -> Check:
    """The check with row numbers of the table instead of those of the sample."""
    finding = check.finding
    if finding is None or "indices" not in finding.details:
        return check
    sample_indices = finding.details["indices"]
    indices = table_rows[sample_indices].tolist()
    old, new = (join_names([str(i) for i in rows[:NAMED]]) for rows in (sample_indices, indices))
    head, _, tail = finding.sentence.rpartition(old)
    finding = replace(finding, sentence=f"{head}{new}{tail}", details={**finding.details, "indices": indices})
    return replace(check, finding=finding)
