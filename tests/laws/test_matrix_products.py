"""Labels do not depend on how a processor adds up a matrix product.

OpenBLAS has kernels for each generation of processors, which add in different orders, so the last digits of products
differ. Each case runs once with the kernels that suit this processor, and once with those of older ones.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
OLDER = ("HASWELL", "NEHALEM")  # with registers of 32 and of 16 bytes
PROGRAM = """
import json, warnings
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from coterie import Mixture
from public_estimators import CLASSES, seeded
from short_searches import short_searches

warnings.simplefilter("ignore", ConvergenceWarning)
rng = np.random.default_rng(0)
rows = rng.normal(size=(150, 7)) + 6 * np.eye(7)[np.arange(150) % 3]
tables = {
    "clusters": rows,
    "float32": rows.astype(np.float32),
    "no clusters": rng.normal(size=(150, 7)),
    "grid": np.indices((12, 12)).reshape(2, -1).T.astype(float),  # many rows are as far from several others
    "repeated": np.repeat(rng.integers(0, 3, size=(30, 7)).astype(float), 5, axis=0),
}
models = [seeded(kind) for kind in CLASSES]
models += [Mixture(3, family, random_state=0) for family in ("exponential", "student_t", "gamma", "poisson")]
labels = {}
with short_searches():
    for name, X in tables.items():
        for model in models:
            positive = getattr(model, "family", None) in ("exponential", "gamma", "poisson")
            values = np.floor(np.abs(X)) + 1 if positive else X + 1 if type(model).__name__ == "SphericalKMeans" else X
            labels[f"{name}: {model}"] = model.fit(values).labels_.tolist()
print(json.dumps(labels))
"""


def labels(**environment):
    env = os.environ | environment | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def expected():
    return labels()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names x86 processors")
@pytest.mark.parametrize("processor", OLDER)
def test_labels_are_those_of_other_matrix_products(processor, expected):
    other = labels(OPENBLAS_CORETYPE=processor)
    assert [case for case in expected if expected[case] != other[case]] == []
