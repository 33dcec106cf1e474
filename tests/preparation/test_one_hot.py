"""Categories are the same values however a table writes them."""

import numpy as np
import polars as pl
import pytest

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
        (["1"], ["１", "1_0", "1e999999"]),
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


def test_values_that_are_no_category_are_a_warning(tmp_path):
    pl.DataFrame({"amount": AMOUNTS, "code": CODES}).write_parquet(tmp_path / "fit.parquet")
    new = pl.DataFrame({"amount": AMOUNTS, "code": CODES}).with_columns(
        code=pl.when(pl.int_range(60) < 2).then(9).otherwise("code")
    )
    new.write_parquet(tmp_path / "new.parquet")
    run(Job(tmp_path / "fit.parquet", k=3, one_hot="code", model=tmp_path / "m.safetensors"))
    predicted = predict(PredictJob(tmp_path / "m.safetensors", tmp_path / "new.parquet"))
    assert 'column "code": 2 rows have a value that is not in the training data.' in predicted.warnings
