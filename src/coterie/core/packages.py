"""Packages that only some functions need."""

from collections.abc import Iterator
from contextlib import contextmanager

from coterie.errors import ParameterError


@contextmanager
def required(message: str) -> Iterator[None]:
    """Context for imports: if a package is missing, raise `ParameterError` with this message."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ParameterError(message) from error
