"""Distances between series that other libraries printed, and tables of theirs."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.distances import dtw, pairwise, soft_dtw
from reference.shared_data import FOLDER, published, read_index

RECORDS = range(4)
WINDOWS = {"full": None, "sakoe_chiba_radius_0": 0, "sakoe_chiba_radius_3": 3, "sakoe_chiba_radius_10": 10}


def load(name):
    """The series of that name, one a row; shorter ones end in NaN."""
    return np.genfromtxt(FOLDER / f"{name}.csv.gz", delimiter=",", skip_header=1)


@pytest.fixture(params=RECORDS)
def record(request):
    return read_index("refs/dtw_reference_public.json")["records"][request.param]


def test_two_series_of_dtaidistance():
    case = published("dtaidistance.basic")["value"]
    assert dtw(case["s1"], case["s2"]) == pytest.approx(case["dtw"], abs=1e-9)
    assert dtw(case["s1"], case["s2"], cost="absolute") == case["dtw_abs_cost"]


def test_the_table_of_tslearn():
    found = pairwise([[1, 2, 2, 3], [1, 2, 3, 4]], [[1, 2, 3], [2, 3, 4, 5]], metric="dtw")
    np.testing.assert_allclose(found, published("tslearn.dtw")["value"]["cdist"], atol=1e-8)
    assert dtw([1, 2, 3], [1, 2, 2, 3, 4]) == 1.0


def test_tables_of_two_libraries_that_agree(record):
    X = load(record["dataset"])[record["rows_0based"]]
    for name, window in WINDOWS.items():
        if name in record:
            np.testing.assert_allclose(pairwise(X, metric="dtw", window=window), record[name], rtol=1e-9, atol=1e-9)


def test_soft_values_of_tslearn(record):
    x, y = load(record["dataset"])[record["rows_0based"][:2]]
    assert soft_dtw(x, y, gamma=1.0) == pytest.approx(record["soft_dtw_gamma1_rows0_1"], rel=1e-9)
