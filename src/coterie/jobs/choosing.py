"""How many clusters a table has."""

from typing import Any

from coterie.core.errors import ParameterError
from coterie.jobs import Budget, ChooseJob, Number, Progress, Step, table
from coterie.jobs.checks import check_budget, check_number, check_table_options
from coterie.jobs.fitting import estimator, own_words
from coterie.jobs.methods import METHODS, method_of, parameters
from coterie.jobs.prepare import Prepared, prepare
from coterie.jobs.summaries import notes
from coterie.report.choice import Choice, ChoiceResult, CriterionVote
from coterie.selection import choose_k
from coterie.selection.chosen import NAMES


def execute(job: ChooseJob, progress: Progress) -> ChoiceResult:
    """Run `job`, telling `progress` about each stage."""
    check_table_options(job)
    check_number(job.k)
    check_budget(job.budget)
    if isinstance(job.k, int):
        raise ParameterError(f"-k takes a range (2:12) or auto here, not {job.k}.")
    refuse_unswept(job.method)
    progress(Step(f"reading {job.path.name}"))
    source = table.read(job.path)
    prepared = prepare(source, job, method_of(job.method))
    choice = chosen(job.method, job.k, prepared, job.criteria, job.budget, job.seed, job.threads, progress)
    return ChoiceResult(
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
        seed=job.seed,
        choice=choice,
        notes=notes(prepared.skipped),
        warnings=(*prepared.warnings, *choice.warnings),
    )


def refuse_unswept(method: str) -> None:
    """Criteria look at rows of numbers: neither at series, nor at columns of categories."""
    how = method_of(method)
    if how.series or how.mixed:
        kind = "series" if how.series else "columns of several kinds"
        raise ParameterError(f"the number of clusters is not chosen for {kind}: give {method} one, such as -k 3.")


def chosen(
    method: str,
    k: Number,
    prepared: Prepared,
    criteria: tuple[str, ...],
    budget: Budget,
    seed: int,
    threads: int | None,
    progress: Progress,
) -> Choice:
    """Ask `choose_k` of the prepared rows, with the method's own clusters where criteria can judge them."""
    progress(Step("choosing K"))
    how = method_of(method)
    judged: Any = None
    if how.swept and method != "kmeans":
        judged = estimator(how, 2, parameters(method, {}), prepared.preparation.missing, seed, threads)
    with own_words() as said:
        found = choose_k(
            prepared.rows.given,
            "auto" if isinstance(k, str) else range(k[0], k[1] + 1) if isinstance(k, tuple) else [k],
            criteria or "auto",
            budget=budget,
            estimator=judged,
            sample_weight=prepared.weight,
            n_jobs=threads,
            random_state=seed,
            progress=lambda state: progress(Step(f"choosing K: {NAMES[state.what]}", state.done, state.total)),
        )
    return Choice(
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
        warnings=tuple(said),
    )
