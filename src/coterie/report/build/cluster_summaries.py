"""Silhouettes and summaries of clusters, and warnings about them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.algorithms import algorithm_of
from coterie.core.formatting import count, first_names
from coterie.core.rounding import OF_SUMS
from coterie.data.tables.reader import Table
from coterie.distances import as_distance
from coterie.kmeans.metric_of_model import metric_of
from coterie.plots.silhouette_display import SilhouetteDisplay
from coterie.preparation.column_selection import EXCLUDED, NOT_SELECTED, ROW_NAMES, ROW_WEIGHTS
from coterie.preparation.fit_preparation import CONSTANT, PreparedTable
from coterie.preparation.name_lists import shell_names
from coterie.preparation.preparation import Preparation
from coterie.preparation.scaling import blocks
from coterie.preparation.transforms import feature_name
from coterie.report.build.cluster_moments import observed_moments
from coterie.report.build.fitted_model import FittedModel
from coterie.report.build.series_features import series_traits
from coterie.report.formatting import NOTABLE_DEVIATION
from coterie.report.html.report import Absent
from coterie.report.results import ClusterSummary, Trait

TRAITS_SHOWN = 3
SMALL_SHARE = 0.01
MUCH_NOISE = 0.5  # share of noise above which there is a warning
EXPECTED = (EXCLUDED, NOT_SELECTED, CONSTANT, ROW_NAMES, ROW_WEIGHTS)  # reasons without a note


def summaries(
    prepared: PreparedTable, labels: NDArray[np.integer], k: int, silhouettes: SilhouetteDisplay | Absent
) -> tuple[ClusterSummary, ...]:
    """A summary of each cluster that has rows, by the values in the table; means and shares are weighted."""
    preparation = prepared.preparation
    names = preparation.names
    clusters, deviations = observed_moments(prepared, labels, k)
    sizes, missing = np.bincount(labels, minlength=k), prepared.missing_by_cluster(labels, k)
    means = np.where(np.abs(clusters.means) <= OF_SUMS * clusters.deviation, 0.0, clusters.means)
    # Column and value of each one-hot column of the matrix; None for numbers
    categories = [*[None] * len(preparation.numbers), *preparation.indicators]
    is_share = _is_binary(prepared.observed)
    mass = sizes if prepared.weight is None else np.bincount(labels, prepared.weight, k)
    mean_silhouettes = [] if isinstance(silhouettes, Absent) else silhouettes.means.tolist()
    shapes = series_traits(prepared.rows.X, labels, k, prepared.weight) if preparation.series else None
    result = []
    for i, label in enumerate(np.flatnonzero(sizes).tolist()):
        traits = [
            Trait(names[j], float(deviations[label, j]), float(means[label, j]), float(clusters.mean[j]), categories[j])
            if is_share[j]
            else _number_trait(names[j], float(deviations[label, j]), float(means[label, j]), preparation)
            for j in _strongest(deviations[label], categories)
        ]
        if shapes is not None:  # values of single time points say little about series
            traits = shapes[label][:TRAITS_SHOWN]
        cluster = ClusterSummary(
            label=label,
            rows=int(sizes[label]),
            share=float(mass[label] / mass.sum()),
            silhouette=mean_silhouettes[i] if mean_silhouettes else None,
            means={name: mean for name, mean in zip(names, means[label].tolist(), strict=True) if mean == mean},
            missing={name: int(counts[label]) for name, counts in missing.items() if counts[label]},
            stands_out_by=tuple(trait for trait in traits if abs(trait.deviation) >= NOTABLE_DEVIATION),
        )
        result.append(cluster)
    return tuple(result)


def _number_trait(name: str, deviation: float, mean: float, preparation: Preparation) -> Trait:
    """The trait of a number, or of a date, whose age is the smaller the later it is."""
    date = preparation.date_of(name, mean)
    return Trait(name, deviation) if date is None else Trait(name, -deviation, date=date)


def shares_of_all(
    clusters: tuple[ClusterSummary, ...], members: PreparedTable, prepared: PreparedTable
) -> tuple[ClusterSummary, ...]:
    """The clusters with shares of all rows, noise included, instead of shares of the rows in clusters."""
    if members is prepared:
        return clusters
    if prepared.weight is None or members.weight is None:
        share = members.rows.n / prepared.rows.n
    else:
        share = float(members.weight.sum() / prepared.weight.sum())
    return tuple(replace(one, share=one.share * share) for one in clusters)


def _strongest(deviations: NDArray[np.floating], categories: Sequence[tuple[str, str] | None]) -> list[int]:
    """The columns with the largest deviations; of a categorical column one value, rather a frequent than a rare one."""
    sizes = np.abs(deviations)
    order = np.lexsort((deviations < 0, -np.round(sizes, 9)))
    result: list[int] = []
    seen: set[str] = set()
    for j in order.tolist():
        category = categories[j]
        if category is None or category[0] not in seen:
            result.append(j)
            seen.update(() if category is None else (category[0],))
        if len(result) == TRAITS_SHOWN:
            break
    return result


def _is_binary(X: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Whether the values of a column are all 0 or 1, so that its means are shares; missing values are ignored."""
    result = np.ones(X.shape[1], dtype=bool)
    for block in blocks(X):
        result &= ((block == 0) | (block == 1) | np.isnan(block)).all(axis=0)
    return result


def table_fields(table: Table, prepared: PreparedTable, weight: str | None, seed: int) -> dict[str, Any]:
    """The fields of `TableResult` that all results share."""
    return {
        "source": table.name,
        "rows": table.n_rows,
        "rows_used": prepared.rows.n,
        "n_columns": len(table.columns),
        "columns": prepared.preparation.numbers,
        "categories": tuple(prepared.preparation.categories),
        "skipped": prepared.skipped,
        "scale": prepared.preparation.scale,
        "missing": prepared.rows.treatment,
        "missing_values": prepared.rows.missing,
        "weight": weight,
        "seed": seed,
    }


def notes(prepared: PreparedTable) -> tuple[str, ...]:
    """How columns were read, and which were skipped without a request; constant columns have a warning."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for column in prepared.skipped:
        if column.reason not in EXPECTED:
            by_reason.setdefault((column.reason, column.option), []).append(column.name)
    return (*prepared.notes, *(_skipped_note(reason, option, names) for (reason, option), names in by_reason.items()))


def description_notes(prepared: PreparedTable, weight: str | None) -> tuple[str, ...]:
    """What the numbers that describe clusters are: without missing values, of transformed values, weighted."""
    notes, transforms = [], prepared.preparation.transforms
    if prepared.has_missing and prepared.rows.missing:
        counts = first_names([f"{name} {n:,}" for name, n in prepared.rows.missing.items()])
        notes.append(f"descriptions leave out missing values: {counts} of {count(prepared.table.n_rows)}.")
    if transforms:
        features = first_names([feature_name(name, transform) for name, transform in transforms.items()])
        notes.append(f"differences in s.d. are those of {features}; means and medians are of the values themselves.")
    if weight is not None:
        notes.append(f"shares, means, medians and rules are weighted by {weight}; numbers of rows are not.")
    return tuple(notes)


def _skipped_note(reason: str, option: str, names: list[str]) -> str:
    """``skipped as text: city, state (to use one: --one-hot city).``"""
    use = f" (to use {'it' if len(names) == 1 else 'one'}: {option} {shell_names(names[0])})" if option else ""
    return f"skipped as {reason}: {', '.join(names)}{use}."


def not_converged(method: str, fit: FittedModel) -> str:
    """The warning about a fit that has not converged, with the options that help."""
    options = ["--max-iter", "--tol"] if "tol" in algorithm_of(method).options else ["--max-iter"]
    return f"not converged after {count(fit.iterations or 0, 'iteration')}: try a larger {' or '.join(options)}."


def fit_warnings(method: str, fit: FittedModel, clusters: Sequence[ClusterSummary], k: int) -> tuple[str, ...]:
    """Warnings about convergence, and about the number and sizes of clusters."""
    warnings = []
    if not fit.converged:
        warnings.append(not_converged(method, fit))
    if len(clusters) < k:
        warnings.append(f"only {len(clusters)} of {k} clusters {'has' if len(clusters) == 1 else 'have'} rows.")
    if k > 1 and k > sum(cluster.rows for cluster in clusters) / 2:
        warnings.append(f"{k} clusters are more than one for every two rows.")
    # With many clusters a small share is normal, so above 20 clusters the limit is a fifth of an even share.
    limit = min(SMALL_SHARE, 0.2 / k)
    small = [f"{cluster.label} ({cluster.rows:,})" for cluster in clusters if cluster.share < limit]
    if algorithm_of(method).finds_k:
        share = float((fit.labels < 0).mean())
        remedy = "try a smaller --min-samples, fewer columns, or -a kmeans"
        warnings += [f"{share:.0%} of the rows are noise: {remedy}."] if share > MUCH_NOISE else []
    elif small:
        warnings.append(f"very few rows in cluster {', '.join(small)}: outliers, or -k too large?")
    return tuple(warnings)


def silhouettes(
    prepared: PreparedTable, labels: NDArray[np.integer], model: Any = None, threads: int | None = None
) -> SilhouetteDisplay | Absent:
    """Silhouettes of all rows, or of a random sample, with the metric of the model (Euclidean without a model)."""
    preparation = prepared.preparation
    clusters, codes = np.unique(labels, return_inverse=True)
    if len(clusters) < 2:
        return Absent("not defined for one cluster: silhouettes compare clusters")
    if len(clusters) == len(labels):
        return Absent("every row is a cluster of its own")
    if preparation.mixed:
        return Absent("not defined for mixed column types")
    if prepared.rows.has_missing and not preparation.series:
        return Absent("rows have missing values: use --missing drop or median")
    if prepared.weight is not None and not np.bincount(codes, prepared.weight).all():
        return Absent("all rows of a cluster have weight 0")
    metric = as_distance(**({"metric": "euclidean"} if model is None else metric_of(model)))
    return SilhouetteDisplay.from_predictions(
        prepared.rows.X, codes, metric=metric, sample_weight=prepared.weight, n_jobs=threads
    )
