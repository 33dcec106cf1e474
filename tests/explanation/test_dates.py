"""Rules about dates: conditions are dates, and they are counted as they are printed."""

import json
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from coterie import Job, explain
from coterie.cli import main
from coterie.explanation.rules import DAY, Condition, as_date, as_microseconds, calendar_threshold


def orders(n=120):
    """Days of two groups: in late 2024, and in 2023."""
    rng = np.random.default_rng(0)
    is_late = np.arange(n) % 2 == 0
    ages = np.where(is_late, rng.integers(0, 150, n), rng.integers(400, 700, n))
    return pd.Timestamp("2024-12-30") - pd.to_timedelta(ages, unit="D"), is_late


@pytest.mark.parametrize("form", ["pandas", "zone", "polars", "date"])
def test_bounds_of_dates_are_dates_of_the_table(form):
    days, is_late = orders()
    x = np.random.default_rng(1).normal(size=len(days))
    frame = pd.DataFrame({"ordered": days.tz_localize("UTC") if form == "zone" else days, "x": x})
    if form in ("polars", "date"):
        frame = pl.from_pandas(frame)
        frame = frame.with_columns(pl.col("ordered").cast(pl.Date)) if form == "date" else frame
    result = explain(is_late.astype(int), frame)
    (condition,) = result[1].conditions
    assert condition == Condition("ordered", lower=date(2023, 12, 31))
    assert (days > pd.Timestamp(condition.lower)).sum() == result[1].fitting == result[1].correct == is_late.sum()
    assert result[1].text == "ordered > 2023-12-31"
    assert result.to_dict()["rules"][0]["conditions"][0]["upper"] == "2023-12-31"
    assert "ordered ≤ 2023-12-31" in result.tree


def test_times_are_shown_if_there_are_any():
    days, is_late = orders()
    frame = pd.DataFrame({"ordered": days + pd.Timedelta("10h")})
    frame.loc[1, "ordered"] = pd.NaT
    result = explain(is_late.astype(int), frame)
    (condition,) = result[0].conditions
    assert isinstance(condition.upper, datetime)
    assert result[0].text.endswith("00:00")
    assert result[0].fitting == (~is_late).sum() - 1, "a missing date satisfies no condition"


def test_a_threshold_separates_two_dates_and_is_as_round_as_possible():
    rng = np.random.default_rng(0)
    for scale in (1e3, 1e7, 1e10, 1e12, 1e15):
        low, high = np.sort(rng.uniform(-2, 4, (200, 2)) * scale, axis=1).round().T
        for pair in zip(low[low < high], high[low < high], strict=True):
            value = calendar_threshold(*pair)
            assert pair[0] <= value < pair[1]
            assert as_microseconds(as_date(value, with_time=True)) == value
    day = lambda *parts: as_microseconds(datetime(*parts, tzinfo=UTC).replace(tzinfo=None))  # noqa: E731
    assert calendar_threshold(day(2023, 5, 2), day(2024, 5, 2)) == day(2023, 12, 31)
    assert calendar_threshold(day(2024, 1, 15), day(2024, 3, 1)) == day(2024, 2, 29)
    assert calendar_threshold(day(2024, 1, 15), day(2024, 1, 20)) == day(2024, 1, 19)
    assert calendar_threshold(day(2024, 1, 15) + 5, day(2024, 1, 15) + DAY // 2) == day(2024, 1, 15, 11)
    assert calendar_threshold(day(9999, 12, 30), day(9999, 12, 31, 23)) == day(9999, 12, 31)  # "without an end"
    assert calendar_threshold(day(1, 1, 1), day(1, 1, 3)) == day(1, 1, 1)


def test_dates_of_a_file_are_dates_in_rules_profiles_names_and_warnings(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    days, is_late = orders()
    x = np.random.default_rng(1).normal(size=len(days)).round(2)
    pd.DataFrame({"ordered": days.strftime("%d.%m.%Y"), "x": x}).to_csv("orders.csv", index=False)
    options = ["fit", "orders.csv", "-k", "2", "--names", "auto", "--profiles", "p.csv", "--model", "m.safetensors"]
    assert main([*options, "--report", "r.html", "--json"]) == 0
    clusters = {one["name"]: one for one in json.loads(capsys.readouterr().out)["clusters"]}
    assert set(clusters) == {"late ordered", "early ordered"}
    late = clusters["late ordered"]
    assert late["rule"]["text"] == "ordered > 2023-12-31"
    assert late["rule"]["correct"] == late["rows"] == is_late.sum()
    assert late["stands_out_by"]["ordered"] > 0.5
    profiles = pd.read_csv("p.csv").set_index("name")
    assert profiles.loc["late ordered", "ordered median"] == str(days[is_late].to_series().median().date())
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "age of ordered (days)" in page
    assert profiles.loc["late ordered", "ordered mean"] in page
    pd.DataFrame({"ordered": (days - pd.Timedelta("2000D")).strftime("%d.%m.%Y"), "x": x}).to_csv(
        "old.csv", index=False
    )
    assert main(["predict", "m.safetensors", "old.csv", "-o", "out.csv"]) == 0
    assert f"its median is {(days - pd.Timedelta('2000D')).to_series().median().date()}" in capsys.readouterr().err


def test_a_cluster_without_dates_has_no_mean_date():
    days, is_late = orders()
    text = pl.Series("ordered", days.strftime("%Y-%m-%d"))
    table = pl.DataFrame({"ordered": text, "x": np.where(is_late, 100.0, 0.0)})
    table = table.with_columns(pl.when(pl.col("x") == 0).then("ordered"))
    result = Job(table, k=2, missing="ignore").run()
    assert [trait.date for one in result.clusters for trait in one.stands_out_by if trait.column == "ordered"] == []
