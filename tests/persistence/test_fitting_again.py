"""A model that was loaded can be fitted again, as a whole, and then equals a new one."""

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import coterie
from coterie.jobs import Job, run
from persistence.fitted import UNFITTED, fitted
from persistence.test_round_trip import round_trip, same

STEPS = [name for name in UNFITTED if hasattr(UNFITTED[name][0], "steps")]
RNG = np.random.default_rng(3)
COLUMNS = {"age": RNG.normal(40, 9, 120), "visits": RNG.gamma(2, 3, 120), "spend": RNG.lognormal(3, 1, 120)}
FRAME = pl.DataFrame(COLUMNS)
AMOUNTS = FRAME.with_columns(pl.format("${}", pl.col("spend").round(2)).alias("spend"))
WITH_MISSING = FRAME.with_columns(pl.when(pl.int_range(120) % 7 != 0).then("age").alias("age"))
JOBS = {
    "standard": (FRAME, {"scale": "standard"}),
    "minmax": (FRAME, {"scale": "minmax"}),
    "robust": (FRAME, {"scale": "robust"}),
    "none": (FRAME, {"scale": "none"}),
    "amounts": (AMOUNTS, {}),
    "transform": (FRAME, {"transform": ("log:spend",)}),
    "median": (WITH_MISSING, {"missing": "median"}),
    "gmm": (FRAME, {"algorithm": "gmm"}),
    "ward": (FRAME, {"algorithm": "ward"}),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_loaded_pipeline_is_fitted_again_as_a_new_one(name, tmp_path):
    model, rows = fitted(name)
    assert same(round_trip(model, tmp_path).fit(rows), clone(model).fit(rows))


@pytest.mark.parametrize("name", JOBS)
def test_the_model_of_a_job_is_fitted_again_as_a_new_one(name, tmp_path):
    table, options = JOBS[name]
    path = tmp_path / "m.safetensors"
    run(Job(table, k=3, model=path, names=("a", "b", "c"), **options))
    loaded = coterie.load(path)
    other = table.reverse().head(90)
    assert same(loaded.fit(other), clone(loaded).fit(other))


def test_scalers_know_the_range_and_the_number_of_rows(tmp_path):
    path = tmp_path / "m.safetensors"
    run(Job(FRAME, k=3, scale="minmax", model=path))
    scaler = coterie.load(path)[0]
    assert scaler.n_samples_seen_ == 120
    np.testing.assert_allclose(scaler.data_max_, FRAME.max().row(0))
