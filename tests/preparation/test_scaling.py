"""What makes columns comparable: NumPy's own numbers, to the last bit, wherever a block of rows ends."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from coterie.errors import InputError, ParameterError
from coterie.jobs import Job, PredictJob, predict
from coterie.preparation import scaling
from coterie.preparation.scaling import extremes, fill_rows, means, quantiles, scale_rows

SCALES = {
    "standard": lambda X: (np.nanmean(X, axis=0), np.nanstd(X, axis=0)),
    "minmax": lambda X: (np.nanmin(X, axis=0), np.nanmax(X, axis=0) - np.nanmin(X, axis=0)),
    "robust": lambda X: (np.nanmedian(X, axis=0), np.subtract(*np.nanquantile(X, [0.75, 0.25], axis=0))),
}


@pytest.fixture(params=[(1, 0.0), (2, 0.0), (5, 0.2), (33, 0.1)], ids=str)
def rows(request):
    d, holes = request.param
    rng = np.random.default_rng(d)
    X = rng.normal(size=(1003, d)) * 10.0 ** rng.uniform(-4, 4, d) + 10.0 ** rng.uniform(0, 6, d)
    X[rng.random(X.shape) < holes] = np.nan
    return X


@pytest.fixture(params=[1, 1 << 10, 1 << 13], ids="{} bytes".format)
def block(request, monkeypatch):
    monkeypatch.setattr(scaling, "BLOCK", request.param)
    monkeypatch.setattr(scaling, "COLUMNS", request.param)


@pytest.mark.parametrize("scale", SCALES)
def test_scales_are_those_of_the_whole(rows, block, scale):
    shift, spread, odd = scaling.fit_scale(rows, scale)
    expected = SCALES[scale](rows)
    np.testing.assert_array_equal(shift, expected[0])
    np.testing.assert_array_equal(spread, expected[1])
    assert len(odd) == 0


def test_float32_is_summed_as_numpy_sums_it(rows, block):
    single = rows.astype(np.float32)
    found = means(single, single.dtype)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.nanmean(single, axis=0))


def test_rows_are_scaled_and_filled_in_place(rows, block):
    shift, spread = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
    scaled, filled = rows.copy(), rows.copy()
    scale_rows(scaled, shift, spread)
    np.testing.assert_array_equal(scaled, (rows - shift) / spread)
    fill_rows(filled, shift)
    np.testing.assert_array_equal(filled, np.where(np.isnan(rows), shift, rows))


def test_extremes_and_quantiles_are_those_of_the_whole(rows, block):
    np.testing.assert_array_equal(extremes(rows), [np.nanmin(rows, axis=0), np.nanmax(rows, axis=0)])
    opposite = [-np.nanmax(rows, axis=0), -np.nanmin(rows, axis=0)]
    np.testing.assert_array_equal(extremes(rows, points=np.negative, threads=2), opposite)
    np.testing.assert_array_equal(quantiles(rows, [0.1, 0.9]), np.nanquantile(rows, [0.1, 0.9], axis=0))


def test_half_a_column_of_one_value_is_scaled_by_its_deviation(block):
    X = np.column_stack([np.r_[np.zeros(80), np.arange(20.0)], np.arange(100.0)])
    shift, spread, odd = scaling.fit_scale(X, "robust")
    assert odd.tolist() == [0]
    assert spread.tolist() == [X[:, 0].std(), 49.5]
    assert shift.tolist() == [0.0, 49.5]


ROWS = 120
STEPS = {
    "standard": {"scale": "standard"},
    "standard, weighted": {"scale": "standard", "weight": "w"},
    "robust": {"scale": "robust"},
    "robust, weighted": {"scale": "robust", "weight": "w"},
    "min-max": {"scale": "minmax"},
    "mean": {"missing": "mean"},
    "median": {"missing": "median", "weight": "w"},
    "ignored": {"missing": "ignore"},
    "categories": {"one_hot": ("sort",)},
    "automatic logarithm": {"scale": "auto"},
    "logarithm by request": {"transform": ("log:skewed",), "scale": "robust"},
    "square root": {"transform": ("sqrt:skewed",)},
    "cyclic dates": {"dates": "cyclic"},
}


def frame(exponents):
    """Rows whose numeric columns are multiplied by powers of two; dates and categories stay."""
    rng, half = np.random.default_rng(0), np.arange(ROWS) % 2
    columns = {
        "a": rng.normal(size=ROWS) + 3 * half, "skewed": np.exp(2 * rng.normal(size=ROWS) + 3 * half),
        "copy": 3.0 * half + rng.normal(size=ROWS), "gap": np.where(rng.random(ROWS) < 0.1, np.nan, half - 0.5),
    }  # fmt: skip
    columns["near"] = columns["a"] * (1 + 1e-9 * rng.normal(size=ROWS))  # a near-duplicate
    scaled = {name: np.ldexp(x, power) for (name, x), power in zip(columns.items(), exponents, strict=True)}
    days = [date(2020, 1, 1) + timedelta(days=int(day)) for day in rng.integers(0, 900, ROWS)]
    return pl.DataFrame(scaled | {"sort": ["xy"[i % 3 == 0] for i in range(ROWS)], "day": days, "w": 1 + half % 3})


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("exponents", [(1000, -900, 600, 1010, 900), (-1000, 1000, -600, -1010, 950)], ids=str)
def test_a_column_times_a_power_of_two_changes_no_label(step, exponents, recwarn):
    options = {"missing": "drop", **STEPS[step]}
    plain, scaled = (
        Job(frame(powers), k=2, options={"n_init": 2}, profiles=None, **options).run()
        for powers in ([0] * len(exponents), exponents)
    )
    np.testing.assert_array_equal(scaled.labels, plain.labels)
    assert scaled.columns == plain.columns
    for one, other in zip(scaled.clusters, plain.clusters, strict=True):
        assert [trait.column for trait in one.stands_out_by] == [trait.column for trait in other.stands_out_by]
    assert not [str(each.message) for each in recwarn if issubclass(each.category, RuntimeWarning)]


@pytest.mark.parametrize("scale", ["standard", "robust", "minmax"])
def test_a_model_of_extreme_columns_gives_the_labels_again(scale, tmp_path):
    table, model = tmp_path / "t.parquet", tmp_path / "m.safetensors"
    frame((1000, -900, 600, 1010, 900)).write_parquet(table)
    result = Job(table, k=2, scale=scale, missing="median", model=model).run()
    np.testing.assert_array_equal(predict(PredictJob(model, table)).labels, result.labels)


def test_differences_that_are_no_number_are_named():
    extreme = np.where(np.arange(40) % 2, 1.5e308, -1.5e308)
    with pytest.raises(InputError, match=r'column "a" has differences above 1.8e308: divide its values by 10'):
        Job(pl.DataFrame({"a": extreme, "b": np.arange(40.0) % 7}), k=2, scale="minmax").run()
    assert Job(pl.DataFrame({"a": extreme, "b": np.arange(40.0) % 7}), k=2, scale="standard").run().rows_used == 40


def test_a_report_cannot_draw_differences_that_are_no_number(tmp_path, recwarn):
    extreme = np.where(np.arange(40) % 2, 1.5e308, -1.5e308)
    table, report = pl.DataFrame({"a": extreme, "b": np.arange(40.0) % 7}), tmp_path / "r.html"
    with pytest.raises(ParameterError, match=r"column 'a' has differences above 1.8e308: divide its values by 10"):
        Job(table, k=2, scale="standard", report=report).run()
    assert not [str(each.message) for each in recwarn if issubclass(each.category, RuntimeWarning)]
    assert not report.exists()
