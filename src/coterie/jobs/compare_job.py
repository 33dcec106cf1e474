"""Algorithms side by side on the same rows."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.algorithms import METHODS, method_of
from coterie.core.errors import InputError, ParameterError
from coterie.data.tables import reader as table
from coterie.jobs import CompareJob, Progress, Step, silent
from coterie.jobs.choose_k_job import chosen, reusable
from coterie.jobs.fitting import Fit, fit
from coterie.jobs.option_checks import check_budget, check_number, check_page, check_table_options
from coterie.jobs.output_files import check_places, with_page
from coterie.metrics import adjusted_rand_score, calinski_harabasz_score, davies_bouldin_score, inertia
from coterie.preparation.fit_preparation import Prepared, prepare
from coterie.report.build.cluster_summaries import notes, over_table
from coterie.report.build.silhouettes import mean_of, silhouettes
from coterie.report.comparison import ComparisonResult, Contestant
from coterie.report.text.layout import count
from coterie.selection import Sweep


def execute(job: CompareJob, progress: Progress) -> ComparisonResult:
    """Run `job`, telling `progress` about each stage."""
    check_table_options(job)
    check_number(job.k)
    check_budget(job.budget)
    _check_methods(job)
    check_page(job)
    check_places(job.path, force=job.force, report=job.report)
    progress(Step(f"reading {job.path.name}"))
    source = table.read(job.path, job.batch_rows)
    prepared = prepare(source, job, METHODS["kmeans"], progress)
    numbers, remarks, sweep = _numbers(job, prepared, progress)
    pairs = [(method, k) for method in dict.fromkeys(job.methods) for k in numbers]
    runs: list[Contestant] = []
    labels: list[NDArray[np.integer]] = []
    warnings: list[str] = []
    swept: dict[tuple[str, int], Fit] = {}
    for done, (method, k) in enumerate(pairs):
        progress(Step(f"fitting {method}, K = {k}", done, len(pairs)))
        judged = sweep if method == "kmeans" else None
        found = fit(job, method, k, prepared, {}, silent, sweep=judged)
        if found.sweep_ks is not None:
            swept[method, k] = found
        runs.append(_judged(method, k, found, prepared, job))
        labels.append(found.labels)
        warnings += _doubts(method, k, found)
    runs = _with_best(runs)
    best = {(run.method, run.k): own for run, own in zip(runs, labels, strict=True) if run.best}
    result = ComparisonResult(
        **over_table(source, prepared, job),
        runs=tuple(runs),
        agreement=tuple(
            tuple(float(adjusted_rand_score(one, other)) for other in best.values()) for one in best.values()
        ),
        notes=(*source.note, *notes(prepared.skipped), *remarks),
        warnings=(*prepared.warnings, *warnings),
    )

    def page() -> Any:
        from coterie.report.build import fit_report as reporting

        return reporting.build_comparison(result, source, prepared, job, labels=best, swept=swept)

    return with_page(job, result, page, progress)


def _check_methods(job: CompareJob) -> None:
    if not job.methods:
        raise ParameterError("compare needs algorithms: -a kmeans -a gmm.")
    for name in job.methods:
        how = method_of(name)
        if how.mixed or how.series:
            raise ParameterError(f"{name} cannot be compared: the others do not take its kind of rows.")
    if job.missing == "ignore":
        raise ParameterError("--missing ignore is not for a comparison: use drop, mean or median.")


def _numbers(
    job: CompareJob, prepared: Prepared, progress: Progress
) -> tuple[list[int], tuple[str, ...], Sweep | None]:
    """The numbers of clusters to run, how they came about, and the fits of K-means that were judged for it."""
    rows = prepared.rows.n
    if isinstance(job.k, str):
        choice, whole = chosen(job, "kmeans", prepared.rows.given, prepared.weight, prepared, progress)
        return [max(2, choice.recommended)], (f"K = {choice.recommended}: {choice.reason}",), reusable(whole)
    first, last = job.k if isinstance(job.k, tuple) else (job.k, job.k)
    if last > rows:
        raise InputError(f"-k {last:,} asks for more clusters than there are rows ({rows:,}).")
    return list(range(first, last + 1)), (), None


def _judged(method: str, k: int, found: Fit, prepared: Prepared, job: CompareJob) -> Contestant:
    X, labels, weight = prepared.rows.S, found.labels, prepared.weight
    apart = 2 <= len(np.unique(labels)) < len(X)
    return Contestant(
        method=method,
        k=k,
        inertia=float(inertia(X, labels, sample_weight=weight)),
        silhouette=mean_of(silhouettes(prepared, labels, threads=job.threads)),  # the same distance for all
        davies_bouldin=float(davies_bouldin_score(X, labels, sample_weight=weight)) if apart else None,
        calinski_harabasz=float(calinski_harabasz_score(X, labels, sample_weight=weight)) if apart else None,
        smallest=int(np.unique(labels, return_counts=True)[1].min()),
        seconds=found.seconds,
        best=False,
    )


def _with_best(runs: list[Contestant]) -> list[Contestant]:
    """The runs, of those of an algorithm the one with the largest silhouette marked."""
    best: dict[str, int] = {}
    for i, run in enumerate(runs):
        if run.method not in best or (run.silhouette or -1.0) > (runs[best[run.method]].silhouette or -1.0):
            best[run.method] = i
    return [replace(run, best=best[run.method] == i) for i, run in enumerate(runs)]


def _doubts(method: str, k: int, found: Fit) -> list[str]:
    steps = count(found.iterations or 0, "iteration")
    alone = f"not converged after {steps}: fit it alone with a larger --max-iter."
    stopped = [] if found.converged else [alone]
    return [f"{method}, K = {k}: {doubt}" for doubt in (*stopped, *found.warnings)]
