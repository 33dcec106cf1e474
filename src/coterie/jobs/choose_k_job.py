"""How many clusters a table has."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from coterie.algorithms import METHODS, method_of, sweep_parameters
from coterie.core.errors import ParameterError
from coterie.data.tables import reader as table
from coterie.jobs import ChooseJob, CompareJob, Job, Progress, Step
from coterie.jobs.fitting import estimator, own_words
from coterie.jobs.option_checks import check_budget, check_number, check_page, check_table_options
from coterie.jobs.output_files import check_places, with_page
from coterie.preparation.fit_preparation import Prepared, prepare
from coterie.report.build.cluster_summaries import notes, over_table
from coterie.report.choice import Choice, ChoiceResult, CriterionVote
from coterie.selection import ChooseK, Sweep, choose_k
from coterie.selection.chosen import NAMES
from coterie.selection.reasons import spoken

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
OPPOSED = 0.4  # share of all weight that is for other numbers: from there on criteria disagree


def execute(job: ChooseJob, progress: Progress) -> ChoiceResult:
    """Run `job`, telling `progress` about each stage."""
    check_table_options(job)
    check_number(job.k)
    check_budget(job.budget)
    if isinstance(job.k, int):
        raise ParameterError(f"-k takes a range (2:12) or auto here, not {job.k}.")
    refuse_unswept(job.method)
    check_page(job)
    check_places(job.path, force=job.force, report=job.report)
    progress(Step(f"reading {job.path.name}"))
    source = table.read(job.path, job.batch_rows)
    prepared = prepare(source, job, method_of(job.method), progress)
    rows = prepared.rows.given
    choice, whole = chosen(job, job.method, rows, prepared.weight, prepared, progress, criteria=job.criteria)
    result = ChoiceResult(
        **over_table(source, prepared, job),
        method=job.method,
        choice=choice,
        notes=(*source.note, *notes(prepared.skipped)),
        warnings=(*prepared.warnings, *choice.warnings),
    )

    def page() -> Any:
        from coterie.report.build import fit_report as reporting

        return reporting.build_choice(result, source, prepared, job, choice=whole)

    return with_page(job, result, page, progress)


def refuse_unswept(method: str) -> None:
    """Criteria look at rows of numbers: neither at series, nor at columns of categories."""
    how = method_of(method)
    if how.series or how.mixed:
        kind = "series" if how.series else "columns of several kinds"
        raise ParameterError(f"the number of clusters is not chosen for {kind}: give {method} one, such as -k 3.")


def chosen(
    job: Job | ChooseJob | CompareJob,
    method: str,
    rows: Any,
    weight: Any,
    prepared: Prepared,
    progress: Progress,
    *,
    criteria: tuple[str, ...] = (),
    options: Mapping[str, Any] = NO_OPTIONS,
) -> tuple[Choice, ChooseK]:
    """Ask `choose_k` of the prepared rows, with the method's own clusters where criteria can judge them."""
    progress(Step("choosing K"))
    how, k = method_of(method), job.k
    judged: Any = None
    if how.swept and (method != "kmeans" or options):
        told = sweep_parameters(method, options)
        judged = estimator(how, 2, told, prepared.preparation.missing, job.seed, job.threads)
    with own_words() as said:
        found = choose_k(
            rows,
            "auto" if isinstance(k, str) else range(k[0], k[1] + 1) if isinstance(k, tuple) else [k],
            criteria or "auto",
            budget=job.budget,
            estimator=judged,
            sample_weight=weight,
            n_jobs=job.threads,
            random_state=job.seed,
            callback=lambda state: progress(
                Step(f"choosing K: {NAMES[state.step]}", state.done, state.total, state.left)
            ),
        )
    choice = Choice(
        recommended=found.recommended,
        confidence=found.confidence,
        reason=found.reason,
        votes=tuple(
            CriterionVote(NAMES[vote.criterion], vote.k, vote.confidence, vote.weight, vote.note)
            for vote in found.votes
        ),
        table=tuple(found.table()),
        clusters_by=METHODS[method if how.swept else "kmeans"].title,
        rows_looked_at=found.rows,
        rows=found.n,
        warnings=(*said, *_doubts(found)),
    )
    return choice, found


def reusable(found: ChooseK) -> Sweep | None:
    """The fits that were judged, if they are of all rows: then the fit for the chosen K is one of them."""
    return found.sweep if found.rows == found.n else None


def _doubts(found: ChooseK) -> tuple[str, ...]:
    """That there are no clusters, or that criteria do not agree on their number."""
    if found.recommended == 1:
        return ("the table looks as if it had no clusters; -k N asks for them all the same.",)
    counted = [vote for vote in found.votes if vote.k is not None and vote.weight > 0]
    against = sum(vote.weight for vote in counted if vote.k != found.recommended)
    if against < OPPOSED * sum(vote.weight for vote in counted):
        return ()
    return (
        f"criteria disagree: {spoken(counted, NAMES)}. Look at more than one K, and name the one you want with -k.",
    )
