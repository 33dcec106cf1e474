"""Errors about rows that are not in memory, where a method needs all of them at once."""

from __future__ import annotations

from typing import Any

from coterie.errors import InputError

FILES = "is read from files in every pass"
FILES_REMEDY = "use scan_files(..., cache='memory') or cache='disk', or a sample of the rows"


def check_in_memory(source: Any, purpose: str, name: str = "X") -> None:
    """Raise an error if the rows of a source are not an array or sparse matrix of this process.

    `purpose` needs them, such as the name of an estimator.
    """
    if source.engine == "dask":
        raise InputError(
            f"{name} is a Dask array, but {purpose} needs all rows in memory: pass {name}.compute(), or a sample of "
            "the rows"
        )
    if getattr(source, "X", None) is None:
        raise InputError(f"{name} {FILES}, but {purpose} needs all rows in memory: {FILES_REMEDY}")
