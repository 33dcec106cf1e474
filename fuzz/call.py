"""Calls of the library: which outcomes are allowed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from coterie.errors import InputError, RangeWarning
from fuzz.finding import LawBroken, Rejected

T = TypeVar("T")


@contextmanager
def quiet() -> Iterator[None]:
    """No warning matters in what is only prepared for a law."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def no_numpy_warnings() -> Iterator[None]:
    """NumPy's warnings about floating point, and ObjectiveRoseWarning, break a law; other warnings are allowed.

    A RangeWarning is the documented outcome where a result has no representation in the units of the data.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        if issubclass(warning.category, RuntimeWarning) and not issubclass(warning.category, RangeWarning):
            place = f"{warning.filename.rpartition('/')[2]}:{warning.lineno}"
            raise LawBroken(f"{warning.category.__name__}: {warning.message}", place)


def attempt(function: Callable[..., T], *args: Any, **options: Any) -> T:
    """The result of a call with valid arguments and any table. Only an InputError may reject the table."""
    try:
        with no_numpy_warnings():
            return function(*args, **options)
    except InputError as error:
        if not str(error):
            raise LawBroken(f"{type(error).__name__} without a message") from error
        raise Rejected(str(error)) from error


def expect_error(function: Callable[..., Any], *args: Any, **options: Any) -> None:
    """A call with an invalid argument: it must raise a ValueError or TypeError that says something, or succeed."""
    try:
        with quiet():
            function(*args, **options)
    except np.linalg.LinAlgError:
        raise
    except (ValueError, TypeError, OSError) as error:  # the own errors and NotFittedError are ValueErrors
        if not str(error):
            raise LawBroken(f"{type(error).__name__} without a message") from error
        raise Rejected(str(error)) from error
