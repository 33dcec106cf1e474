"""The command ``coterie predict``: clusters of a fitted model for the rows of a table."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.core.formatting import count
from coterie.core.progress import Callback, Progress
from coterie.core.protocols import can_predict, parameters_of, takes_series
from coterie.data.tables.reader import Table, read
from coterie.errors import InputError, ParameterError
from coterie.jobs import PredictJob
from coterie.jobs.labelled_table import NewColumns, check_new_columns, table_writer
from coterie.jobs.option_checks import at_least, check_batches, check_choices, check_safe_csv
from coterie.jobs.output_files import OutputFiles, check_outputs
from coterie.jobs.prepared_model import read_model
from coterie.jobs.training_summary import new_table_warnings, unusual_rows
from coterie.preparation import PreparationOptions
from coterie.preparation.column_selection import DISTANCE, LABEL, NAME, NOISE, PROBABILITY, UNUSUAL
from coterie.preparation.fit_preparation import PreparedTable
from coterie.preparation.long_series import check_series, wide_series
from coterie.preparation.preparation import Preparation, PreparedRows
from coterie.preparation.sklearn_steps import PreparedModel, load_preparation, read_columns, series_preparation
from coterie.report.build.cluster_names import names_of_model
from coterie.report.results import PredictionResult


def execute(job: PredictJob, callback: Callback) -> PredictionResult:
    check_choices(job)
    at_least("batch_rows", job.batch_rows, 1)
    at_least("header_row", job.header_row, 1)
    check_safe_csv(job)
    check_outputs(job.path, force=job.force, output=job.output)
    callback(Progress(f"reading {job.model.name}"))
    saved = read_model(job.model)
    model = saved.model
    _check_model(job, model)
    check_batches(job.batch_rows, saved.mixed)
    callback(Progress(f"reading {job.path.name}"))
    table = read(job.path, job.batch_rows, sheet=job.sheet, header_row=job.header_row, sql=job.sql)
    if job.series:
        table, preparation, rows = _series(job, saved, table, callback)
        columns_read = table
    else:
        columns_read = read_columns(saved, table)
        preparation = load_preparation(saved, columns_read, job.missing)
        rows = preparation.apply(columns_read, callback)
    prepared = PreparedTable(columns_read, rows, preparation, None, (), ())
    callback(Progress("predicting"))
    labels = np.asarray(model.predict(rows.model_input))
    names = names_of_model(model, labels, job.model.name)
    summary = getattr(model, "training_summary_", None)  # models of Python have none
    unusual = None if summary is None else unusual_rows(summary, model, rows, labels)
    added: tuple[str, ...] = ()
    if job.output is not None:
        columns = NewColumns(partial(_new_columns, job, model, rows, labels, names, unusual), rows.n)
        added = columns.names
        check_new_columns(table, added, force=job.force)
        callback(Progress(f"writing {job.output.name}"))
        with OutputFiles(force=job.force) as files:
            files.write(job.output, table_writer(table, rows, columns, job.output, callback, safe_csv=job.safe_csv))
    return PredictionResult(
        source=table.name,
        model=job.model.name,
        estimator=type(model).__name__,
        rows=table.n_rows,
        rows_used=len(labels),
        columns=preparation.columns,
        missing=rows.treatment,
        seed=parameters_of(model).get("random_state"),
        sizes=dict(zip(*(part.tolist() for part in np.unique(labels, return_counts=True)), strict=True)),
        names=None if names is None else dict(enumerate(names)),
        labels=rows.expand(labels),
        unusual=None if unusual is None else int(unusual.sum()),
        notes=table.notes,
        warnings=(*_unusual_warnings(unusual), *new_table_warnings(model, prepared)),
        output=None if job.output is None else str(job.output),
        added=added,
    )


def _series(
    job: PredictJob, saved: PreparedModel, table: Table, callback: Callback
) -> tuple[Table, Preparation, PreparedRows]:
    """The series of a long table. They may have other time points and lengths than those of the fit."""
    check_series(job.series)
    if not takes_series(saved.model):
        name = type(saved.model).__name__
        raise ParameterError(f"--series is for models of series; {job.model.name} is a {name}: leave it out.")
    missing: Any = "error" if job.missing == "auto" else job.missing
    wide = wide_series(table, job.series, PreparationOptions(missing=missing))
    preparation = series_preparation(saved, wide)
    rows = preparation.apply(wide, callback)
    series = [np.asarray(row[~np.isnan(row)]) for row in rows.X]  # a list may have other lengths than the fit
    return wide, preparation, replace(rows, model_input=series)


def _check_model(job: PredictJob, model: Any) -> None:
    name = type(model).__name__
    if not can_predict(model):
        raise InputError(f"{name} cannot assign new rows to clusters.")
    if job.proba and not can_predict(model, "predict_proba"):
        raise ParameterError(f"--proba is for mixtures and fuzzy clusters; {job.model.name} is a {name}.")
    if job.distance and not can_predict(model, "transform"):
        raise ParameterError(f"--distance is for clusters with centers; {job.model.name} is a {name}.")
    if (job.proba or job.distance) and job.output is None:
        raise ParameterError("--proba and --distance need an output file: name it with -o.")


def _new_columns(
    job: PredictJob, model: Any, rows: PreparedRows, labels: NDArray[np.integer], names: list[str] | None,
    unusual: NDArray[np.bool_] | None, part: slice,
) -> dict[str, NDArray[Any]]:  # fmt: skip
    columns: dict[str, NDArray[Any]] = {LABEL: labels[part].astype(np.int64)}
    if names is not None:
        columns[NAME] = np.array([*names, NOISE])[labels[part]]
    methods = {PROBABILITY: "predict_proba" if job.proba else "", DISTANCE: "transform" if job.distance else ""}
    for name, method in methods.items():
        if method:
            values = getattr(model, method)(rows.model_input[part])
            columns |= {f"{name}_{j}": column for j, column in enumerate(values.T)}
    return columns if unusual is None else columns | {UNUSUAL: unusual[part]}


def _unusual_warnings(unusual: NDArray[np.bool_] | None) -> tuple[str, ...]:
    if unusual is None or not unusual.any():
        return ()
    n = int(unusual.sum())
    are = "is" if n == 1 else "are"
    return (f"{count(n)} of {len(unusual):,} {are} unlike the training data: see the column {UNUSUAL} of the output.",)
