"""The command ``coterie report``: a report about clusters of a model, or of a column of labels."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie.algorithms import ALGORITHMS
from coterie.core.progress import Callback, Progress
from coterie.core.protocols import can_predict
from coterie.data.tables.reader import Table
from coterie.errors import InputError, ParameterError
from coterie.jobs import COLUMN_LISTS, ModelMissing, ReportJob, Scale
from coterie.jobs.command_line import report_source
from coterie.jobs.compare_labels_job import NO_CLUSTER
from coterie.jobs.fitting import caught_warnings, fitted_model, scores_of
from coterie.jobs.job_table import clustered_rows, job_table, select_rows
from coterie.jobs.option_checks import check_table_options
from coterie.jobs.output_files import OutputFiles, check_outputs
from coterie.jobs.prepared_model import read_model
from coterie.jobs.python_remedies import with_python_remedies
from coterie.jobs.training_summary import new_table_warnings
from coterie.plots.silhouette_display import SilhouetteDisplay
from coterie.preparation import SkippedColumn
from coterie.preparation.column_selection import check_categories
from coterie.preparation.fit_preparation import PreparedTable, prepare, row_weights
from coterie.preparation.sklearn_steps import load_preparation, read_columns
from coterie.report.build import fit_report, python_code
from coterie.report.build.cluster_names import names_of_model
from coterie.report.build.cluster_rules import with_rules
from coterie.report.build.cluster_summaries import description_notes, notes, silhouettes, summaries, table_fields
from coterie.report.build.fitted_model import FittedModel
from coterie.report.html.report import Absent, Report
from coterie.report.results import JobResult

MAX_LABELS = 1000
MANY_LABELS = 50  # above this number the column may be a mistake

Labels = NDArray[np.integer]


def execute(job: ReportJob, callback: Callback) -> JobResult:
    check_table_options(job)
    if job.model is None and job.labels is None:
        raise ParameterError("a report needs clusters: add either --labels COLUMN or --model FILE.")
    if job.model is not None and job.labels is not None:
        raise ParameterError("--labels and --model both define the clusters: leave out one of them.")
    check_outputs(job.path, force=job.force, page=job.output)
    report = build_report(job, job_table(job, callback), callback)
    with OutputFiles(force=job.force) as files:
        return files.write_report(job.output, report, job.static, report.result)


def build_report(
    job: ReportJob, table: Table, callback: Callback, model: Any = None, title: str | None = None,
    description: str | None = None,
) -> Report:  # fmt: skip
    """All data of the report of a job.

    From Python, the labels of `job.labels` may be those of an estimator `model`, `title` is that of the page, and
    `description` says where the clusters come from.
    """
    all_rows: PreparedTable | None = None
    fitted: FittedModel | None = None
    code: str | Absent
    if job.labels is not None:
        all_rows, prepared, codes, names = _from_column(table, job, callback)
        fitted = None if model is None else _of_rows(model, prepared, codes)
        clusters_by = description or f'clusters of the column "{job.labels}"'
        code = Absent(f"The clusters are those of the column {job.labels}: there was no fit.")
        if description is not None:
            code = Absent("The clusters were passed to make_report: code for them is where they were computed.")
    else:
        assert job.model is not None
        all_rows, fitted, clusters_by = _from_model(table, job, callback)
        if (fitted.labels < 0).all():
            raise InputError(f"{job.model.name} assigns no row to a cluster: all of them are noise.")
        prepared, members = clustered_rows(table, all_rows, fitted.labels)
        fitted = replace(fitted, labels=members)
        labels, codes = np.unique(members, return_inverse=True)
        stored = names_of_model(fitted.model, fitted.labels, job.model.name)
        names = [str(label) if stored is None else stored[label] for label in labels.tolist()]
        preparation = prepared.preparation
        code = python_code.model_code(
            job.model, report_source(job, table, prepared), preparation.sources, bool(preparation.categories)
        )
    callback(Progress("silhouettes"))
    measured = silhouettes(prepared, codes, None if fitted is None else fitted.model, job.threads)
    result = _result(job, table, prepared, codes, names, fitted, clusters_by, measured)
    source = report_source(job, table, prepared)
    report = fit_report.build(
        result, source, silhouettes=measured, python=code, fit=fitted, all_rows=all_rows, callback=callback
    )
    report = replace(report, title=title)
    return with_python_remedies(report, fitted is not None) if source.in_python else report


def _of_rows(model: Any, prepared: PreparedTable, codes: Labels) -> FittedModel | None:
    """The estimator, if it is one of coterie, and was fitted to columns as they are in the prepared rows."""
    preparation, X = prepared.preparation, prepared.rows.X
    is_same = preparation.scale == "none" and not preparation.categories and prepared.rows.row_mask.all()
    n_columns = getattr(model, "n_features_in_", None)
    if not (is_same and n_columns == X.shape[1] and type(model).__module__.startswith("coterie.")):
        return None
    return fitted_model(model, codes, scores_of(model, prepared.rows.model_input, prepared.weight), seconds=0.0)


def _from_column(
    table: Table, job: ReportJob, callback: Callback
) -> tuple[PreparedTable, PreparedTable, Labels, list[str]]:
    """All rows, the rows with a label, their codes, and the labels."""
    name = str(job.labels)
    check_categories(table, name)
    prepared = prepare(table, replace(job, exclude=(*job.exclude, name)), ALGORITHMS["kmeans"], callback)
    column = table.column(name)
    texts = column.cast(pl.String).fill_null("").str.strip_chars()
    has_label = ~texts.is_in(NO_CLUSTER).to_numpy()
    labels = column.filter(has_label & prepared.rows.row_mask)
    distinct = labels.unique().sort().cast(pl.String).to_list()
    if not distinct:
        raise InputError(f'no row has a cluster in column "{name}".')
    if len(distinct) > MAX_LABELS:
        raise InputError(
            f'column "{name}" has {len(distinct):,} different values, and a report takes {MAX_LABELS:,} at most: '
            "is it the column of the clusters?"
        )
    codes = labels.cast(pl.String).replace_strict(distinct, range(len(distinct)), return_dtype=pl.Int64).to_numpy()
    return prepared, select_rows(table, prepared, has_label), codes, distinct


def _from_model(table: Table, job: ReportJob, callback: Callback) -> tuple[PreparedTable, FittedModel, str]:
    """The rows prepared for the model, the model with the clusters that it predicts, and a title."""
    for name in COLUMN_LISTS:
        if getattr(job, name):
            option = f"--{name.replace('_', '-')}"
            raise ParameterError(f"{option} is not for --model, which uses the columns that it was fitted to.")
    assert job.model is not None
    callback(Progress(f"reading {job.model.name}"))
    saved = read_model(job.model)
    if not can_predict(saved.model):
        raise InputError(
            f"{type(saved.model).__name__} cannot assign rows to clusters: write labels to a column and use --labels."
        )
    if job.missing in ("mean", "median"):
        raise ParameterError(f"--missing {job.missing} is not for --model, which fills values as it was fitted.")
    missing = cast(ModelMissing, "auto" if job.missing == "error" else job.missing)
    columns_read = read_columns(saved, table)
    preparation = load_preparation(saved, columns_read, missing)
    preparation = replace(preparation, scale=cast(Scale, saved.scale or "none"))
    rows = preparation.apply(columns_read, callback)
    skipped = tuple(
        SkippedColumn(name, "not of the model") for name in table.columns if name not in preparation.sources
    )
    weight = None if job.weight is None else row_weights(table, job.weight, rows.row_mask)
    callback(Progress("predicting"))
    with caught_warnings():
        labels = saved.model.predict(rows.model_input)
    fitted = fitted_model(saved.model, labels, scores_of(saved.model, rows.model_input, weight), seconds=0.0)
    title = f"{type(saved.model).__name__} of {job.model.name}"
    prepared = PreparedTable(columns_read, rows, preparation, weight, skipped, ())
    return replace(prepared, warnings=new_table_warnings(saved.model, prepared)), fitted, title


def _result(
    job: ReportJob, table: Table, prepared: PreparedTable, codes: Labels, names: list[str], fitted: FittedModel | None,
    title: str, measured: SilhouetteDisplay | Absent,
) -> JobResult:  # fmt: skip
    clusters = summaries(prepared, codes, len(names), measured)
    clusters = tuple(replace(one, name=names[one.label]) for one in clusters)
    clusters, cost_ratio = with_rules(table, prepared, codes, clusters)
    warnings: tuple[str, ...] = ()
    if job.labels is not None and len(names) > MANY_LABELS:
        warnings = (f'column "{job.labels}" has {len(names):,} different values: is it the column of the clusters?',)
    return JobResult(
        **table_fields(table, prepared, job.weight, job.seed),
        method=fit_report.EXTERNAL,
        title=title,
        k=len(names),
        options={},
        scores={} if fitted is None else fitted.scores,
        iterations=None if fitted is None else fitted.iterations,
        converged=True if fitted is None else fitted.converged,
        seconds=None,
        clusters=clusters,
        rule_cost_ratio=cost_ratio,
        labels=prepared.rows.expand(codes),
        notes=(*table.notes, *notes(prepared), *description_notes(prepared, job.weight)),
        warnings=(*prepared.warnings, *warnings),
    )
