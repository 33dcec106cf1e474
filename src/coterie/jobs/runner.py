"""One job from file to file: read, choose, prepare, fit, summarise, write."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie.core.errors import InputError, ParameterError
from coterie.jobs import Job, NotConvergedError, Progress, Step, model_file, table
from coterie.jobs.checks import at_least, check_budget, check_number, check_table_options
from coterie.jobs.choosing import chosen, refuse_unswept
from coterie.jobs.columns import DISTANCE, PROBABILITY
from coterie.jobs.fitting import Fit, fit
from coterie.jobs.methods import check_options, method_of
from coterie.jobs.prepare import Prepared, prepare
from coterie.jobs.summaries import doubts, notes, summaries
from coterie.jobs.table import LABEL, Table
from coterie.report.choice import Choice
from coterie.report.result import JobResult

ADDED = (LABEL, DISTANCE, PROBABILITY)


def execute(job: Job, progress: Progress) -> JobResult:
    """Run `job`, telling `progress` about each stage."""
    _check_options(job)
    if job.output is not None:
        table.check_output(job.output, force=job.force)
    if job.model is not None:
        model_file.check_output(job.model, force=job.force)
    progress(Step(f"reading {job.path.name}"))
    source = table.read(job.path)
    if job.output is not None:
        _refuse_column_clash(source, job)
    prepared = prepare(source, job, method_of(job.method))
    k, choice = _number(job, prepared, progress)
    found = fit(
        job.method,
        k,
        prepared,
        job.options,
        seed=job.seed,
        threads=job.threads,
        sample=job.sample,
        progress=progress,
    )
    if job.strict and not found.converged:
        raise NotConvergedError(f"not converged after {found.iterations} iterations: try a larger --max-iter.")
    added: tuple[str, ...] = ()
    if job.output is not None:
        progress(Step(f"writing {job.output.name}"))
        new = _new_columns(prepared, found)
        table.write(source, new, job.output, force=job.force)
        added = (LABEL,) if job.output.suffix.lower() == ".npy" else tuple(new.columns)
    if job.model is not None:
        progress(Step(f"writing {job.model.name}"))
        model_file.write(found.model, prepared.preparation, job.model, force=job.force)
    return _result(job, source, prepared, found, choice, added)


def _check_options(job: Job) -> None:
    check_table_options(job)
    check_options(job.method, job.options)
    check_number(job.k)
    check_budget(job.budget)
    for name in ("n_init", "max_iter"):
        if name in job.options:
            at_least(name, job.options[name], 1)
    if job.sample is not None:
        at_least("sample", job.sample, 1)


def _refuse_column_clash(source: Table, job: Job) -> None:
    taken = [name for name in ADDED if name in source.raw.columns]
    if taken and not job.force:
        raise ParameterError(
            f"{source.name} has {' and '.join(taken)} already. Use --force to replace them in the output."
        )


def _number(job: Job, prepared: Prepared, progress: Progress) -> tuple[int | str, Choice | None]:
    """The number of clusters, and how it was chosen; a mixture of mixed columns finds its own in the fit."""
    rows = len(prepared.rows.X) if job.sample is None else min(job.sample, len(prepared.rows.X))
    if isinstance(job.k, int):
        if job.k > rows:
            raise InputError(f"-k {job.k:,} asks for more clusters than there are rows ({rows:,}).")
        return job.k, None
    if method_of(job.method).mixed and job.k == "auto":
        return "auto", None
    refuse_unswept(job.method)
    choice = chosen(job.method, job.k, prepared, (), job.budget, job.seed, job.threads, progress)
    return choice.recommended, choice


def _new_columns(prepared: Prepared, found: Fit) -> pl.DataFrame:
    """Labels and what goes with them beside every row of the table, empty where the row took no part."""
    kept, given = prepared.rows.kept, prepared.rows.given
    columns: dict[str, NDArray[Any]] = {LABEL: spread(found.labels, kept)}
    for name, values in {DISTANCE: found.distances(given), PROBABILITY: found.probabilities(given)}.items():
        if values is not None:
            columns[name] = np.zeros(len(kept))
            columns[name][kept] = values
    return pl.DataFrame(columns).select(pl.when(pl.Series(kept)).then(pl.all()))


def spread(labels: NDArray[np.integer], kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """One label for each row of the table, -1 where the row took no part."""
    found = np.full(len(kept), -1, dtype=np.int64)
    found[kept] = labels
    return found


def _result(
    job: Job, source: Table, prepared: Prepared, found: Fit, choice: Choice | None, added: tuple[str, ...]
) -> JobResult:
    k = int(getattr(found.model, "n_components_", 0)) or int(getattr(found.model, method_of(job.method).number))
    clusters = summaries(prepared, found.labels, k, job.seed)
    return JobResult(
        source=source.name,
        method=job.method,
        rows=source.rows,
        rows_used=len(prepared.rows.X),
        n_columns=source.typed.width,
        columns=prepared.preparation.numbers,
        categories=tuple(prepared.preparation.categories),
        skipped=prepared.skipped,
        scale=prepared.preparation.scale,
        missing=prepared.rows.treatment,
        title=method_of(job.method).title,
        k=k,
        seed=job.seed,
        options=found.options,
        scores=found.scores,
        iterations=found.iterations,
        converged=found.converged,
        seconds=found.seconds,
        choice=choice,
        clusters=clusters,
        labels=spread(found.labels, prepared.rows.kept),
        notes=(*notes(prepared.skipped), *_told(job, choice), *found.notes),
        warnings=(*prepared.warnings, *_about(choice), *found.warnings, *doubts(found, clusters, k)),
        output=None if job.output is None else str(job.output),
        added=added,
        model=None if job.model is None else str(job.model),
    )


def _told(job: Job, choice: Choice | None) -> tuple[str, ...]:
    own, found = method_of(job.method).title, []
    if choice is not None and choice.clusters_by != own:
        found.append(f"K was chosen by clusters of {choice.clusters_by}, not of {own}.")
    if job.model is not None and job.missing in ("mean", "median"):
        found.append(f"{job.model.name} has nothing in place of missing values: predict takes complete rows.")
    return tuple(found)


def _about(choice: Choice | None) -> tuple[str, ...]:
    if choice is None:
        return ()
    none = ("the table looks as if it had no clusters; -k N asks for them all the same.",)
    return (*choice.warnings, *(none if choice.recommended == 1 else ()))
