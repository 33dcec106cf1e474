"""Synthetic demo tables: the same every time, and with the documented clusters."""

import os

import numpy as np
import polars as pl
import pytest

from coterie import KMeans, TimeSeriesKMeans
from coterie.datasets import demo_file, load_demo, write_demo
from coterie.datasets.demo_tables import SYNTHETIC, customers
from coterie.errors import ParameterError
from coterie.metrics import adjusted_rand_score


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_table_is_the_same_every_time_and_reads_back_from_either_kind_of_file(tmp_path, name):
    table = load_demo(name)
    for suffix in (".csv", ".parquet"):
        one, other = (write_demo(name, tmp_path / f"{place}{suffix}") for place in ("one", "other"))
        assert one.read_bytes() == other.read_bytes()
        read = pl.read_csv(one) if suffix == ".csv" else pl.read_parquet(one)
        assert tuple(read.columns) == table.columns
        for column in table.columns:
            back = (
                read[column].fill_null(np.nan).to_numpy()
                if table[column].dtype.kind == "f"
                else read[column].to_numpy()
            )
            np.testing.assert_array_equal(back.astype(table[column].dtype), table[column])


def test_customers_have_five_clusters_and_an_imprecise_segment():
    columns, groups = customers()
    assert len(groups) == 12_000
    assert [values.dtype.kind for values in columns.values()] == list("iUUifffif")
    assert len(np.unique(columns["customer_id"])) == 12_000
    X = np.column_stack(
        [values for name, values in columns.items() if values.dtype.kind in "if" and name != "customer_id"]
    )
    assert (X >= 0).all()
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    found = KMeans(5, n_init=5, random_state=0).fit(scaled).labels_
    assert adjusted_rand_score(groups, found) > 0.98
    assert 0.4 < adjusted_rand_score(columns["segment"], found) < 0.9


def test_blobs_are_six_and_float32():
    columns, groups = SYNTHETIC["blobs"]()
    X = np.column_stack(list(columns.values()))
    assert X.dtype == np.float32
    assert adjusted_rand_score(groups, KMeans(6, n_init=5, random_state=0).fit(X).labels_) > 0.98


def test_moons_are_not_found_by_centers():
    columns, groups = SYNTHETIC["moons"]()
    X = np.column_stack([columns["x"], columns["y"]])
    assert adjusted_rand_score(groups, KMeans(2, n_init=5, random_state=0).fit(X).labels_) < 0.6


def test_shapes_are_found_by_dtw_and_not_by_euclidean_distances():
    columns, groups = SYNTHETIC["series"]()
    X = np.column_stack([values for name, values in columns.items() if name != "course"])
    ends = np.isnan(X)
    assert (ends == np.logical_and.accumulate(ends[:, ::-1], axis=1)[:, ::-1]).all()
    warped = TimeSeriesKMeans(3, random_state=0).fit([row[~np.isnan(row)] for row in X]).labels_
    plain = KMeans(3, n_init=5, random_state=0).fit(np.nan_to_num(X)).labels_
    assert adjusted_rand_score(groups, warped) > 0.7 > 0.5 > adjusted_rand_score(groups, plain)


def test_default_file_names_have_the_right_suffix():
    assert {name: str(demo_file(name)) for name in ("penguins", *SYNTHETIC)} == {
        "penguins": "penguins.csv",
        "customers": "customers.csv",
        "blobs": "blobs.parquet",
        "moons": "moons.csv",
        "series": "series.parquet",
    }


def test_an_empty_field_of_penguins_is_missing_in_parquet(tmp_path):
    read = pl.read_parquet(write_demo("penguins", tmp_path / "p.parquet"))
    assert read["sex"].null_count() == 11
    assert read["bill_length_mm"].null_count() == 2


def test_no_incomplete_table_is_left_when_writing_fails(tmp_path, monkeypatch):
    (tmp_path / "moons.csv").write_text("mine")

    def full(handle):
        raise OSError(28, "No space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_demo("moons", tmp_path / "moons.csv", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["moons.csv"]
    assert (tmp_path / "moons.csv").read_text() == "mine"


def test_another_file_type_is_an_error(tmp_path):
    with pytest.raises(ParameterError, match=r"must end in .csv or .parquet"):
        write_demo("moons", tmp_path / "moons.npy")
