"""One job from file to file: read, choose, prepare, fit, summarise, write."""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from coterie import KMeans
from coterie.core.errors import FitInterruptedWarning, InputError, ParameterError
from coterie.jobs import Job, Missing, Scale, table
from coterie.jobs.columns import DISTANCE, EXCLUDED, LABEL, NOT_ASKED_FOR, choose
from coterie.jobs.prepare import CONSTANT, Matrix, Prepared, prepare
from coterie.report.result import ClusterSummary, JobResult, SkippedColumn, Trait

TRAITS_SHOWN = 3
NOTABLE_DEVIATION = 0.5
SMALL_SHARE = 0.01
LARGEST_SEED = 2**32 - 1  # of scikit-learn's random states


@dataclass(frozen=True)
class Fit:
    """What the algorithm found on the scaled rows."""

    labels: NDArray[np.integer]  # (n,)
    distances: NDArray[np.floating]  # (n,)
    inertia: float
    iterations: int
    converged: bool
    seconds: float


def execute(job: Job, progress: Callable[[str], None]) -> JobResult:
    """Run `job`, telling `progress` about each stage."""
    _check_options(job)
    if job.output is not None:
        table.check_output(job.output, force=job.force)
    progress(f"reading {job.path.name}")
    source = table.read(job.path)
    if job.output is not None:
        _refuse_column_clash(source, job)
    prepared = prepare(source, choose(source, job.columns, job.exclude), job.missing, job.scale)
    if job.k > len(prepared.X):
        raise InputError(f"-k {job.k:,} asks for more clusters than there are rows ({len(prepared.X):,}).")
    progress("fitting K-means")
    fit = _fit_kmeans(job, prepared.scaled)
    if job.output is not None:
        progress(f"writing {job.output.name}")
        table.write(source, _new_columns(prepared, fit), job.output, force=job.force)
    return _result(job, source, prepared, fit)


def _check_options(job: Job) -> None:
    choices = {"method": ("kmeans",), "scale": get_args(Scale), "missing": get_args(Missing)}
    for name, allowed in choices.items():
        value = getattr(job, name)
        if value not in allowed:
            raise ParameterError(f"{name} must be one of {', '.join(allowed)}; got {value!r}.")
    for name, least in {"k": 1, "n_init": 1, "seed": 0}.items():
        value = getattr(job, name)
        if value < least:
            raise ParameterError(f"{name} must be at least {least}; got {value}.")
    if job.seed > LARGEST_SEED:
        raise ParameterError(f"seed must be at most {LARGEST_SEED}; got {job.seed}.")


def _refuse_column_clash(source: table.Table, job: Job) -> None:
    taken = [name for name in (LABEL, DISTANCE) if name in source.raw.columns]
    if taken and not job.force:
        raise ParameterError(
            f"{job.path.name} has {' and '.join(taken)} already. Use --force to replace them in the output."
        )


def _fit_kmeans(job: Job, X: Matrix) -> Fit:
    model = KMeans(n_clusters=job.k, n_init=job.n_init, random_state=job.seed)
    start = time.perf_counter()
    with _own_words():
        model.fit(X)
    seconds = time.perf_counter() - start
    return Fit(
        labels=model.labels_,
        distances=np.linalg.norm(X - model.cluster_centers_[model.labels_], axis=1),
        inertia=float(model.inertia_),
        iterations=int(model.n_iter_),
        converged=bool(model.converged_),
        seconds=seconds,
    )


@contextmanager
def _own_words() -> Iterator[None]:
    """Leave doubts to the result's own warnings, and let an interrupt stop the job, not the fit alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("error", FitInterruptedWarning)
        try:
            yield
        except FitInterruptedWarning as stopped:
            raise KeyboardInterrupt from stopped


def _new_columns(prepared: Prepared, fit: Fit) -> pl.DataFrame:
    """Labels and distances beside every row of the table, empty where the row took no part."""
    kept = prepared.kept
    distances = np.zeros(len(kept))
    distances[kept] = fit.distances
    columns = pl.DataFrame({LABEL: _spread(fit.labels, kept), DISTANCE: distances})
    return columns.select(pl.when(pl.Series(kept)).then(pl.all()))


def _spread(labels: NDArray[np.integer], kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """One label for each row of the table, -1 where the row took no part."""
    spread = np.full(len(kept), -1, dtype=np.int64)
    spread[kept] = labels
    return spread


def _result(job: Job, source: table.Table, prepared: Prepared, fit: Fit) -> JobResult:
    clusters = _summaries(prepared, fit.labels, job.k)
    return JobResult(
        source=job.path.name,
        method=job.method,
        rows=source.rows,
        rows_used=len(prepared.X),
        n_columns=source.typed.width,
        columns=prepared.columns,
        skipped=prepared.skipped,
        scale=prepared.scale,
        missing=prepared.missing,
        k=job.k,
        seed=job.seed,
        n_init=job.n_init,
        inertia=fit.inertia,
        iterations=fit.iterations,
        converged=fit.converged,
        seconds=fit.seconds,
        clusters=clusters,
        labels=_spread(fit.labels, prepared.kept),
        notes=_notes(prepared.skipped),
        warnings=(*prepared.warnings, *_doubts(fit, clusters, job.k)),
        output=None if job.output is None else str(job.output),
    )


def _summaries(prepared: Prepared, labels: NDArray[np.integer], k: int) -> tuple[ClusterSummary, ...]:
    X = prepared.X
    mean = X.mean(axis=0, dtype=np.float64)
    deviation = X.std(axis=0, dtype=np.float64)
    sizes = np.bincount(labels, minlength=k)
    sums = np.column_stack([np.bincount(labels, weights=column, minlength=k) for column in X.T])
    means = sums / np.maximum(sizes, 1)[:, np.newaxis]
    return tuple(
        ClusterSummary(
            label=label,
            rows=int(sizes[label]),
            share=float(sizes[label] / len(X)),
            means=dict(zip(prepared.columns, means[label].tolist(), strict=True)),
            stands_out_by=_traits(prepared.columns, (means[label] - mean) / deviation),
        )
        for label in np.flatnonzero(sizes).tolist()
    )


def _traits(columns: tuple[str, ...], deviations: NDArray[np.float64]) -> tuple[Trait, ...]:
    strongest = np.argsort(-np.abs(deviations), kind="stable")[:TRAITS_SHOWN]
    return tuple(Trait(columns[j], float(deviations[j])) for j in strongest if abs(deviations[j]) >= NOTABLE_DEVIATION)


def _notes(skipped: tuple[SkippedColumn, ...]) -> tuple[str, ...]:
    """What was skipped without being asked for; a constant column has a warning of its own."""
    by_reason: dict[str, list[str]] = {}
    for column in skipped:
        by_reason.setdefault(column.reason, []).append(column.name)
    return tuple(
        f"skipped as {reason}: {', '.join(names)}."
        for reason, names in by_reason.items()
        if reason not in (EXCLUDED, NOT_ASKED_FOR, CONSTANT)
    )


def _doubts(fit: Fit, clusters: tuple[ClusterSummary, ...], k: int) -> tuple[str, ...]:
    doubts = []
    if not fit.converged:
        doubts.append(f"not converged after {fit.iterations} iterations: another --seed or --scale may help.")
    if len(clusters) < k:
        doubts.append(f"only {len(clusters)} of {k} clusters have rows: the table has too few distinct rows.")
    # With many clusters a small share is normal, so beyond twenty the bar is a fifth of an even share.
    bar = min(SMALL_SHARE, 0.2 / k)
    tiny = [f"{cluster.label} ({cluster.rows:,})" for cluster in clusters if cluster.share < bar]
    if tiny:
        doubts.append(f"very few rows in cluster {', '.join(tiny)}: outliers, or -k too large?")
    return tuple(doubts)
