"""Readers of whole files, by the suffix of the file name."""

from collections.abc import Callable
from pathlib import Path

import polars as pl

from coterie.data.tables.array_files import array_frame, load_array
from coterie.data.tables.suffixes import ARRAYS, BINARY, EXCEL
from coterie.data.tables.table_size import check_rows
from coterie.data.tables.vector_columns import flatten
from coterie.data.tables.workbooks import read_workbook

COPIES = 4  # of the text of categories, for each row, while columns are described


def _binary_frame(path: Path) -> pl.DataFrame:
    frame = pl.read_parquet(path, glob=False) if path.suffix.lower() == ".parquet" else pl.read_ipc(path)
    lengths = [column.str.len_bytes() for column in frame if column.dtype == pl.String]
    lengths += COPIES * [column.cat.len_bytes() for column in frame if column.dtype in (pl.Categorical, pl.Enum)]
    nbytes = sum(float(each.cast(pl.Float64).sum()) for each in lengths)  # rows may share a text
    check_rows(path, *frame.shape, nbytes)
    return flatten(frame)


FRAMES: dict[str, Callable[[Path], pl.DataFrame]] = {
    **dict.fromkeys(BINARY, _binary_frame),
    ".ndjson": lambda path: flatten(pl.read_ndjson(path)),
    ".jsonl": lambda path: flatten(pl.read_ndjson(path)),
    **dict.fromkeys(EXCEL, lambda path: read_workbook(path)[1]),
    **dict.fromkeys(ARRAYS, lambda path: array_frame(load_array(path), path.name)),
}
