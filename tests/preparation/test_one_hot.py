"""Categories are the same values however a table writes them."""

import numpy as np
import polars as pl
import pytest

from coterie import load
from coterie.errors import InputError
from coterie.jobs import Job, PredictJob, predict, run
from coterie.preparation.one_hot import categories_of, one_hot

CODES = np.arange(60) % 3
AMOUNTS = np.where(np.arange(60) % 2, 50.0, 0.0) + np.random.default_rng(0).random(60)


@pytest.mark.parametrize(
    "fitted, new",
    [
        (["1", "2", "10"], [1.0, 2.0, 10.0]),
        ([1, 2, 10], ["1.0", "2.00", "1e1"]),
        ([1.5, 2.0, -3.0], ["1.5", "2", "-3"]),
        ([2.0, 1.0, 10.0], [2, 1, 10]),
        ([True, False], ["True", "FALSE"]),
        ([True, False], [1, 0]),
        ([1, 0], ["true", "false"]),
        (["a", "b"], [" a", "b "]),
        ([10**17 + 1, 10**17], [str(10**17 + 1), str(10**17)]),
        ([10**16, 15], [1e16, 15.0]),
        ([0.1 + 0.2, 1e-7], ["0.30000000000000004", "1e-07"]),
    ],
)
def test_a_value_has_its_category_however_it_is_written(fitted, new):
    fitted, new = pl.Series(fitted), pl.Series(new)
    categories = categories_of(fitted)
    assert (one_hot(fitted, categories) == one_hot(new, categories)).all()
    assert one_hot(new, categories).any(axis=1).all()


@pytest.mark.parametrize(
    "fitted, new",
    [
        (["007", "7x"], ["7", "07"]),  # codes with leading zeros are no numbers
        (["1", "1.0"], ["1.00"]),  # two categories have this value
        (["1", "true"], ["True"]),
        (["a", "b"], ["A", "a b"]),
        (["inf", "nan"], ["Inf", "NaN", "infinity"]),
        ([str(10**17)], [str(10**17 + 1)]),  # equal in float64
        (["1"], ["１", "1_0", "1e999999", "+1", "1.", "01", "10e-1"]),
        (["a"], ["\u2003a", None]),
    ],
)
def test_other_values_have_none(fitted, new):
    assert not one_hot(pl.Series(new), categories_of(pl.Series(fitted))).any()


def test_a_category_that_is_written_both_ways_stays_two():
    texts = pl.Series(["1", "1.0", None])
    assert one_hot(texts, ("1", "1.0")).tolist() == [[True, False], [False, True], [False, False]]


@pytest.mark.parametrize("new", [CODES.astype(float), CODES.astype(str)], ids=["floats", "text"])
def test_predictions_do_not_depend_on_the_type_of_a_categorical_column(tmp_path, new):
    pl.DataFrame({"amount": AMOUNTS, "code": CODES}).write_parquet(tmp_path / "fit.parquet")
    pl.DataFrame({"amount": AMOUNTS, "code": new}).write_parquet(tmp_path / "new.parquet")
    fitted = run(Job(tmp_path / "fit.parquet", k=3, one_hot="code", model=tmp_path / "m.safetensors"))
    predicted = predict(PredictJob(tmp_path / "m.safetensors", tmp_path / "new.parquet"))
    assert (predicted.labels == fitted.labels).all()
    assert predicted.warnings == ()


def code_tables(folder):
    """A table with codes and words as CSV, and the same table as Parquet."""
    frame = pl.DataFrame({
        "amount": AMOUNTS,
        "zip": [["02115", "10001", "00501"][i] for i in CODES],
        "code": [["1", "2", "10"][i] for i in CODES],
        "paid": [["yes", "no", "yes"][i] for i in CODES], "price": [["1.00", "2.00", "2.50"][i] for i in CODES],
        "month": [f"{1 + i % 12:02}" for i in range(60)],
    })  # fmt: skip
    frame.write_csv(folder / "table.csv")
    frame.write_parquet(folder / "table.parquet")
    return folder / "table.csv", folder / "table.parquet"


@pytest.mark.parametrize("named", [{}, {"columns": "amount,zip,code,paid,price"}])
def test_a_column_of_categories_keeps_its_text(tmp_path, named):
    rules = []
    for path in code_tables(tmp_path):
        fitted = run(
            Job(path, k=3, one_hot="zip,code,paid,price", model=tmp_path / "m.safetensors", force=True, **named)
        )
        means = fitted.clusters[0].means
        assert {"zip=02115", "code=1", "code=10", "paid=yes", "price=1.00"} <= set(means)
        rules.append([cluster.rule for cluster in fitted.clusters])
        for other in code_tables(tmp_path):
            assert (predict(PredictJob(tmp_path / "m.safetensors", other)).labels == fitted.labels).all()
    assert rules[0] == rules[1]


def test_numbers_with_leading_zeros_are_text_unless_they_are_asked_for(tmp_path):
    for path in code_tables(tmp_path):
        result = run(Job(path, k=3))
        skipped = {column.name: column.reason for column in result.skipped}
        assert result.columns == ("amount", "code", "paid", "price")
        assert skipped["month"] == "codes with leading zeros"
        assert "skipped as codes with leading zeros: month (to use it: --one-hot month)." in result.notes
        assert "month" in run(Job(path, k=3, include="month")).columns
        mixture = run(Job(path, k=3, algorithm="mixture", columns="amount,month"))
        assert mixture.categories == ("month",)


def test_a_code_with_a_leading_zero_in_any_batch_makes_a_column_text(tmp_path):
    rows = [f"{i % 2 * 50 + i % 7},{i % 3}" for i in range(60)]
    path = tmp_path / "table.csv"
    path.write_text("amount,code\n" + "\n".join([*rows, "5,007", "1.5,1"]) + "\n")
    for batch_rows in (None, 7):
        result = run(Job(path, k=2, batch_rows=batch_rows))
        assert (result.columns, [column.name for column in result.skipped]) == (("amount",), ["code"])


def test_codes_of_a_mixture_stay_text_in_a_file_of_whole_numbers(tmp_path):
    frame = pl.DataFrame({"amount": AMOUNTS, "depot": [["02115", "10001", "20002"][i] for i in CODES]})
    frame.write_csv(tmp_path / "fit.csv")
    frame.filter(pl.col("depot") != "02115").write_csv(tmp_path / "new.csv")
    fitted = run(Job(tmp_path / "fit.csv", k=2, algorithm="mixture", model=tmp_path / "m.safetensors"))
    assert fitted.categories == ("depot",)
    predicted = predict(PredictJob(tmp_path / "m.safetensors", tmp_path / "new.csv"))
    assert (predicted.labels == fitted.labels[CODES != 0]).all()


def test_a_missing_number_is_no_category(tmp_path):
    frame = pl.DataFrame({"amount": AMOUNTS, "code": np.where(np.arange(60) % 5, CODES, np.nan)})
    frame.write_parquet(tmp_path / "table.parquet")
    job = Job(tmp_path / "table.parquet", k=3, one_hot="code", missing="drop", model=tmp_path / "m.safetensors")
    assert run(job).rows_used == 48
    with pytest.raises(InputError, match=r"no value in row 0 \(from 0\) of column 'code', and the model was fitted to"):
        load(tmp_path / "m.safetensors").predict(frame)


def test_values_that_are_no_category_are_a_warning(tmp_path):
    pl.DataFrame({"amount": AMOUNTS, "code": CODES}).write_parquet(tmp_path / "fit.parquet")
    new = pl.DataFrame({"amount": AMOUNTS, "code": CODES}).with_columns(
        code=pl.when(pl.int_range(60) < 2).then(9).otherwise("code")
    )
    new.write_parquet(tmp_path / "new.parquet")
    run(Job(tmp_path / "fit.parquet", k=3, one_hot="code", model=tmp_path / "m.safetensors"))
    predicted = predict(PredictJob(tmp_path / "m.safetensors", tmp_path / "new.parquet"))
    assert 'column "code": 2 rows have a value that is not in the training data.' in predicted.warnings
