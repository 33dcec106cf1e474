"""Tables and printed results from elsewhere: they lie beside the repository, and are not part of it."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data"


@cache
def read_index(name):
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"no {name} in ../shared/data: the tables with published results are not here")
    return json.loads(path.read_text(encoding="utf-8"))


def published(name):
    """The published result of that name: `value`, `source`, `tolerance`, ..."""
    return next(result for result in read_index("published.json") if result["id"] == name)


def load(name):
    """The rows of the table called "group/name", as the index describes them."""
    entry = next(table for table in read_index("index.json") if f"{table['group']}/{table['name']}" == name)
    X = np.loadtxt(FOLDER / entry["files"][0], delimiter=",", skiprows=1, ndmin=2)
    assert X.shape == (entry["n"], entry["d"])
    return X
