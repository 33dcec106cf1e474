"""Hints about tables: codes for missing values, stuck sensors, logs and places; marks in columns of words."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from coterie import Job
from coterie.jobs import PredictJob, predict

N = 200
rng = np.random.default_rng(0)
NOISE = rng.normal(size=N)


def note(frame: pl.DataFrame, words: str, **options) -> str:
    """The only note with these words; empty if there is none."""
    notes = [text for text in Job(frame, k=2, **options).run().notes if words in text]
    assert len(notes) <= 1
    return "".join(notes)


@pytest.mark.parametrize(
    "values, code, is_reported",
    [
        (20 + 60 * rng.random(N), -9999, True), (20 + 60 * rng.random(N), 999, True),
        (rng.integers(1, 6, N), 99, True), (rng.integers(1, 6, N), -9, True),
        (20 + 60 * rng.random(N), 99, False),  # an age
        (20 + 60 * rng.random(N), 1000, False),
        (rng.integers(900, 1100, N), 999, False),
    ],
)  # fmt: skip
def test_repeated_codes_far_outside_are_proposed_as_missing_values(values, code, is_reported):
    values = np.where(np.arange(N) % 20 == 3, code, values)
    frame = pl.DataFrame({"a": values, "noise": NOISE})
    text = note(frame, "codes for missing values")
    assert (
        text.startswith(f"numbers far outside of all others may be codes for missing values: {code} in a.")
        == is_reported
    )
    once = np.where(np.arange(N) == 3, code, np.where(values == code, 30, values))
    assert note(pl.DataFrame({"a": once, "noise": NOISE}), "codes for missing values") == ""


def test_a_code_that_is_the_only_negative_number_of_a_wide_column_is_proposed():
    revenue = np.exp(8 + 1.5 * NOISE)
    assert revenue.max() > 2 * 9999
    coded = np.where(np.arange(N) % 20 == 3, -9999, revenue)
    text = note(pl.DataFrame({"revenue": coded, "noise": NOISE}), "codes for missing values")
    assert text.startswith("numbers outside of all others may be codes for missing values: -9999 in revenue.")
    for values in (np.where(np.arange(N) % 20 == 4, -3, coded), np.where(coded < 0, -9, coded)):
        assert note(pl.DataFrame({"revenue": values, "noise": NOISE}), "codes for missing values") == ""


@pytest.mark.parametrize("separator", [",", ";", None])
def test_a_number_is_missing_by_request_in_a_file_a_frame_and_a_model(tmp_path, separator):
    values = np.where(np.arange(N) % 20 == 3, -9999, np.round(NOISE + 50 * (np.arange(N) % 2), 2))
    frame = pl.DataFrame({"a": values, "noise": np.round(NOISE, 2)})
    data, model = tmp_path / "t.csv", tmp_path / "m.safetensors"
    if separator is None:
        data = tmp_path / "t.parquet"
        frame.write_parquet(data)
    else:
        text = frame.write_csv(separator=separator)
        data.write_text(text.replace(".", ",") if separator == ";" else text)
    options = {"k": 2, "na_values": "-9999", "missing": "drop"}
    result = Job(str(data), model=str(model), **options).run()
    assert result.columns == ("a", "noise")
    assert result.rows_used == N - 10 == Job(frame, **options).run().rows_used
    assert (predict(PredictJob(model, data, missing="drop")).labels == result.labels).all()


def test_a_value_that_stays_in_a_continuous_column_is_reported_with_its_rows():
    stuck = np.where((np.arange(N) >= 120) & (np.arange(N) < 160), 0.5, rng.normal(size=N))
    assert "stuck (0.5 in rows 120 to 159, from 0)" in note(pl.DataFrame({"stuck": stuck, "noise": NOISE}), "a sensor")
    for name, values in {
        "counts": rng.integers(0, 3, N), "sorted": np.sort(np.maximum(NOISE, 0.5)), "noise": rng.normal(size=N),
        "scattered": np.where(rng.random(N) < 0.4, 0.0, NOISE),
    }.items():  # fmt: skip
        assert note(pl.DataFrame({name: values, "other": NOISE}), "a sensor") == "", name


def test_a_log_is_to_be_aggregated_first():
    days = [date(2024, 1, 1) + timedelta(days=i) for i in range(N)]
    log = pl.DataFrame({"customer_id": np.arange(N) % 40, "day": days, "amount": np.exp(NOISE)})
    assert note(log, "Aggregate first").startswith("customer_id has 5.0 rows per value, with day: the rows of a log")
    for numbers, name in ((np.arange(N) % 40, "Kunde"), ([f"C{i % 40:03}" for i in range(N)], "customer")):
        named = log.with_columns(pl.Series(name, numbers)).drop("customer_id")
        assert note(named, "Aggregate first").startswith(f"{name} has 5.0 rows per value, with day: the rows of a log")
    few = log.with_columns(account=pl.Series(["savings", "loan"] * (N // 2))).drop("customer_id")
    assert note(few, "Aggregate first") == ""
    assert note(log.drop("day"), "Aggregate first") == ""
    assert note(log.with_columns(customer_id=pl.arange(N, eager=True)), "Aggregate first") == ""


def test_latitudes_and_longitudes_in_degrees_get_a_hint():
    places = pl.DataFrame({"Latitude": 47 + NOISE, "lng": 8 + rng.normal(size=N)})
    assert note(places, "haversine").startswith("Latitude and lng are degrees")
    assert note(places * np.pi / 180, "haversine") == ""
    assert note(places.rename({"lng": "flat"}), "haversine") == ""


def test_columns_with_the_same_words_or_marks_have_one_message():
    answers = [[str(value) for value in rng.integers(1, 6, N)] for _ in range(15)]
    for column in answers:
        column[7] = "don't know"
    frame = pl.DataFrame({f"q{j}": column for j, column in enumerate(answers)} | {"x": NOISE, "same": 1, "equal": 2})
    result = Job(frame, k=2).run()
    (words,) = [text for text in result.warnings if "don't know" in text]
    assert words.startswith(
        "columns q0, q1, q2, q3, q4, q5, q6, q7, … were skipped as text because 15 of their 3,000 values"
    )
    assert "columns same, equal are constant and were dropped." in result.warnings
    dashes = frame.with_columns(pl.col("^q.*$").replace("don't know", "-"))
    (marks,) = [text for text in Job(dashes, k=2, missing="drop").run().notes if "missing values" in text]
    assert marks == 'read as missing values: "-" in q0, q1, q2, q3, q4, q5, q6, q7, … (15 cells).'


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx", ""])
@pytest.mark.parametrize("algorithm", ["kmeans", "mixture"])
def test_marks_are_missing_in_words_wherever_they_come_from(tmp_path, suffix, algorithm):
    city = ["Bern" if value else "none" for value in np.arange(N) % 2]
    city[3], city[50], city[90] = "-", "n/a", "N/A"
    frame = pl.DataFrame({"x": NOISE, "city": city})
    data = frame if not suffix else str(tmp_path / f"t{suffix}")
    if suffix:
        {".csv": frame.write_csv, ".parquet": frame.write_parquet, ".xlsx": frame.write_excel}[suffix](data)
    options = {"one_hot": "city"} if algorithm == "kmeans" else {}
    result = Job(data, k=2, algorithm=algorithm, missing="drop", **options).run()
    assert result.rows_used == N - 3
    assert result.categories == ("city",)
    assert any(text.startswith('read as missing values: "-" and "n/a"') for text in result.notes)
