"""Labels of rows in Parquet files, one for each part of the rows, written by the process that holds the part."""

from collections.abc import Callable
from glob import glob
from io import BytesIO
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from coterie.core.packages import required
from coterie.core.protocols import Chunk
from coterie.core.writing import exists, write_whole
from coterie.errors import ParameterError

COLUMN = "cluster"


def as_pattern(pattern: Any) -> Path:
    """A pattern of file names, such as 'labels/*.parquet'."""
    if not isinstance(pattern, str | PathLike):
        raise ParameterError(f"path must be a pattern of file names such as 'labels/*.parquet'; got {pattern!r}")
    path = Path(fspath(pattern))
    if path.name.count("*") != 1 or path.suffix != ".parquet" or "*" in fspath(path.parent):
        raise ParameterError(
            f"path must have one * in the name of the file, and end in .parquet, as 'labels/*.parquet'; got {pattern!r}"
        )
    return path


def check_pattern(pattern: Any, overwrite: bool) -> str:
    """A pattern of file names as an absolute path; its folder is created, and files that match it are deleted."""
    path = as_pattern(pattern)
    path.parent.mkdir(parents=True, exist_ok=True)
    before = sorted(glob(fspath(path)))
    if before and not overwrite:
        raise exists(Path(before[0]))
    for name in before:  # files of more parts would be left beside the new ones
        Path(name).unlink()
    return fspath(path.absolute())


def write_labels(assign: Callable[[Chunk], Any], pattern: str, chunk: Chunk) -> tuple[str, ...]:
    """Write the labels of a chunk to the file of its part, and return the name of the file.

    A part whose worker ended is written again, so the file is replaced.
    """
    with required('predict_to writes Parquet with the package polars: pip install "coterie[cli]"'):
        import polars
    path = pattern.replace("*", f"{chunk.part:06d}")
    file = BytesIO()
    polars.DataFrame({COLUMN: assign(chunk)}).write_parquet(file)
    write_whole(Path(path), file.getvalue(), overwrite=True)
    return (path,)
