"""Clusters of a fitted model for the rows of another table."""

from typing import Any

import numpy as np
import polars as pl

from coterie.core.errors import InputError, ParameterError
from coterie.jobs import PredictJob, Progress, Step, model_file, table
from coterie.jobs.columns import DISTANCE, PROBABILITY
from coterie.jobs.prepare import Rows
from coterie.jobs.runner import spread
from coterie.jobs.table import LABEL, Table
from coterie.report.prediction import PredictionResult


def execute(job: PredictJob, progress: Progress) -> PredictionResult:
    """Run `job`, telling `progress` about each stage."""
    if job.output is not None:
        table.check_output(job.output, force=job.force)
    progress(Step(f"reading {job.model.name}"))
    model, scaler = model_file.read(job.model)
    _check_abilities(job, model)
    progress(Step(f"reading {job.path.name}"))
    source = table.read(job.path)
    how = model_file.preparation(model, scaler, source, job.missing)
    rows = how.apply(source)
    progress(Step("predicting"))
    labels = np.asarray(model.predict(rows.given))
    added: tuple[str, ...] = ()
    if job.output is not None:
        new = _new_columns(job, model, rows, labels)
        _refuse_column_clash(source, new, job)
        progress(Step(f"writing {job.output.name}"))
        table.write(source, new, job.output, force=job.force)
        added = tuple(new.columns)
    return PredictionResult(
        source=source.name,
        model=job.model.name,
        estimator=type(model).__name__,
        rows=source.rows,
        rows_used=len(labels),
        columns=(*how.numbers, *how.categories),
        missing=rows.treatment,
        seed=getattr(model, "random_state", None),
        sizes=dict(zip(*(part.tolist() for part in np.unique(labels, return_counts=True)), strict=True)),
        labels=spread(labels, rows.kept),
        output=None if job.output is None else str(job.output),
        added=added,
    )


def _check_abilities(job: PredictJob, model: Any) -> None:
    name = type(model).__name__
    if not hasattr(model, "predict"):
        raise InputError(f"{name} has no clusters for rows that it was not fitted to.")
    if job.proba and not hasattr(model, "predict_proba"):
        raise ParameterError(f"--proba is for mixtures and fuzzy clusters; {job.model.name} is a {name}.")
    if job.distance and not hasattr(model, "transform"):
        raise ParameterError(f"--distance is for clusters with centers; {job.model.name} is a {name}.")
    if (job.proba or job.distance) and job.output is None:
        raise ParameterError("--proba and --distance go into a file: name it with -o.")


def _new_columns(job: PredictJob, model: Any, rows: Rows, labels: np.ndarray) -> pl.DataFrame:
    columns = {LABEL: labels.astype(np.int64)}
    asked = {PROBABILITY: "predict_proba" if job.proba else "", DISTANCE: "transform" if job.distance else ""}
    for name, verb in asked.items():
        if verb:
            columns |= {f"{name}_{j}": values for j, values in enumerate(getattr(model, verb)(rows.given).T)}
    at = np.zeros(len(rows.kept), dtype=np.int64)
    at[rows.kept] = np.arange(len(labels))
    everywhere = pl.DataFrame({name: values[at] for name, values in columns.items()})
    return everywhere.select(pl.when(pl.Series(rows.kept)).then(pl.all()))


def _refuse_column_clash(source: Table, new: pl.DataFrame, job: PredictJob) -> None:
    taken = [name for name in new.columns if name in source.raw.columns]
    if taken and not job.force:
        raise ParameterError(
            f"{source.name} has {' and '.join(taken)} already. Use --force to replace them in the output."
        )
