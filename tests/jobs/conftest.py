"""Small tables in files."""

import polars as pl
import pytest

from coterie.datasets import make_blobs, write_demo


@pytest.fixture
def blobs(tmp_path):
    """Forty rows in two groups far apart: an id, a name, two measures."""
    X, y = make_blobs(40, centers=[[0, 0], [30, 30]], random_state=0)
    frame = pl.DataFrame(
        {"id": range(40), "name": [f"row {i}" for i in range(40)], "width": X[:, 0], "height": X[:, 1]}
    )
    path = tmp_path / "blobs.csv"
    frame.write_csv(path)
    return path, y


@pytest.fixture
def penguins(tmp_path):
    return write_demo("penguins", tmp_path / "penguins.csv")
