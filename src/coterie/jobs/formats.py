"""Files of many kinds as frames."""

import codecs
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from coterie.core.errors import InputError, ParameterError

SNIFFED_BYTES = 65_536
SNIFFED_LINES = 20
DELIMITERS = (",", ";", "\t", "|")
OTHER_ENCODING = "cp1252"
EXCEL_PACKAGE = "fastexcel"
STANDARD_INPUT = Path("-")


def text_frame(path: Path) -> tuple[pl.DataFrame, str]:
    """Every field of a delimited file as it is written, and the delimiter between them."""
    content = _as_utf8(sys.stdin.buffer.read() if path == STANDARD_INPUT else path.read_bytes())
    start = content[:SNIFFED_BYTES].decode(errors="ignore")
    separator = "\t" if path.suffix.lower() == ".tsv" else _delimiter(start)
    return pl.read_csv(io.BytesIO(content), separator=separator, infer_schema=False), separator


def text_separator(path: Path) -> str:
    """The delimiter of a file of text, as `text_frame` takes it."""
    with path.open("rb") as file:
        start = _as_utf8(file.read(SNIFFED_BYTES)).decode(errors="ignore")
    return "\t" if path.suffix.lower() == ".tsv" else _delimiter(start)


def _as_utf8(content: bytes) -> bytes:
    """The text as UTF-8, by its mark of byte order, as it is, or as old Western files are."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16").encode()
    if b"\0" in content[:SNIFFED_BYTES]:
        raise ValueError("it is not text.")
    try:
        content.decode()
    except UnicodeDecodeError:
        return content.decode(OTHER_ENCODING, errors="replace").encode()
    return content.removeprefix(codecs.BOM_UTF8)


def _delimiter(text: str) -> str:
    """The one that is in every one of the first lines, most often; a comma where none is."""
    lines = [line for line in text.splitlines()[:SNIFFED_LINES] if line.strip()]
    lines = lines[: max(1, len(lines) - 1)]  # the last may have been cut
    counts = {mark: min((_outside_quotes(line).count(mark) for line in lines), default=0) for mark in DELIMITERS}
    return max(DELIMITERS, key=lambda mark: counts[mark])


def _outside_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])


def excel_frame(path: Path) -> pl.DataFrame:
    """The first sheet of a workbook."""
    try:
        import fastexcel
    except ModuleNotFoundError as error:
        raise ParameterError(
            f"reading {path.suffix.lower()} needs one more package. Run: pip install {EXCEL_PACKAGE}"
        ) from error
    try:
        return pl.read_excel(path)
    except fastexcel.FastExcelError as error:
        raise ValueError(str(error)) from error


def npy_frame(path: Path) -> pl.DataFrame:
    return _array_frame(path, np.load(path, allow_pickle=False))


def npz_frame(path: Path) -> pl.DataFrame:
    with np.load(path, allow_pickle=False) as arrays:
        return _array_frame(path, _only_table(path, dict(arrays)))


def safetensors_frame(path: Path) -> pl.DataFrame:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return _array_frame(path, _only_table(path, load(path.read_bytes())))
    except SafetensorError as error:
        raise InputError(f'cannot read "{path}": {error}') from error


def _only_table(path: Path, arrays: dict[str, Any]) -> Any:
    """The one array that has rows and columns."""
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    if len(tables) != 1:
        held = ", ".join(f"{name} {array.shape}" for name, array in sorted(arrays.items())) or "nothing"
        raise InputError(f"{path.name} must hold one array of rows and columns; it holds {held}.")
    return arrays[tables[0]]


def _array_frame(path: Path, array: Any) -> pl.DataFrame:
    if array.ndim != 2:
        raise InputError(f"{path.name} has {array.ndim} dimensions; it needs two, rows and columns.")
    if array.dtype.char not in "efd" and array.dtype.kind not in "iub":
        raise InputError(f"{path.name} holds {array.dtype.name}, not numbers.")
    if array.dtype == np.float16:
        array = array.astype(np.float32)
    return pl.DataFrame({f"x{j}": array[:, j] for j in range(array.shape[1])})


TEXT = (".csv", ".tsv", ".txt")
ARRAYS: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".npy": npy_frame,
    ".npz": npz_frame,
    ".safetensors": safetensors_frame,
}
FRAMES: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".parquet": lambda path: pl.read_parquet(path, glob=False),
    ".arrow": pl.read_ipc,
    ".feather": pl.read_ipc,
    ".ndjson": pl.read_ndjson,
    ".jsonl": pl.read_ndjson,
    ".xlsx": excel_frame,
    ".xls": excel_frame,
    ".ods": excel_frame,
}
READABLE = (*TEXT, *FRAMES, *ARRAYS)

WRITERS: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    ".csv": lambda frame, path: frame.write_csv(path),
    ".tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    ".parquet": lambda frame, path: frame.write_parquet(path),
    ".arrow": lambda frame, path: frame.write_ipc(path),
    ".feather": lambda frame, path: frame.write_ipc(path),
    ".ndjson": lambda frame, path: frame.write_ndjson(path),
    ".jsonl": lambda frame, path: frame.write_ndjson(path),
}
LABELS_ONLY = ".npy"
WRITABLE = (*WRITERS, LABELS_ONLY)
