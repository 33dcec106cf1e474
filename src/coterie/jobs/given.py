"""Clusters that rows have already, from a model or from any other tool, told about in a page."""

from dataclasses import replace
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie.core.errors import InputError, ParameterError
from coterie.jobs import ModelMissing, Progress, ReportJob, Scale, Step, model_file, reporting, table
from coterie.jobs.checks import check_table_options
from coterie.jobs.columns import require
from coterie.jobs.fitting import Fit, own_words, scores_of
from coterie.jobs.methods import METHODS
from coterie.jobs.outputs import Outputs, check_places
from coterie.jobs.prepare import Prepared, prepare, weights_of
from coterie.jobs.summaries import notes, over_table, summaries
from coterie.jobs.table import Table
from coterie.report.result import JobResult
from coterie.report.table import SkippedColumn

NO_CLUSTER = ("", "-1", "-1.0")
MOST_LABELS = 1000


def execute(job: ReportJob, progress: Progress) -> JobResult:
    """Run `job`, telling `progress` about each stage."""
    check_table_options(job)
    if (job.model is None) == (job.labels is None):
        raise ParameterError("a report needs clusters: give it either --labels COLUMN or --model FILE.")
    check_places(job.path, force=job.force, page=job.output)
    progress(Step(f"reading {job.path.name}"))
    source = table.read(job.path)
    if job.labels is not None:
        around, prepared, codes, names = _by_column(source, job)
        fit, title = None, f'clusters of the column "{job.labels}"'
    else:
        around, (prepared, fit, title) = None, _by_model(source, job, progress)
        names, codes = _present(fit.labels)
    result = _result(job, source, prepared, codes, names, fit, title)
    page = reporting.build(result, source, prepared, job, fit=fit, around=around, progress=progress)
    with Outputs(force=job.force) as files:
        return files.write_page(job.output, page, job.static, page.result)


def _by_column(source: Table, job: ReportJob) -> tuple[Prepared, Prepared, NDArray[np.integer], list[str]]:
    """All rows, those that have a label, the number of each label, and the labels."""
    name = str(job.labels)
    require(name, source.typed.columns)
    prepared = prepare(source, replace(job, exclude=(*job.exclude, name)), METHODS["kmeans"])
    column = source.typed[name]
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
    return prepared, _only(prepared, inside), codes, different


def _only(prepared: Prepared, inside: NDArray[np.bool_]) -> Prepared:
    """The rows that are in a cluster."""
    rows, here = prepared.rows, inside[prepared.rows.kept]
    left_out = int((~here).sum())
    told = f"{left_out:,} row{'' if left_out == 1 else 's'} in no cluster left out"
    treatment = rows.treatment if left_out == 0 else told if rows.treatment == "none" else f"{rows.treatment}; {told}"
    kept = replace(rows, X=rows.X[here], given=rows.given[here], kept=rows.kept & inside, treatment=treatment)
    return replace(prepared, rows=kept, weight=None if prepared.weight is None else prepared.weight[here])


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
    rows = how.apply(source)
    used = {*how.numbers, *how.categories}
    skipped = tuple(SkippedColumn(name, "not of the model") for name in source.typed.columns if name not in used)
    weight = None if job.weight is None else weights_of(source, job.weight)[rows.kept]
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


def _result(
    job: ReportJob,
    source: Table,
    prepared: Prepared,
    codes: NDArray[np.integer],
    names: list[str],
    fit: Fit | None,
    title: str,
) -> JobResult:
    return JobResult(
        **over_table(source, prepared, job.seed),
        method="given",
        title=title,
        k=len(names),
        options={},
        scores={} if fit is None else fit.scores,
        iterations=None if fit is None else fit.iterations,
        converged=True if fit is None else fit.converged,
        seconds=None,
        clusters=tuple(replace(one, name=names[one.label]) for one in summaries(prepared, codes, len(names), job.seed)),
        labels=table.spread(codes, prepared.rows.kept),
        notes=notes(prepared.skipped),
        warnings=prepared.warnings,
    )
