"""Clusters of a fitted model for the rows of another table."""

from functools import partial
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from coterie.core.errors import InputError, ParameterError
from coterie.data.tables import reader as table
from coterie.data.tables.reader import LABEL
from coterie.jobs import ModelMissing, PredictJob, Progress, Step
from coterie.jobs.labelled_table import Answers
from coterie.jobs.option_checks import at_least, check_batches, check_safe_csv, one_of
from coterie.jobs.output_files import Outputs, check_places
from coterie.preparation import sklearn_steps as model_file
from coterie.preparation.column_selection import DISTANCE, PROBABILITY
from coterie.preparation.preparation import Rows
from coterie.report.prediction import PredictionResult


def execute(job: PredictJob, progress: Progress) -> PredictionResult:
    """Run `job`, telling `progress` about each stage."""
    one_of("missing", job.missing, get_args(ModelMissing))
    if job.batch_rows is not None:
        at_least("batch_rows", job.batch_rows, 1)
    check_safe_csv(job)
    check_places(job.path, force=job.force, output=job.output)
    progress(Step(f"reading {job.model.name}"))
    saved = model_file.read(job.model)
    model = saved.model
    _check_abilities(job, model)
    check_batches(job.batch_rows, saved.mixed)
    progress(Step(f"reading {job.path.name}"))
    source = table.read(job.path, job.batch_rows)
    how = model_file.preparation(saved, source, job.missing)
    rows = how.apply(source, progress)
    progress(Step("predicting"))
    labels = np.asarray(model.predict(rows.given))
    added: tuple[str, ...] = ()
    if job.output is not None:
        new = Answers(partial(_new_columns, job, model, rows, labels), rows.n)
        added = new.names
        table.refuse_clash(source, added, force=job.force)
        progress(Step(f"writing {job.output.name}"))
        with Outputs(force=job.force) as files:
            files.write(job.output, table.labelled(source, rows.kept, new, job.output, progress, safe_csv=job.safe_csv))
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
        labels=table.spread(labels, rows.kept),
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


def _new_columns(
    job: PredictJob, model: Any, rows: Rows, labels: NDArray[np.integer], part: slice
) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {LABEL: labels[part].astype(np.int64)}
    asked = {PROBABILITY: "predict_proba" if job.proba else "", DISTANCE: "transform" if job.distance else ""}
    for name, verb in asked.items():
        if verb:
            columns |= {f"{name}_{j}": values for j, values in enumerate(getattr(model, verb)(rows.given[part]).T)}
    return columns
