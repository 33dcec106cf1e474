"""Ask a model that was loaded about a few rows: one whose parts do not go together is rejected before it is used."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from coterie.core.errors import InputError, ModelFileError, ParameterError

ROWS = 11  # unlike the number of clusters and of columns of most models, so that no array fits by accident
MOMENTS = 4  # of a series
ANSWERS = ("predict", "predict_proba", "transform", "score", "score_samples", "bic")
FRAMES = ("polars", "pandas")
BROKEN = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, np.linalg.LinAlgError, AssertionError)


def check_answers(model: Any) -> None:
    """Reject a model that raises other errors than those of this library; what it answers does not matter."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    with quiet(), raising(f"{type(last).__name__} does not answer"):
        rows = _rows(model, last)
        for verb in ANSWERS if rows is not None else ():
            if hasattr(model, verb):
                with suppress(InputError, ParameterError, NotFittedError):
                    getattr(model, verb)(rows)
        if hasattr(last, "sample"):
            asked = copy.copy(last)
            asked.random_state = 0  # a generator of the model stays where it is
            with suppress(InputError, ParameterError, NotFittedError):
                asked.sample(2)


@contextmanager
def raising(what: str) -> Iterator[None]:
    """Errors of parts that are not what they should be as a `ModelFileError`."""
    try:
        yield
    except ModelFileError:
        raise
    except BROKEN as error:
        raise ModelFileError(f"{what}: its parts do not go together ({type(error).__name__}: {error})") from None


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings: odd numbers are no news here."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _rows(model: Any, last: Any) -> Any:
    """Rows of the right width; None where they would have to be a frame, and there is no library of frames."""
    table = getattr(getattr(last, "family", None), "table", None)  # of a mixture of the columns of a frame
    if table is not None:
        return _frame(table)
    channels = getattr(last, "_channels", None)
    if channels is not None:
        return np.ones((ROWS, MOMENTS, channels)) if channels > 1 else np.ones((ROWS, MOMENTS))
    columns = getattr(model, "n_features_in_", None)
    return np.ones((ROWS, MOMENTS if columns is None else columns))


def _frame(table: Any) -> Any:
    columns = {
        name: [1.0] * ROWS if values is None else [values[0]] * ROWS
        for name, values in zip(table.names, table.categories, strict=True)
    }
    for name in FRAMES:
        with suppress(ModuleNotFoundError):
            return import_module(name).DataFrame(columns)
    return None
