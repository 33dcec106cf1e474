"""Whether rows are in the memory of this process, and the error for methods that need them there."""

from typing import Any

from coterie.errors import InputError

FILES = "is read from files in every pass"
FILES_REMEDY = "use scan_files(..., cache='memory') or cache='disk', or a sample of the rows"


def is_in_memory(source: Any) -> bool:
    """Whether the rows of a source are an array, sparse matrix or tensor of this process."""
    return source.engine != "dask" and getattr(source, "X", None) is not None


def check_in_memory(source: Any, purpose: str, name: str = "X") -> None:
    """Raise an error unless the rows are in memory; `purpose` needs them there, such as the name of an estimator."""
    if is_in_memory(source):
        return
    if source.engine == "dask":
        raise InputError(
            f"{name} is a Dask array, but {purpose} needs all rows in memory: pass {name}.compute(), or a sample of "
            "the rows"
        )
    raise InputError(f"{name} {FILES}, but {purpose} needs all rows in memory: {FILES_REMEDY}")
