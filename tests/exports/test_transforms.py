"""Logarithms and square roots of columns, before missing values are filled and columns are scaled."""

import numpy as np
import polars as pl
import pytest

from coterie.exports.prediction_rule import NearestCenter, Number, PredictionRule
from fuzz.exported import WITH_POSTGRESQL

CENTERS = np.array([[-1.0, 0.5, 0.2], [0.3, -0.4, 1.1], [1.0, 1.0, -0.5]])
FILLS = (0.5, 1.5, 2.5)
FUNCTIONS = {"log": np.log, "log1p": np.log1p, "sqrt": np.sqrt}


def rule(missing):
    fills = FILLS if missing == "fill" else (None, None, None)
    numbers = tuple(
        Number(name, shift=1.0, spread=0.7, fill=fill, transform=name)
        for name, fill in zip(FUNCTIONS, fills, strict=True)
    )
    return PredictionRule("KMeans", numbers, (), missing, NearestCenter("squares", CENTERS))


def expected(frame, missing):
    """Labels by NumPy; None for rows without a cluster."""
    with np.errstate(all="ignore"):
        X = np.column_stack([FUNCTIONS[name](frame[name].to_numpy()) for name in FUNCTIONS])
    is_missing = np.column_stack([frame[name].is_null().to_numpy() for name in FUNCTIONS])
    has_cluster = (np.isfinite(X) | is_missing).all(axis=1)
    has_cluster &= ~is_missing.all(axis=1) if missing == "ignore" else missing == "fill" or ~is_missing.any(axis=1)
    X = np.where(is_missing, FILLS, X) if missing == "fill" else X
    squares = (((X - 1.0) / 0.7)[:, None] - CENTERS) ** 2
    labels = np.nansum(squares, axis=2).argmin(axis=1).tolist()
    return [label if valid else None for label, valid in zip(labels, has_cluster.tolist(), strict=True)]


@pytest.mark.parametrize("missing", ["none", "fill", "ignore"])
def test_values_without_a_logarithm_or_root_have_no_cluster(missing):
    rng = np.random.default_rng(0)
    columns = {name: rng.uniform(-1.2, 9.0, 500) for name in FUNCTIONS}
    for name, values in columns.items():
        values[:20] = {"log": 0.0, "log1p": -1.0, "sqrt": 0.0}[name]
        values[rng.random(500) < 0.15] = np.nan
    frame = pl.DataFrame(columns).fill_nan(None)
    labels = expected(frame, missing)
    assert {None, 0, 1, 2} == set(labels)
    for engine, labels_of in WITH_POSTGRESQL.items():
        assert labels_of(rule(missing), frame) == labels, engine
