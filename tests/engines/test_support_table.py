"""The table of docs/engines.md, estimator x input, says what runs: each cell is tried."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
pytest.importorskip("pandas")
pytest.importorskip("polars")

import dask.dataframe as dd  # noqa: E402
import pandas as pd  # noqa: E402

import coterie  # noqa: E402
from coterie.errors import InputError, ParameterError  # noqa: E402
from local_cluster import local_cluster  # noqa: E402
from public_estimators import CLASSES, seeded  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs" / "engines.md"
MARKS = {"yes": True, "no": False}
SHORT = {"max_iter": 2, "n_init": 1, "search": "none", "init_params": "random_from_data"}  # what runs, not how well
rng = np.random.default_rng(0)
ROWS = np.abs(np.concatenate([rng.normal(size=(30, 4)) + 5 * i for i in range(2)])).round(2) + 1.0


def table():
    """The cells of the table by estimator and column."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    start = next(i for i, line in enumerate(lines) if line.startswith("| estimator |"))
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start:]]
    rows = [row for row in rows if row[0].startswith("`")]
    return {row[0].strip("`"): dict(zip(header[1:], row[1:], strict=True)) for row in rows}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows")
    pd.DataFrame(ROWS, columns=list("abcd")).to_parquet(path / "rows.parquet")
    return path


def inputs(folder):
    frame = pd.DataFrame(ROWS, columns=list("abcd"))
    return {
        "array, frame": ROWS,
        "sparse": sparse.csr_array(ROWS),
        "file": folder / "rows.parquet",
        "Dask array": da.from_array(ROWS, chunks=(20, 4)),
        "Dask DataFrame": dd.from_pandas(frame, npartitions=3),
        'array, `engine="dask"`': ROWS,
    }


@pytest.fixture(scope="module")
def client():
    with local_cluster() as cluster, distributed.Client(cluster) as client:
        yield client


def runs(name, column, X):
    """Whether a fit works; a rejection must be an error that explains itself."""
    estimator = seeded(getattr(coterie, name), 2)
    known = estimator.get_params(deep=False)
    estimator.set_params(**{option: value for option, value in SHORT.items() if option in known})
    if "engine=" in column:
        if "engine" not in known:
            return False
        estimator.set_params(engine="dask")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            labels = np.asarray(estimator.fit(X).labels_)
        except (InputError, ParameterError):
            return False
    assert labels.shape == (len(ROWS),)
    return True


def test_the_table_lists_every_estimator():
    assert sorted(table()) == sorted(kind.__name__ for kind in CLASSES)


@pytest.mark.parametrize("name", sorted(kind.__name__ for kind in CLASSES))
def test_the_table_is_true(client, folder, name):
    cells = table()[name]
    given = inputs(folder)
    assert set(cells) == set(given)
    assert {column: runs(name, column, X) for column, X in given.items()} == {
        column: MARKS[cell] for column, cell in cells.items()
    }
