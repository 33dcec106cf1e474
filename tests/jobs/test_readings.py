"""Columns written for people are read as numbers, and `predict` reads them in the same way."""

from datetime import date, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest

import coterie
from coterie.data.tables.converted_table import converted
from coterie.data.tables.reader import read
from coterie.errors import InputError
from coterie.jobs import Job, PredictJob, ReportJob, predict, report, run
from coterie.preparation import PreparationOptions
from coterie.preparation.detect_readings import detect_readings
from jobs.tables import same_partition, write_lines

ROWS = 40
HALF = [i % 2 for i in range(ROWS)]  # of two clusters
MONEY = [f'"${1000 + 20 * (i * 7 % 40) + 4000 * half:,}.35"' for i, half in enumerate(HALF)]
DAYS = [date(2024, 1, 1) + timedelta(days=i + 90 * half) for i, half in enumerate(HALF)]
SHARE = [f"{20 + 50 * half + i * 11 % 40 / 2}%" for i, half in enumerate(HALF)]
YES = ["yes" if half else "No" for half in HALF]


def table(folder, name="table.csv", **columns):
    lines = [",".join(cells) for cells in zip(*columns.values(), strict=True)]
    return write_lines(folder, ",".join(columns), *lines, name=name)


@pytest.fixture
def people(tmp_path):
    """A table in which no column is a plain number."""
    return table(tmp_path, money=MONEY, share=SHARE, member=YES, since=[f"{day:%d.%m.%Y}" for day in DAYS])


def test_amounts_shares_truth_values_and_dates_are_used_with_a_note(people):
    result = run(Job(people, k=2))
    assert result.columns == ("money", "share", "member", "since")
    assert same_partition(result.labels, HALF)
    notes = " ".join(result.notes)
    assert 'read as numbers: money ("$1,000.35" is 1000.35), share ("20.0%" is 20).' in notes
    assert 'read as 0 and 1: member ("yes" is 1).' in notes
    assert "dates are read as age in days: since (before 2024-05-09)" in notes
    means = {cluster.rows: cluster.means for cluster in result.clusters}[20]
    assert 900 < means["money"] < 6000


def test_the_values_are_those_of_plain_numbers(people, tmp_path):
    latest = max(DAYS)
    plain = table(
        tmp_path, "plain.csv", money=[cell.strip('"').replace("$", "").replace(",", "") for cell in MONEY],
        share=[cell.removesuffix("%") for cell in SHARE], member=[str(half) for half in HALF],
        since=[str((latest - day).days) for day in DAYS],
    )  # fmt: skip
    written, expected = run(Job(people, k=2)), run(Job(plain, k=2))
    assert written.scores == expected.scores
    assert [one.means for one in written.clusters] == [one.means for one in expected.clusters]


@pytest.mark.parametrize("batch_rows", [None, 7])
def test_predict_reads_a_new_file_like_the_fit(people, tmp_path, batch_rows):
    model = tmp_path / "m.safetensors"
    fitted = run(Job(people, k=2, model=model, batch_rows=batch_rows))
    assert predict(PredictJob(model, people, batch_rows=batch_rows)).labels.tolist() == fitted.labels.tolist()
    lines = ["money,share,member,since", "5020,71.5%,Y,15.07.2024", "$1.020,22%,N,15.01.2024"]
    new = write_lines(tmp_path, lines[0], lines[1], '"$1,020",22%,N,15.01.2024', name="new.csv")
    labels = predict(PredictJob(model, new, batch_rows=batch_rows)).labels
    assert labels.tolist() == [fitted.labels[1], fitted.labels[0]]


def test_one_row_alone_is_read_by_the_rule_of_the_fit_not_by_its_own(tmp_path):
    path = table(tmp_path, x=[f'"{1 + i}.{200 + i},5"' for i in range(20)], y=[str(i % 3) for i in range(20)])
    model = tmp_path / "m.safetensors"
    run(Job(path, k=2, model=model))
    new = write_lines(tmp_path, "x,y", "20.219,1", name="new.csv")
    assert predict(PredictJob(model, new)).labels.tolist() == [predict(PredictJob(model, path)).labels[-1]]


def test_a_cell_that_does_not_fit_is_named_by_line_and_column(people, tmp_path):
    model = tmp_path / "m.safetensors"
    run(Job(people, k=2, model=model))
    head = "money,share,member,since"
    for row, column, value, kind in [
        ("$5,71%,yes,2024-07-15", "since", "2024-07-15", "dates"),
        ("$5,71%,maybe,15.07.2024", "member", "maybe", "0 and 1"),
        ("much,71%,yes,15.07.2024", "money", "much", "numbers"),
    ]:  # fmt: skip
        new = write_lines(tmp_path, head, "$5,71%,yes,15.07.2024", row, name="new.csv")
        with pytest.raises(InputError, match=rf'new.csv, line 3: column "{column}" has the value "{value}".* {kind} '):
            predict(PredictJob(model, new))
    with pytest.raises(InputError, match='no column "money"'):
        predict(PredictJob(model, write_lines(tmp_path, "x", "1", name="new.csv")))


def test_the_saved_model_takes_the_frame_as_it_is_in_python(people, tmp_path):
    model = tmp_path / "m.safetensors"
    fitted = run(Job(people, k=2, model=model))
    pipeline = coterie.load(model)
    frame = pl.read_csv(people, infer_schema=False)
    assert pipeline[0].feature_names_in_.tolist() == frame.columns
    for each in (frame, frame.to_pandas()):
        assert pipeline.predict(each).tolist() == fitted.labels.tolist()
    with pytest.raises(InputError, match="'much' in row 0"):
        pipeline.predict(frame.with_columns(money=pl.lit("much")))


def test_an_object_column_of_pandas_is_read_like_the_cells_of_a_file(tmp_path):
    values = [float(i + 90 * half) for i, half in enumerate(HALF)]
    cells = ["n/a" if i == 3 else None if i == 5 else value for i, value in enumerate(values)]
    frame = pd.DataFrame({"mixed": pd.Series(cells, dtype=object), "x": [i % 7 for i in range(ROWS)]})
    model = tmp_path / "m.safetensors"
    frame.to_csv(tmp_path / "t.csv", index=False, na_rep="")
    from_frame, from_file = (
        Job(data, k=2, missing="drop", model=model, force=True).run() for data in (frame, tmp_path / "t.csv")
    )
    assert from_frame.columns == from_file.columns == ("mixed", "x")
    assert from_frame.labels.tolist() == from_file.labels.tolist()
    assert coterie.load(model).predict(frame.drop([3, 5])).tolist() == [n for n in from_frame.labels if n >= 0]
    with pytest.raises(InputError, match="cannot read the column 'mixed'"):
        Job(frame.assign(mixed=[{"a": 1}, [2], *cells[2:]]), k=2).run()


def test_the_stored_form_is_plain_and_round_trips(people, tmp_path):
    model = tmp_path / "m.safetensors"
    run(Job(people, k=2, model=model))
    reader = coterie.load(model)[0]
    assert reader.names == ["money", "share", "member", "since"]
    assert reader.readings["money"] == {
        "column": "money", "kind": "number", "decimal": ".", "unit": "$", "missing": [], "example": "$1,000.35",
    }  # fmt: skip
    assert reader.readings["since"]["format"] == "%d.%m.%Y"
    assert reader.readings["since"]["reference"] == "2024-05-09T00:00:00"


def test_marks_are_missing_values_with_a_note(tmp_path):
    cells = [str(3 * i) for i in range(ROWS)]
    cells[3], cells[9], cells[20] = "?", "n/a?", "#REF!"
    path = table(tmp_path, x=cells, y=[str(half) for half in HALF])
    result = run(Job(path, k=2, missing="drop"))
    assert (result.columns, result.rows_used) == (("x", "y"), ROWS - 3)
    assert 'read as missing values: "?" and "n/a?" and "#REF!" in x (3 cells).' in result.notes
    cells[5] = "tbd"
    path = table(tmp_path, x=cells, y=[str(half) for half in HALF])
    assert run(Job(path, k=2, missing="drop")).columns == ("y",)
    model = tmp_path / "m.safetensors"
    assert run(Job(path, k=2, missing="drop", na_values=("TBD",), model=model)).rows_used == ROWS - 4
    assert predict(PredictJob(model, path, missing="drop")).rows_used == ROWS - 4


@pytest.mark.parametrize("mark", ["(blank)", "", "n/a"])
def test_a_column_whose_first_cell_is_missing_and_whose_others_are_plain_numbers_is_used(tmp_path, mark):
    path = table(tmp_path, x=[mark, "-60", "5", "7"], y=["a", "b", "c", "d"])
    for dates in ("age", "cyclic"):
        assert run(Job(path, k=2, columns=("x",), missing="drop", dates=dates)).rows_used == 3


def test_the_whole_column_decides_about_three_digits_after_a_separator(tmp_path):
    grouped = [f"{1 + i}.{100 + i}" for i in range(60)] + [str(i) for i in range(500, 520)]
    plain = [str(float(i % 2)) for i in range(80)]
    whole = [str(i % 2) for i in range(80)]
    for cells, others, options, mean in [
        (grouped, whole, {}, 26_000), (grouped, plain, {}, 150),  # points are not both in one table
        ([f"{1 + i}.{100 + i}" for i in range(80)], plain, {}, None),
        ([f"{1 + i}.{100 + i}" for i in range(80)], plain, {"decimal": "comma"}, 40_000),
        ([f"{1 + i}.{100 + i}" for i in range(80)], [f'"{i % 2},5"' for i in range(80)], {}, 40_000),
    ]:  # fmt: skip
        result = run(Job(table(tmp_path, x=cells, y=others), k=1, columns=("x", "y"), **options))
        value = result.clusters[0].means["x"]
        assert value == pytest.approx(41 if mean is None else mean, rel=0.2), (cells[0], others[0], options)
    doubtful = run(Job(table(tmp_path, x=[f"{1 + i}.{100 + i}" for i in range(80)]), k=2))
    assert any('column "x": "1.100" is read as 1.1; --decimal comma' in note for note in doubtful.notes)


def test_dates_of_many_forms(tmp_path):
    forms = [
        "%Y-%m-%d",
        "%d.%m.%Y",
        "%m/%d/%Y",
        "%d %b %Y",
        "%Y-%m-%dT%H:%M:%SZ",
        "%b %d %Y",
        "%d-%b-%y",
        "%d/%m/%Y %H:%M",
    ]
    ages = [float((max(DAYS) - day).days) for day in DAYS]
    for form in forms:
        path = table(tmp_path, day=[day.strftime(form) for day in DAYS])
        read_table = read(path)
        readings = detect_readings(read_table, PreparationOptions(), ["day"], ["number", "date"]).readings
        assert converted(read_table, readings).column("day").to_list() == ages, form


def test_cyclic_parts_of_dates_by_request(tmp_path):
    path = table(tmp_path, day=[str(day) for day in DAYS], y=[str(half) for half in HALF])
    model = tmp_path / "m.safetensors"
    cyclic = run(Job(path, k=2, dates="cyclic", model=model))
    assert cyclic.columns == ("day", "day_year_sin", "day_year_cos", "day_week_sin", "day_week_cos", "y")
    assert predict(PredictJob(model, path)).labels.tolist() == cyclic.labels.tolist()
    assert run(Job(path, k=2, dates="cyclic", exclude=("day",))).columns == ("y",)
    assert run(Job(path, k=2, dates="skip")).columns == ("y",)


def test_day_and_month_are_told_apart_by_the_column_and_otherwise_noted(tmp_path):
    early = [f"{1 + i % 9:02}/{1 + i % 11:02}/2024" for i in range(ROWS)]
    result = run(Job(table(tmp_path, day=early, y=[str(half) for half in HALF]), k=2))
    assert any('column "day": "01/01/2024" is read with the month first' in note for note in result.notes)


def test_types_of_a_file_are_used_as_they_are(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"day": DAYS, "flag": [bool(half) for half in HALF], "x": 2.5 * np.arange(ROWS)}).write_parquet(path)
    model = tmp_path / "m.safetensors"
    fitted = run(Job(path, k=2, model=model))
    assert fitted.columns == ("day", "flag", "x")
    assert predict(PredictJob(model, path)).labels.tolist() == fitted.labels.tolist()


def test_amounts_in_several_currencies_are_skipped_with_the_reason(tmp_path):
    path = table(
        tmp_path, x=[f"{'$' if half else '€'}{i}" for i, half in enumerate(HALF)], y=[str(3 * i) for i in range(ROWS)]
    )
    result = run(Job(path, k=2))
    assert ("x", "amounts in several units") in [(one.name, one.reason) for one in result.skipped]


def test_a_mixture_reads_amounts_and_leaves_words_to_their_family(people):
    result = run(Job(people, k=2, algorithm="mixture"))
    assert (result.columns, result.categories) == (("money", "share", "since"), ("member",))


def test_the_report_of_a_model_reads_like_the_fit_and_its_code_gives_the_labels(people, tmp_path):
    model, page = tmp_path / "m.safetensors", tmp_path / "r.html"
    fitted = run(Job(people, k=2, model=model, report=page))
    assert report(ReportJob(people, model=model, output=tmp_path / "m.html")).labels.tolist() == fitted.labels.tolist()


@pytest.mark.parametrize("unit, fits", [("kg", True), ("", True), ("g", False), ("%", False)])
def test_a_model_of_amounts_reads_only_their_unit(tmp_path, unit, fits):
    numbers = [30.41 + i % 7 + 40 * (i % 2) for i in range(40)]
    fitted = run(Job(table(tmp_path, x=[f"{n:.2f} kg" for n in numbers]), k=2, model=tmp_path / "m.safetensors"))
    new = PredictJob(tmp_path / "m.safetensors", table(tmp_path, x=[f"{n:.2f} {unit}".strip() for n in numbers]))
    if fits:
        assert (predict(new).labels == fitted.labels).all()
    else:
        with pytest.raises(InputError, match=r'line 2: column "x" has .*30.41'):
            predict(new)
