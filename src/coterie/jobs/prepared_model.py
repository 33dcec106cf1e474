"""Model files of jobs: a model with the preparation of its rows."""

from pathlib import Path
from typing import Any

from coterie.data.tables.read_errors import check_file
from coterie.errors import InputError
from coterie.persistence import load
from coterie.persistence.container import SUFFIX
from coterie.preparation.sklearn_steps import PreparedModel, from_pipeline


def read_model(path: Path) -> PreparedModel:
    """The model in a file, and the steps that prepare its rows."""
    return from_pipeline(load_model(path), path.name)


def load_model(path: Path) -> Any:
    """The model in a file: an estimator, or a pipeline."""
    check_file(path)
    if path.suffix.lower() != SUFFIX:
        raise InputError(f'cannot read "{path}": a model ends in {SUFFIX}.')
    return load(path)
