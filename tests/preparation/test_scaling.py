"""What makes columns comparable: NumPy's own numbers, to the last bit, wherever a block of rows ends."""

import numpy as np
import pytest

pytest.importorskip("polars")

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
    np.testing.assert_array_equal(quantiles(rows, [0.1, 0.9]), np.nanquantile(rows, [0.1, 0.9], axis=0))


def test_half_a_column_of_one_value_is_scaled_by_its_deviation(block):
    X = np.column_stack([np.r_[np.zeros(80), np.arange(20.0)], np.arange(100.0)])
    shift, spread, odd = scaling.fit_scale(X, "robust")
    assert odd.tolist() == [0]
    assert spread.tolist() == [X[:, 0].std(), 49.5]
    assert shift.tolist() == [0.0, 49.5]
