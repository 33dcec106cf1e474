"""With --safe-csv no cell of text is a formula to a spreadsheet program; numbers stay as they are."""

import csv

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.cli import main
from coterie.data.tables.writer import escape_formulas
from coterie.datasets import DEMOS, write_demo

SIGNS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
CELLS = [
    "=1+2",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    " =1",
    "\uff1d1+2",
    "plain",
    "-",
    "-3.5",
    "+7",
    "1e-3",
    "",
]


def begins_like_a_formula(cell: str) -> bool:
    if cell[:1] in ("\t", "\r", "\n"):
        return True
    return cell.lstrip()[:1] in ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def is_number(cell: str) -> bool:
    try:
        float(cell.strip().replace(",", "."))
    except ValueError:
        return False
    return True


@pytest.fixture
def table(folder):
    rows = [[CELLS[i % len(CELLS)], -i - 0.5, i * 2.0, f"{i - 20}"] for i in range(40)]
    with open(folder / "x.csv", "w", newline="") as file:
        csv.writer(file).writerows([["=HYPERLINK(1)", "a", "b", "c"], *rows])
    return folder / "x.csv"


def cells(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ","))


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
@pytest.mark.parametrize("command", ["fit", "predict", "batches"])
def test_no_cell_of_text_is_a_formula(table, folder, suffix, command):
    how = ["-o", f"out.{suffix}", "--safe-csv"]
    if command == "predict":
        assert main(["fit", "x.csv", "-k", "2", "-c", "a,b", "--model", "m.safetensors"]) == 0
        assert main(["predict", "m.safetensors", "x.csv", *how]) == 0
    else:
        more = ["--batch-rows", "7"] if command == "batches" else []
        assert main(["fit", "x.csv", "-k", "2", "-c", "a,b", *how, *more]) == 0
    before, after = cells(table), cells(folder / f"out.{suffix}")
    assert after[0][0] == "'=HYPERLINK(1)"
    for old, new in zip(before, after, strict=True):
        for one, other in zip(old, new, strict=False):
            risky = begins_like_a_formula(one) and not is_number(one)
            assert other == (f"'{one}" if risky else one)


def test_without_the_option_cells_stay_as_they_are(table, folder):
    assert main(["fit", "x.csv", "-k", "2", "-c", "a,b", "-o", "out.csv"]) == 0
    assert [row[0] for row in cells(folder / "out.csv")] == [row[0] for row in cells(table)]


@given(st.lists(st.text(st.sampled_from(SIGNS + " 1.,a'"), max_size=5) | st.none(), min_size=1, max_size=8))
def test_every_text_is_safe_and_nothing_else_changes(values):
    frame = pl.DataFrame({"a": pl.Series(values, dtype=pl.String), "n": np.arange(len(values)) - 3.5})
    found = escape_formulas(frame)
    assert found["n"].equals(frame["n"])
    for old, new in zip(values, found["a"].to_list(), strict=True):
        assert new in (old, None if old is None else f"'{old}")
        assert new is None or is_number(new) or not begins_like_a_formula(new) or new.strip() in ("", "NA")


@pytest.mark.parametrize("how", [[], ["-o", "out.parquet"]])
def test_the_option_is_rejected_where_no_csv_is_written(table, capsys, how):
    assert main(["fit", "x.csv", "-k", "2", *how, "--safe-csv"]) == 2
    assert "--safe-csv is for output in .csv or .tsv" in capsys.readouterr().err


@pytest.mark.parametrize("name", DEMOS)
def test_demo_tables_have_no_formulas(folder, name):
    path = write_demo(name, folder / f"{name}.csv")
    assert not any(begins_like_a_formula(cell) and not is_number(cell) for row in cells(path) for cell in row)
