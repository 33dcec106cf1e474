"""Rows without any value, as spreadsheets write them below a table."""

import polars as pl
import pytest

from coterie.jobs import Job, PredictJob, predict, run

ROWS = [f"r{i},{50 * (i % 2) + i % 7},{-30 * (i % 2) + i % 5},{'ab'[i % 2]}" for i in range(40)]


@pytest.fixture
def table(tmp_path):
    (tmp_path / "table.csv").write_text("\n".join(["id,x,y,kind", *ROWS[:10], ",,,", *ROWS[10:], ",,,", "s,1,,a\n"]))
    return tmp_path / "table.csv"


def test_rows_that_are_filled_entirely_are_a_warning_in_fits_and_predictions(table, tmp_path):
    options = {"columns": "x,y,kind", "one_hot": "kind", "k": 2}
    fitted = run(Job(table, **options, missing="median", model=tmp_path / "m.safetensors"))
    predicted = predict(PredictJob(tmp_path / "m.safetensors", table))
    for result in (fitted, predicted):
        assert [w for w in result.warnings if w.startswith("2 rows have no value in any column")] != []


@pytest.mark.parametrize("missing", ["drop", "mean"])
def test_complete_tables_and_dropped_rows_have_no_such_warning(table, missing):
    options = {"columns": "x,y", "k": 2, "missing": missing}
    rows = table if missing == "drop" else pl.read_csv(table).filter(pl.col("x").is_not_null())
    assert not any("no value" in warning for warning in run(Job(rows, **options)).warnings)
