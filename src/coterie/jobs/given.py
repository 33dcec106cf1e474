"""Clusters that rows have already, from a model or from any other tool, told about in a page."""

from dataclasses import replace
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie.core.errors import InputError, ParameterError
from coterie.jobs import ModelMissing, Progress, ReportJob, Scale, Step, model_file, reporting, table
from coterie.jobs.checks import check_table_options
from coterie.jobs.columns import require_names
from coterie.jobs.fitting import Fit, own_words, scores_of
from coterie.jobs.methods import METHODS
from coterie.jobs.outputs import Outputs, check_places
from coterie.jobs.prepare import Prepared, prepare, weights_of
from coterie.jobs.scaling import Matrix, blocks
from coterie.jobs.silhouettes import silhouettes
from coterie.jobs.summaries import notes, over_table, summaries
from coterie.jobs.table import Table
from coterie.plots.silhouette_plot import SilhouetteDisplay
from coterie.report.html.report import Absent
from coterie.report.result import JobResult
from coterie.report.table import SkippedColumn

NO_CLUSTER = ("", "-1", "-1.0")
MOST_LABELS = 1000
MANY_LABELS = 50  # from which on a column may not be the one that was meant


def execute(job: ReportJob, progress: Progress) -> JobResult:
    """Run `job`, telling `progress` about each stage."""
    check_table_options(job)
    if job.model is None and job.labels is None:
        raise ParameterError("a report needs clusters: give it either --labels COLUMN or --model FILE.")
    if job.model is not None and job.labels is not None:
        raise ParameterError("--labels and --model both say what the clusters are: leave one of them out.")
    check_places(job.path, force=job.force, page=job.output)
    progress(Step(f"reading {job.path.name}"))
    source = table.read(job.path, job.batch_rows)
    if job.labels is not None:
        around, prepared, codes, names = _by_column(source, job, progress)
        fit, title = None, f'clusters of the column "{job.labels}"'
    else:
        around, (prepared, fit, title) = None, _by_model(source, job, progress)
        names, codes = _present(fit.labels)
    progress(Step("silhouettes"))
    judged = silhouettes(prepared, codes, None if fit is None else fit.model, job.threads)
    result = _result(job, source, prepared, codes, names, fit, title, judged)
    page = reporting.build(result, source, prepared, job, silhouettes=judged, fit=fit, around=around, progress=progress)
    with Outputs(force=job.force) as files:
        return files.write_page(job.output, page, job.static, page.result)


def _by_column(
    source: Table, job: ReportJob, progress: Progress
) -> tuple[Prepared, Prepared, NDArray[np.integer], list[str]]:
    """All rows, those that have a label, the number of each label, and the labels."""
    name = str(job.labels)
    require_names(source, name)
    prepared = prepare(source, replace(job, exclude=(*job.exclude, name)), METHODS["kmeans"], progress)
    column = source.column(name)
    texts = column.cast(pl.String).fill_null("").str.strip_chars()
    inside = ~texts.is_in(NO_CLUSTER).to_numpy()
    labels = column.filter(inside & prepared.rows.kept)
    different = labels.unique().sort().cast(pl.String).to_list()
    if not different:
        raise InputError(f'no row has a cluster in column "{name}".')
    if len(different) > MOST_LABELS:
        raise InputError(
            f'column "{name}" has {len(different):,} different values, and a report takes {MOST_LABELS:,} at most: '
            "is it the column of the clusters?"
        )
    codes = labels.cast(pl.String).replace_strict(different, range(len(different)), return_dtype=pl.Int64).to_numpy()
    return prepared, _only(source, prepared, inside), codes, different


def _only(source: Table, prepared: Prepared, inside: NDArray[np.bool_]) -> Prepared:
    """The rows that are in a cluster."""
    rows, here = prepared.rows, inside[prepared.rows.kept]
    left_out = int((~here).sum())
    told = f"{left_out:,} row{'' if left_out == 1 else 's'} in no cluster left out"
    treatment = rows.treatment if left_out == 0 else told if rows.treatment == "none" else f"{rows.treatment}; {told}"
    S = rows.S if left_out == 0 else source.room((int(np.count_nonzero(here)), rows.S.shape[1]), rows.S.dtype)
    if left_out:
        _copy_rows(rows.S, here, S)
    holes = rows.holes and any(bool(np.isnan(block).any()) for block in blocks(S))
    kept = replace(rows, S=S, given=S, kept=rows.kept & inside, treatment=treatment, holes=holes)
    return replace(prepared, rows=kept, weight=None if prepared.weight is None else prepared.weight[here])


def _copy_rows(S: Matrix, here: NDArray[np.bool_], to: Matrix) -> None:
    start = stop = 0
    for block in blocks(S):
        own = block[here[start : start + len(block)]]
        to[stop : stop + len(own)] = own
        start, stop = start + len(block), stop + len(own)


def _by_model(source: Table, job: ReportJob, progress: Progress) -> tuple[Prepared, Fit, str]:
    """The rows as the model takes them, and the clusters it says."""
    for name in ("columns", "exclude", "one_hot"):
        if getattr(job, name):
            option = f"--{name.replace('_', '-')}"
            raise ParameterError(f"{option} is not for --model, which takes the columns that it was fitted to.")
    assert job.model is not None
    progress(Step(f"reading {job.model.name}"))
    saved = model_file.read(job.model)
    if not hasattr(saved.model, "predict"):
        raise InputError(f"{type(saved.model).__name__} has no clusters for rows: cluster them, and use --labels.")
    if job.missing in ("mean", "median"):
        raise ParameterError(f"--missing {job.missing} is not for --model, which fills values as it was fitted.")
    missing = cast(ModelMissing, "auto" if job.missing == "error" else job.missing)
    how = model_file.preparation(saved, source, missing)
    how = replace(how, scale=cast(Scale, saved.scale or "none"))
    rows = how.apply(source, progress)
    used = {*how.numbers, *how.categories}
    skipped = tuple(SkippedColumn(name, "not of the model") for name in source.columns if name not in used)
    weight = None if job.weight is None else weights_of(source, job.weight, rows.kept)
    prepared = Prepared(rows, how, weight, skipped, ())
    progress(Step("predicting"))
    with own_words():
        labels = np.asarray(saved.model.predict(rows.given))
    fit = Fit(
        model=saved.model,
        labels=labels,
        scores=scores_of(saved.model, rows.given, weight),
        iterations=int(saved.model.n_iter_) if hasattr(saved.model, "n_iter_") else None,
        converged=bool(getattr(saved.model, "converged_", True)),
        seconds=0.0,
        options={},
        notes=(),
        warnings=(),
    )
    return prepared, fit, f"{type(saved.model).__name__} of {job.model.name}"


def _present(labels: NDArray[np.integer]) -> tuple[list[str], NDArray[np.integer]]:
    different, codes = np.unique(labels, return_inverse=True)
    return [str(label) for label in different.tolist()], codes


def _about_labels(job: ReportJob, names: list[str]) -> tuple[str, ...]:
    if job.labels is None or len(names) <= MANY_LABELS:
        return ()
    return (f'column "{job.labels}" has {len(names):,} different values: is it the column of the clusters?',)


def _result(
    job: ReportJob,
    source: Table,
    prepared: Prepared,
    codes: NDArray[np.integer],
    names: list[str],
    fit: Fit | None,
    title: str,
    judged: SilhouetteDisplay | Absent,
) -> JobResult:
    summed = summaries(prepared, codes, len(names), judged)
    return JobResult(
        **over_table(source, prepared, job),
        method="given",
        title=title,
        k=len(names),
        options={},
        scores={} if fit is None else fit.scores,
        iterations=None if fit is None else fit.iterations,
        converged=True if fit is None else fit.converged,
        seconds=None,
        clusters=tuple(replace(one, name=names[one.label]) for one in summed),
        labels=table.spread(codes, prepared.rows.kept),
        notes=(*source.note, *notes(prepared.skipped)),
        warnings=(*prepared.warnings, *_about_labels(job, names)),
    )
