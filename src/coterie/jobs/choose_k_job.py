"""The command ``coterie choose-k``: the number of clusters of a table."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from coterie.algorithms import ALGORITHMS, algorithm_of, sweep_parameters
from coterie.core.progress import Callback, Progress
from coterie.data.tables.reader import Table
from coterie.errors import ParameterError
from coterie.jobs import ChooseJob, CompareJob, Job
from coterie.jobs.command_line import report_source
from coterie.jobs.fitting import build_estimator, caught_warnings
from coterie.jobs.job_table import job_table
from coterie.jobs.option_checks import check_k, check_k_can_be_chosen, check_static, check_table_options
from coterie.jobs.output_files import check_outputs, with_report
from coterie.jobs.python_remedies import with_job_options
from coterie.preparation.fit_preparation import PreparedTable, prepare
from coterie.report.build.cluster_summaries import notes, table_fields
from coterie.report.results import Choice, ChoiceResult, CriterionVote
from coterie.selection import ChooseK, choose_k
from coterie.selection.reasons import describe_votes
from coterie.selection.votes import NAMES

SHARED = ("recommended", "strength", "runner_up", "confidence", "heading", "reason")  # of `ChooseK` and `Choice`


def execute(job: ChooseJob, callback: Callback) -> ChoiceResult:
    check_job(job)
    check_static(job)
    check_outputs(job.path, force=job.force, report=job.report)
    table = job_table(job, callback)
    prepared = prepare(table, job, algorithm_of(job.algorithm), callback)
    result, details = evaluate(job, table, prepared, callback)

    def build_report() -> Any:
        from coterie.report.build import python_code
        from coterie.report.build.criteria import choice_report

        source = report_source(job, table, prepared)
        code = python_code.choice_code(source, job.algorithm, job.k, job.criteria, job.budget)
        return choice_report(result, source, details, code)

    return with_report(job, result, build_report, callback)


def check_job(job: ChooseJob) -> None:
    """Reject options that are invalid, whatever the data."""
    check_table_options(job)
    check_k(job.k)
    if isinstance(job.k, int):
        raise ParameterError(f"-k takes a range (2:12) or auto here, not {job.k}.")
    check_k_can_be_chosen(job.algorithm)


def evaluate(job: ChooseJob, table: Table, prepared: PreparedTable, callback: Callback) -> tuple[ChoiceResult, ChooseK]:
    """Compare numbers of clusters, in memory: the result, and the fits that were compared."""
    X = prepared.rows.model_input
    choice, details = choose(job, job.algorithm, X, prepared.weight, prepared, callback, criteria=job.criteria)
    result = ChoiceResult(
        **table_fields(table, prepared, job.weight, job.seed),
        method=job.algorithm,
        choice=choice,
        notes=(*table.notes, *notes(prepared)),
        warnings=(*prepared.warnings, *choice.warnings),
    )
    return with_job_options(result) if job.in_python else result, details


def choose(
    job: Job | ChooseJob | CompareJob, method: str, X: Any, weight: Any, prepared: PreparedTable, callback: Callback, *,
    criteria: tuple[str, ...] = (), options: Mapping[str, Any] | None = None,
) -> tuple[Choice, ChooseK]:  # fmt: skip
    """Run `choose_k` with clusters of the algorithm if it has a sweep, otherwise with those of K-means."""
    callback(Progress("choosing K"))
    algorithm, k = algorithm_of(method), job.k
    estimator: Any = None
    ignores_missing = prepared.rows.has_missing and algorithm.handles_missing
    if algorithm.has_sweep and (method != "kmeans" or options or ignores_missing):
        parameters = sweep_parameters(method, options or {})
        estimator = build_estimator(algorithm, 2, parameters, prepared.preparation.missing, job.seed, job.threads)
    with caught_warnings() as warnings:
        result = choose_k(
            X,
            "auto" if isinstance(k, str) else range(k[0], k[1] + 1) if isinstance(k, tuple) else [k],
            criteria=criteria or "auto",
            budget=job.budget,
            estimator=estimator,
            sample_weight=weight,
            n_jobs=job.threads,
            random_state=job.seed,
            callback=lambda state: callback(replace(state, step=f"choosing K: {NAMES[state.step]}")),
        )
    if len(result.columns) == len(prepared.preparation.names):
        result = replace(result, columns=tuple(prepared.preparation.names))
    choice = Choice(
        **{name: getattr(result, name) for name in SHARED},
        votes=tuple(
            CriterionVote(NAMES[vote.criterion], vote.k, vote.confidence, vote.weight, vote.note)
            for vote in result.votes
        ),
        table=tuple(result.table()),
        clusters_by=ALGORITHMS[method if algorithm.has_sweep else "kmeans"].title,
        rows_looked_at=result.rows,
        rows=result.n,
        warnings=(*warnings, *_choice_warnings(result)),
    )
    return choice, result


def _choice_warnings(result: ChooseK) -> tuple[str, ...]:
    """A warning if the number of clusters is not clear."""
    if result.strength == "clear":
        return ()
    if result.recommended == 1 and not result.has_clusters:
        return ("the table seems to have no clusters; use -k N to request them anyway.",)
    votes = [vote for vote in result.votes if vote.k is not None and vote.weight > 0]
    preferences = f": {describe_votes(votes)}" if votes else ""
    remedy = "Look at more than one K, and set the one you want with -k."
    if result.strength == "none":
        return (f"no clear number of clusters {result.range_text}{preferences}. {remedy}",)
    if len({vote.k for vote in votes}) > 1:
        return (f"criteria disagree{preferences}. {remedy}",)
    return (f"the evidence for K = {result.recommended} is weak. {remedy}",)
