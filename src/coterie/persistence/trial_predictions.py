"""Predict a few rows with a loaded model, to reject a model whose parts do not match."""

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from coterie.core.protocols import can_predict, last_step
from coterie.errors import InputError, ModelFileError, ParameterError

ROWS = 11  # differs from the number of clusters and columns of most models, so that shapes do not match by accident
LENGTH = 4  # of a time series
METHODS = ("predict", "predict_proba", "transform", "score", "score_samples", "bic")
FRAMES = ("polars", "pandas")
ERRORS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, np.linalg.LinAlgError, AssertionError)


def check_predictions(model: Any) -> None:
    """Reject a model whose methods raise errors other than those of this library; their results do not matter."""
    last = last_step(model)
    with without_warnings(), as_model_file_errors(f"{type(last).__name__} cannot predict"):
        rows = _rows(model, last)
        for method in METHODS if rows is not None else ():
            if can_predict(model, method):
                with suppress(InputError, ParameterError, NotFittedError):
                    getattr(model, method)(rows)
        if can_predict(last, "sample"):
            duplicate = copy.copy(last)
            duplicate.random_state = 0  # so that the generator of the model does not advance
            with suppress(InputError, ParameterError, NotFittedError):
                duplicate.sample(2)


@contextmanager
def as_model_file_errors(problem: str) -> Iterator[None]:
    """Convert errors that malformed parts can cause to `ModelFileError`."""
    try:
        yield
    except ModelFileError:
        raise
    except ERRORS as error:
        raise ModelFileError(f"{problem}: its parts do not match ({type(error).__name__}: {error})") from None


@contextmanager
def without_warnings() -> Iterator[None]:
    """Suppress warnings, which the constant rows of this check can cause."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _rows(model: Any, last: Any) -> Any:
    """Rows with the columns of the model; None if they must be a data frame and neither library is installed."""
    table = getattr(getattr(last, "family", None), "table", None)  # of a mixture that was fitted to a data frame
    if table is not None:
        names = zip(table.names, table.categories, strict=True)
        values = {name: [1.0 if known is None else known[0]] * ROWS for name, known in names}
        for library in FRAMES:
            with suppress(ModuleNotFoundError):
                return import_module(library).DataFrame(values)
        return None
    channels = getattr(last, "_channels", None)
    if channels is not None and channels > 1:
        return np.ones((ROWS, LENGTH, channels))
    columns = getattr(model, "n_features_in_", None)
    return np.ones((ROWS, LENGTH if columns is None else columns))
