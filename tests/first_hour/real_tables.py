"""Real tables from packages on PyPI, written to files as a user would have them."""

from __future__ import annotations

import tarfile
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
from sklearn import datasets


def folder_of(package: str) -> Path:
    spec = find_spec(package)  # importing it would write into the home folder
    if spec is None:
        pytest.skip(f"{package} is not installed")
    return Path(spec.submodule_search_locations[0])


def vega(name: str, path: Path) -> Path:
    """A table of vega_datasets as CSV."""
    source = folder_of("vega_datasets") / "_data" / name
    if source.suffix == ".json":
        pd.read_json(source).to_csv(path, index=False)
    else:
        path.write_bytes(source.read_bytes())
    return path


def r(name: str, path: Path) -> Path:
    """A table of a package of R, such as ``MASS/Cars93``, with the names of its rows in a column without a name."""
    with tarfile.open(folder_of("pydataset") / "resources.tar.gz") as archive:
        member = next(each for each in archive if each.name.endswith(f"/csv/{name}.csv") and "._" not in each.name)
        path.write_bytes(archive.extractfile(member).read())
    return path


def scikit_learn(name: str, path: Path) -> Path:
    """A table of scikit-learn as CSV, without its target."""
    getattr(datasets, f"load_{name}")(as_frame=True).data.to_csv(path, index=False)
    return path


SOURCES = {"vega": vega, "r": r, "sklearn": scikit_learn}


def write(source: str, path: Path) -> Path:
    """Write the table of a name such as ``r:MASS/Cars93``."""
    kind, name = source.split(":")
    return SOURCES[kind](name, path)
