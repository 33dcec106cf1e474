"""The command ``coterie fit``: read, prepare, choose K, fit, summarise, write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.algorithms import Algorithm, algorithm_of, check_options
from coterie.core.progress import Callback, Progress
from coterie.data.tables.reader import Table
from coterie.data.tables.writer import LABELS_ONLY, write
from coterie.errors import InputError, NotConvergedError
from coterie.jobs import Job, option_checks
from coterie.jobs.cluster_rows import ClusterRows, check_cluster_job, cluster_rows, is_read_by_workers
from coterie.jobs.command_line import report_source
from coterie.jobs.fitting import fit, sample_rows
from coterie.jobs.job_table import clustered_rows, job_table
from coterie.jobs.labelled_table import NewColumns, check_new_columns, table_writer
from coterie.jobs.output_files import OutputFiles, check_outputs
from coterie.jobs.python_remedies import with_job_options, with_job_reasons
from coterie.jobs.training_summary import summarize_training
from coterie.plots.silhouette_display import SilhouetteDisplay
from coterie.preparation.column_selection import DISTANCE, LABEL, NAME, PROBABILITY
from coterie.preparation.fit_preparation import PreparedTable, prepare
from coterie.report.build.cluster_names import check_names, named, names_by_label
from coterie.report.build.cluster_rules import with_rules
from coterie.report.build.cluster_summaries import (
    description_notes,
    fit_warnings,
    not_converged,
    notes,
    shares_of_all,
    silhouettes,
    summaries,
    table_fields,
)
from coterie.report.build.fitted_model import FittedModel
from coterie.report.build.profile_table import profile_table
from coterie.report.html.report import Absent, Report
from coterie.report.results import Choice, ClusterSummary, JobResult

if TYPE_CHECKING:
    from coterie.selection import ChooseK


@dataclass(frozen=True, eq=False)
class ClusteredTable:
    """A table with its clusters in memory, from which outputs are written."""

    table: Table
    prepared: PreparedTable
    members: PreparedTable  # the rows that are in a cluster
    labels: NDArray[np.integer]  # of the members
    fitted: FittedModel
    measured: SilhouetteDisplay | Absent
    clusters: tuple[ClusterSummary, ...]
    names: list[str] | None  # of the clusters, by label
    columns: NewColumns
    result: JobResult
    details: ChooseK | None  # how K was chosen, with the fits that were compared; None if it was given


def execute(job: Job, callback: Callback) -> JobResult:
    check_job(job)
    if is_read_by_workers(job):
        return _execute_on_cluster(job, callback)
    _check_outputs(job)
    table = job_table(job, callback)
    if job.output is not None:
        new = (LABEL, DISTANCE, PROBABILITY, *((NAME,) if job.names else ()))
        check_new_columns(table, new, force=job.force)
    prepared = prepare(table, job, algorithm_of(job.algorithm), callback)
    content = describe(job, table, prepared, *fit_clusters(job, prepared, callback), callback)
    return write_outputs(job, content, callback)


def fit_clusters(
    job: Job, prepared: PreparedTable, callback: Callback, *, recorded: bool = False
) -> tuple[FittedModel, Choice | None, ChooseK | None]:
    """Choose K and fit: the fit, and how K was chosen. `recorded` keeps iterations, unless a sweep has the fit."""
    k, choice, details = _k(job, prepared, callback)
    return _fit(job, k, prepared, details, callback, recorded), choice, details


def _execute_on_cluster(job: Job, callback: Callback) -> JobResult:
    """Workers read the files, fit, and write the clusters of their rows; a sample describes the clusters."""
    check_cluster_job(job)
    output, job = job.output, replace(job, output=None)
    _check_outputs(job)
    with cluster_rows(job, callback) as remote:
        prepared = prepare(remote.table, job, algorithm_of(job.algorithm), callback)
        k, choice, details = _k(job, prepared, callback)
        fitted = _fit(job, k, prepared, details, callback, remote=remote)
        if output is not None:
            callback(Progress(f"writing {output}"))
        remote.write_labels(fitted.model, remote.prepared(prepared.preparation, job.weight), output, job.force)
        content = describe(job, remote.table, prepared, fitted, choice, details, callback)
        result = remote.of_all_rows(content.result, fitted.model.labels_, output)
    return write_outputs(job, replace(content, result=result), callback)


def _check_outputs(job: Job) -> None:
    outputs = {name: getattr(job, name) for name in ("output", "model", "profiles", "report", "animate", "checkpoint")}
    check_outputs(job.path, force=job.force, **outputs)


def write_outputs(job: Job, content: ClusteredTable, callback: Callback) -> JobResult:
    """Write the files that the job names, each whole or not at all, and return its result."""
    with OutputFiles(force=job.force) as files:
        _write_tables_and_model(job, content, files, callback)
        animation = None
        if job.animate is not None:
            animation = content.fitted.recording.trace().animate()
            callback(Progress(f"writing {job.animate.name}"))
            files.write(job.animate, partial(animation.save, overwrite=True))
        if job.report is None:
            return content.result
        callback(Progress(f"writing {job.report.name}"))
        report = fit_report(job, content, None if animation is None else animation.to_dict(), callback)
        return files.write_report(job.report, report, job.static, report.result)


def _fit(
    job: Job, k: int | str, prepared: PreparedTable, details: ChooseK | None, callback: Callback,
    recorded: bool = False, remote: ClusterRows | None = None,
) -> FittedModel:  # fmt: skip
    if isinstance(k, int):
        check_names(job.names, k)
    has_sweep = details is not None and remote is None and algorithm_of(job.algorithm).has_sweep
    sweep = details.reusable_sweep if details is not None and has_sweep else None
    recorded = job.animate is not None or (recorded and sweep is None)  # the fits of a sweep are not recorded
    with _resume_hint(job.checkpoint):
        fitted = fit(
            job, job.algorithm, k, prepared, job.options, callback, sample=job.sample, engine=job.engine,
            checkpoint=job.checkpoint, recorded=recorded, sweep=sweep, remote=remote,
        )  # fmt: skip
    if job.strict and not fitted.converged:
        raise NotConvergedError(not_converged(job.algorithm, fitted))
    return fitted


def describe(
    job: Job, table: Table, prepared: PreparedTable, fitted: FittedModel, choice: Choice | None,
    details: ChooseK | None, callback: Callback, n_clusters: int | None = None,
) -> ClusteredTable:  # fmt: skip
    """Silhouettes, rules and names of the clusters, and the result; `n_clusters` is by default that of the model."""
    callback(Progress("silhouettes"))
    n_clusters = _n_clusters(algorithm_of(job.algorithm), fitted.model) if n_clusters is None else n_clusters
    members, labels = clustered_rows(table, prepared, fitted.labels)
    measured = silhouettes(members, labels, fitted.model, job.threads)
    clusters = shares_of_all(summaries(members, labels, n_clusters, measured), members, prepared)
    clusters, cost_ratio = with_rules(table, prepared, fitted.labels, clusters)
    clusters = named(clusters, job.names, n_clusters)
    names = names_by_label(clusters, n_clusters) if job.names else None
    columns = NewColumns(partial(fitted.columns, prepared.rows.model_input, names=names), prepared.rows.n)
    result = _result(job, table, prepared, fitted, choice, columns, clusters, cost_ratio, n_clusters)
    result = with_job_options(result) if job.in_python else result
    return ClusteredTable(table, prepared, members, labels, fitted, measured, clusters, names, columns, result, details)


def _write_tables_and_model(job: Job, content: ClusteredTable, files: OutputFiles, callback: Callback) -> None:
    prepared, members, model, labels = content.prepared, content.members, content.fitted.model, content.labels
    if job.output is not None:
        callback(Progress(f"writing {job.output.name}"))
        writer = table_writer(
            content.table, prepared.rows, content.columns, job.output, callback, safe_csv=job.safe_csv
        )
        files.write(job.output, writer)
    if job.model is not None:
        from coterie.persistence import save
        from coterie.preparation.sklearn_steps import as_pipeline

        callback(Progress(f"writing {job.model.name}"))
        summary = summarize_training(members, model, labels, algorithm_of(job.algorithm))
        if summary is not None:
            model.training_summary_ = summary
        if content.names is not None:
            model.cluster_names_ = content.names
        pipeline = as_pipeline(model, prepared.preparation, prepared.rows.n)
        files.write(job.model, lambda temporary: save(pipeline, temporary, overwrite=True))
    if job.profiles is not None:
        callback(Progress(f"writing {job.profiles.name}"))
        profiles = profile_table(members, labels, content.clusters)
        files.write(job.profiles, partial(write, iter([profiles]), safe_csv=job.safe_csv))


def fit_report(job: Job, content: ClusteredTable, animation: Any, callback: Callback) -> Report:
    """The data of the report about the clusters."""
    from coterie.report.build import fit_report

    report = fit_report.build(
        content.result, report_source(job, content.table, content.members), silhouettes=content.measured,
        fit=None if content.fitted.model is None else replace(content.fitted, labels=content.labels),
        choice=content.details, animation=animation, all_rows=content.prepared, python=python_code(job, content),
        callback=callback,
    )  # fmt: skip
    return with_job_reasons(report) if job.in_python else report


def python_code(job: Job, content: ClusteredTable) -> str | Absent:
    """Python code that gives the same labels."""
    from coterie.report.build import python_code

    source, method = report_source(job, content.table, content.prepared), algorithm_of(job.algorithm)
    code_k: int | str | None = "auto" if method.mixed and job.k == "auto" else content.result.k
    code_k = None if method.finds_k else code_k
    return python_code.fit_code(source, job.algorithm, code_k, content.fitted, job.sample)


@contextmanager
def _resume_hint(checkpoint: Path | None) -> Iterator[None]:
    """Tell how to resume an interrupted fit."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if checkpoint is None or not checkpoint.exists():
            raise
        raise KeyboardInterrupt(f'Run the same command again to resume from "{checkpoint}".') from interrupt


def check_job(job: Job) -> None:
    """Reject options that are invalid, whatever the data."""
    option_checks.check_table_options(job)
    check_options(job.algorithm, job.options)
    option_checks.check_k(job.k)
    option_checks.check_no_k(job.k, job.algorithm)
    if isinstance(job.k, int):
        check_names(job.names, job.k)
    option_checks.check_engine(job.engine, job.algorithm)
    option_checks.check_long_work(job)
    option_checks.check_batches(job.batch_rows, algorithm_of(job.algorithm).mixed)
    option_checks.check_static(job)
    option_checks.check_map(job)
    option_checks.check_safe_csv(job)
    for name in ("n_init", "max_iter"):
        option_checks.at_least(name, job.options.get(name), 1)
    option_checks.at_least("sample", job.sample, 1)


def _k(job: Job, prepared: PreparedTable, callback: Callback) -> tuple[int | str, Choice | None, ChooseK | None]:
    """The number of clusters, and how it was chosen; a mixture of mixed columns chooses it during the fit."""
    n = prepared.rows.n if job.sample is None else min(job.sample, prepared.rows.n)
    option_checks.check_rows_for_k(job.k, n)
    if isinstance(job.k, int):
        return job.k, None, None
    method = algorithm_of(job.algorithm)
    if method.finds_k or (method.mixed and job.k == "auto"):
        return "auto", None, None
    option_checks.check_k_can_be_chosen(job.algorithm)
    from coterie.jobs.choose_k_job import choose  # it imports all criteria

    X, weight, _ = sample_rows(prepared, job.sample, job.seed)
    choice, details = choose(job, job.algorithm, X, weight, prepared, callback, options=job.options)
    return details.best_number if details.is_stopped else choice.recommended, choice, details


def _n_clusters(method: Algorithm, model: Any) -> int:
    """The number of clusters of a fitted model."""
    if not method.finds_k:
        return int(getattr(model, "n_components_", 0)) or int(getattr(model, method.k_parameter))
    if model.n_clusters_ == 0:
        options = {"DBSCAN": "a larger --eps or a smaller --min-samples"}
        remedy = options.get(method.title, "a smaller --min-cluster-size or --min-samples")
        raise InputError(f"{method.title} found no clusters: all rows are noise. Try {remedy}.")
    return int(model.n_clusters_)


def _result(
    job: Job, table: Table, prepared: PreparedTable, fitted: FittedModel, choice: Choice | None, columns: NewColumns,
    clusters: tuple[ClusterSummary, ...], cost_ratio: float | None, k: int,
) -> JobResult:  # fmt: skip
    method = algorithm_of(job.algorithm)
    choice_notes: tuple[str, ...] = ()
    if choice is not None and choice.clusters_by != method.title:
        choice_notes = (f"K was chosen with clusters of {choice.clusters_by}, not of {method.title}.",)
    added: tuple[str, ...] = ()
    if job.output is not None:
        added = (LABEL,) if job.output.suffix.lower() == LABELS_ONLY else columns.names
    return JobResult(
        **table_fields(table, prepared, job.weight, job.seed),
        method=job.algorithm,
        title=method.title,
        k=k,
        options=fitted.options,
        scores=fitted.scores,
        iterations=fitted.iterations,
        converged=fitted.converged,
        seconds=fitted.seconds,
        choice=choice,
        clusters=clusters,
        rule_cost_ratio=cost_ratio,
        labels=prepared.rows.expand(fitted.labels),
        noise=int((fitted.labels < 0).sum()) if method.finds_k else None,
        notes=(
            *table.notes,
            *notes(prepared),
            *description_notes(prepared, job.weight),
            *choice_notes,
            *fitted.notes,
        ),
        warnings=(
            *prepared.warnings,
            *(() if choice is None else choice.warnings),
            *fitted.warnings,
            *fit_warnings(job.algorithm, fitted, clusters, k),
        ),
        output=None if job.output is None else str(job.output),
        added=added,
        model=None if job.model is None else str(job.model),
        profiles=None if job.profiles is None else str(job.profiles),
        animation=None if job.animate is None else str(job.animate),
    )
