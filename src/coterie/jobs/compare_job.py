"""The command ``coterie compare``: several algorithms on the same rows."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.algorithms import ALGORITHMS, algorithm_of
from coterie.core.formatting import count
from coterie.core.progress import Callback, Progress, silent
from coterie.errors import ParameterError
from coterie.jobs import CompareJob
from coterie.jobs.algorithm_choice import default_algorithms, recommend
from coterie.jobs.choose_k_job import choose, reusable_sweep
from coterie.jobs.command_line import report_source
from coterie.jobs.fitting import fit
from coterie.jobs.job_table import job_table
from coterie.jobs.option_checks import check_k, check_rows_for_k, check_static, check_table_options
from coterie.jobs.output_files import check_outputs, with_report
from coterie.jobs.python_remedies import with_job_options
from coterie.metrics import adjusted_rand_score, calinski_harabasz_score, davies_bouldin_score, inertia
from coterie.preparation.fit_preparation import PreparedTable, prepare
from coterie.report.build.cluster_summaries import notes, silhouettes, table_fields
from coterie.report.build.fitted_model import FittedModel
from coterie.report.build.reliability import resampling_stability
from coterie.report.html.report import Absent
from coterie.report.results import ComparisonResult, Contestant
from coterie.selection import Sweep


def execute(job: CompareJob, callback: Callback) -> ComparisonResult:
    check_table_options(job)
    check_k(job.k, job.budget)
    _check_methods(job)
    check_static(job)
    check_outputs(job.path, force=job.force, report=job.report)
    table = job_table(job, callback)
    prepared = prepare(table, job, ALGORITHMS["kmeans"], callback)
    ks, k_notes, sweep = _ks(job, prepared, callback)
    algorithms, algorithm_notes = _algorithms(job, prepared)
    pairs = [(method, k) for method in algorithms for k in ks]
    runs: list[Contestant] = []
    labels: list[NDArray[np.integer]] = []
    warnings: list[str] = []
    swept: dict[tuple[str, int], FittedModel] = {}
    models: list[Any] = []
    for done, (method, k) in enumerate(pairs):
        callback(Progress(f"fitting {method}, K = {k}", done, len(pairs)))
        result = fit(job, method, k, prepared, {}, silent, sweep=sweep if method == "kmeans" else None)
        if result.sweep_ks is not None:
            swept[method, k] = result
        runs.append(_contestant(method, k, result, prepared, job))
        labels.append(result.labels)
        models.append(result.model)
        warnings += _warnings(method, k, result)
    runs = _mark_best(runs)
    if len(algorithms) > 1:
        runs = _with_stability(runs, models, prepared, job, callback)
    best = {(run.method, run.k): run_labels for run, run_labels in zip(runs, labels, strict=True) if run.best}
    agreement = tuple(tuple(float(adjusted_rand_score(one, other)) for other in best.values()) for one in best.values())
    comparison = ComparisonResult(
        **table_fields(table, prepared, job.weight, job.seed),
        runs=tuple(runs),
        agreement=agreement,
        recommendation=recommend([run for run in runs if run.best], agreement, prepared.rows.n),
        notes=(*table.notes, *notes(prepared), *k_notes, *algorithm_notes),
        warnings=(*prepared.warnings, *warnings),
    )
    comparison = with_job_options(comparison) if job.in_python else comparison

    def build_report() -> Any:
        from coterie.report.build import comparison_report, python_code

        source = report_source(job, table, prepared)
        return comparison_report.build(
            comparison, source, labels=best, python=python_code.comparison_code(source, best, swept)
        )

    return with_report(job, comparison, build_report, callback)


def _check_methods(job: CompareJob) -> None:
    for name in job.algorithms:
        method = algorithm_of(name)
        if method.finds_k:
            raise ParameterError(
                f"{name} cannot be compared: it finds the number of clusters itself, and leaves noise in no cluster. "
                f"Run coterie fit -a {name}, and coterie compare-labels."
            )
        if method.mixed or method.series:
            raise ParameterError(f"{name} cannot be compared: the others do not accept its kind of rows.")
    if job.series:
        raise ParameterError("--series is not for compare, whose algorithms need rows of numbers: use fit or choose-k.")
    if job.missing == "ignore":
        raise ParameterError("--missing ignore is not for a comparison: use drop, mean or median.")


def _algorithms(job: CompareJob, prepared: PreparedTable) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The algorithms to compare; by default some that are fast enough for the table, with a note."""
    if job.algorithms:
        return tuple(dict.fromkeys(job.algorithms)), ()
    X = prepared.rows.X
    names = default_algorithms(len(X), X.shape[1], is_one_unit=prepared.preparation.scale == "none")
    return names, (f"algorithms for {count(len(X))}: {', '.join(names)} (choose others with -a).",)


def _with_stability(
    runs: list[Contestant], models: list[Any], prepared: PreparedTable, job: CompareJob, callback: Callback
) -> list[Contestant]:
    """The runs; the best of each algorithm with its stability under resampling."""
    result = []
    for done, (run, model) in enumerate(zip(runs, models, strict=True)):
        if run.best:
            callback(Progress(f"resampling {run.method}, K = {run.k}", done, len(runs)))
            measured = resampling_stability(prepared, run.k, model, job.seed, job.threads)
            run = run if isinstance(measured, Absent) else replace(run, stability=measured.mean)
        result.append(run)
    return result


def _ks(
    job: CompareJob, prepared: PreparedTable, callback: Callback
) -> tuple[list[int], tuple[str, ...], Sweep | None]:
    """The numbers of clusters, a note on their choice, and the fits of K-means that were evaluated for it."""
    if isinstance(job.k, str):
        choice, details = choose(job, "kmeans", prepared.rows.model_input, prepared.weight, prepared, callback)
        note = f"{choice.heading}: {choice.reason}"
        k = choice.recommended if choice.recommended > 1 else choice.runner_up or 2
        return [k], (note,), reusable_sweep(details)
    first, last = job.k if isinstance(job.k, tuple) else (job.k, job.k)
    check_rows_for_k(job.k, prepared.rows.n)
    return list(range(first, last + 1)), (), None


def _contestant(method: str, k: int, result: FittedModel, prepared: PreparedTable, job: CompareJob) -> Contestant:
    X, labels, weight = prepared.rows.X, result.labels, prepared.weight
    measured = silhouettes(prepared, labels, threads=job.threads)  # with the same metric for all
    has_indices = 2 <= len(np.unique(labels)) < len(X)
    return Contestant(
        method=method,
        k=k,
        inertia=float(inertia(X, labels, sample_weight=weight)),
        silhouette=None if isinstance(measured, Absent) else measured.mean,
        davies_bouldin=float(davies_bouldin_score(X, labels, sample_weight=weight)) if has_indices else None,
        calinski_harabasz=float(calinski_harabasz_score(X, labels, sample_weight=weight)) if has_indices else None,
        smallest=int(np.unique(labels, return_counts=True)[1].min()),
        seconds=result.seconds,
        best=False,
    )


def _mark_best(runs: list[Contestant]) -> list[Contestant]:
    """Mark the run of each algorithm with the largest silhouette."""
    best: dict[str, int] = {}
    for i, run in enumerate(runs):
        if run.method not in best or (run.silhouette or -1.0) > (runs[best[run.method]].silhouette or -1.0):
            best[run.method] = i
    return [replace(run, best=best[run.method] == i) for i, run in enumerate(runs)]


def _warnings(method: str, k: int, result: FittedModel) -> list[str]:
    iterations = count(result.iterations or 0, "iteration")
    message = f"not converged after {iterations}: fit it alone with a larger --max-iter."
    warnings = [*([] if result.converged else [message]), *result.warnings]
    return [f"{method}, K = {k}: {warning}" for warning in warnings]
