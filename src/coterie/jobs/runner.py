"""One job from file to file: read, choose, prepare, fit, summarise, write."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from coterie.core.errors import InputError
from coterie.jobs import Job, NotConvergedError, Progress, Step, model_file, table
from coterie.jobs.answers import Answers
from coterie.jobs.checks import (
    at_least,
    check_batches,
    check_budget,
    check_long_work,
    check_number,
    check_page,
    check_safe_csv,
    check_table_options,
)
from coterie.jobs.choosing import chosen, refuse_unswept, reusable
from coterie.jobs.columns import DISTANCE, PROBABILITY
from coterie.jobs.fitting import Fit, drawn_rows, fit
from coterie.jobs.formats import LABELS_ONLY
from coterie.jobs.methods import check_options, method_of
from coterie.jobs.outputs import Outputs, check_places
from coterie.jobs.place import check_engine
from coterie.jobs.prepare import Prepared, prepare
from coterie.jobs.silhouettes import silhouettes
from coterie.jobs.summaries import doubts, not_converged, notes, over_table, summaries
from coterie.jobs.table import LABEL, Table
from coterie.plots.silhouette_plot import SilhouetteDisplay
from coterie.report.choice import Choice
from coterie.report.html.report import Absent
from coterie.report.result import JobResult
from coterie.selection import ChooseK, Sweep

ADDED = (LABEL, DISTANCE, PROBABILITY)


def execute(job: Job, progress: Progress) -> JobResult:
    """Run `job`, telling `progress` about each stage."""
    _check_options(job)
    check_places(
        job.path,
        force=job.force,
        output=job.output,
        model=job.model,
        report=job.report,
        animate=job.animate,
        checkpoint=job.checkpoint,
    )
    progress(Step(f"reading {job.path.name}"))
    source = table.read(job.path, job.batch_rows)
    if job.output is not None:
        table.refuse_clash(source, ADDED, force=job.force)
    prepared = prepare(source, job, method_of(job.method), progress)
    k, choice, whole = _number(job, prepared, progress)
    found = _fitted(job, k, prepared, progress, None if whole is None else reusable(whole))
    if job.strict and not found.converged:
        raise NotConvergedError(not_converged(job.method, found))
    new = Answers(partial(found.columns, prepared.rows.given), prepared.rows.n)
    progress(Step("silhouettes"))
    judged = silhouettes(prepared, found.labels, found.model, job.threads)
    result = _result(job, source, prepared, found, choice, new, judged)
    with Outputs(force=job.force) as files:
        if job.output is not None:
            progress(Step(f"writing {job.output.name}"))
            files.write(
                job.output, table.labelled(source, prepared.rows.kept, new, job.output, progress, safe_csv=job.safe_csv)
            )
        if job.model is not None:
            progress(Step(f"writing {job.model.name}"))
            files.write(job.model, lambda part: model_file.write(found.model, prepared.preparation, part))
        animation = None if job.animate is None else found.trace.animate()
        if job.animate is not None and animation is not None:
            progress(Step(f"writing {job.animate.name}"))
            files.write(job.animate, partial(animation.save, overwrite=True))
        if job.report is None:
            return result
        progress(Step(f"writing {job.report.name}"))
        from coterie.jobs import reporting

        player = None if animation is None else animation.to_dict()
        page = reporting.build(
            result, source, prepared, job, silhouettes=judged, fit=found, choice=whole, animation=player,
            progress=progress,
        )  # fmt: skip
        return files.write_page(job.report, page, job.static, page.result)


def _fitted(job: Job, k: int | str, prepared: Prepared, progress: Progress, sweep: Sweep | None) -> Fit:
    with _going_on(job.checkpoint):
        return fit(
            job,
            job.method,
            k,
            prepared,
            job.options,
            progress,
            sample=job.sample,
            engine=job.engine,
            checkpoint=job.checkpoint,
            traced=job.animate is not None,
            sweep=sweep if method_of(job.method).swept else None,
        )


@contextmanager
def _going_on(checkpoint: Path | None) -> Iterator[None]:
    """Tell of the file that an interrupted fit can go on from."""
    try:
        yield
    except KeyboardInterrupt as pressed:
        if checkpoint is None or not checkpoint.exists():
            raise
        raise KeyboardInterrupt(f'The same command again goes on from "{checkpoint}".') from pressed


def _check_options(job: Job) -> None:
    check_table_options(job)
    check_options(job.method, job.options)
    check_number(job.k)
    check_budget(job.budget)
    check_engine(job.engine, job.method)
    check_long_work(job)
    check_batches(job.batch_rows, method_of(job.method).mixed)
    check_page(job)
    check_safe_csv(job)
    for name in ("n_init", "max_iter"):
        if name in job.options:
            at_least(name, job.options[name], 1)
    if job.sample is not None:
        at_least("sample", job.sample, 1)


def _number(job: Job, prepared: Prepared, progress: Progress) -> tuple[int | str, Choice | None, ChooseK | None]:
    """The number of clusters, and how it was chosen; a mixture of mixed columns finds its own in the fit."""
    rows = prepared.rows.n if job.sample is None else min(job.sample, prepared.rows.n)
    if isinstance(job.k, int):
        if job.k > rows:
            raise InputError(f"-k {job.k:,} asks for more clusters than there are rows ({rows:,}).")
        return job.k, None, None
    if method_of(job.method).mixed and job.k == "auto":
        return "auto", None, None
    refuse_unswept(job.method)
    rows, weight, _ = drawn_rows(prepared, job.sample, job.seed)
    choice, whole = chosen(job, job.method, rows, weight, prepared, progress, options=job.options)
    return choice.recommended, choice, whole


def _result(
    job: Job,
    source: Table,
    prepared: Prepared,
    found: Fit,
    choice: Choice | None,
    new: Answers,
    judged: SilhouetteDisplay | Absent,
) -> JobResult:
    k = int(getattr(found.model, "n_components_", 0)) or int(getattr(found.model, method_of(job.method).number))
    clusters = summaries(prepared, found.labels, k, judged)
    return JobResult(
        **over_table(source, prepared, job),
        method=job.method,
        title=method_of(job.method).title,
        k=k,
        options=found.options,
        scores=found.scores,
        iterations=found.iterations,
        converged=found.converged,
        seconds=found.seconds,
        choice=choice,
        clusters=clusters,
        labels=table.spread(found.labels, prepared.rows.kept),
        notes=(*source.note, *notes(prepared.skipped), *_told(job, choice), *found.notes),
        warnings=(
            *prepared.warnings,
            *(() if choice is None else choice.warnings),
            *found.warnings,
            *doubts(job.method, found, clusters, k),
        ),
        output=_named(job.output),
        added=_added(job.output, new),
        model=_named(job.model),
        animation=_named(job.animate),
    )


def _added(output: Path | None, new: Answers) -> tuple[str, ...]:
    if output is None:
        return ()
    return (LABEL,) if output.suffix.lower() == LABELS_ONLY else new.names


def _named(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _told(job: Job, choice: Choice | None) -> tuple[str, ...]:
    own = method_of(job.method).title
    if choice is None or choice.clusters_by == own:
        return ()
    return (f"K was chosen by clusters of {choice.clusters_by}, not of {own}.",)
