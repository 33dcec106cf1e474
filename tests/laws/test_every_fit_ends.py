"""Every loop has a bound that does not depend on rounding: no fit of a small table takes longer than a moment.

A fit that does not end cannot be interrupted within a compiled kernel. So fits run in a process of their own, whose CPU
time is limited: a hang is a failure that says where it was. Speed is not measured: the limit is a thousand times what a
fit takes.
"""

from __future__ import annotations

import subprocess
import sys
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

from coterie import KMeans
from public_estimators import CLASSES, seeded
from small_tables import FITS, LIMIT

SCRIPT = Path(__file__).parents[1] / "small_tables.py"


def run(first, count, *names):
    call = [sys.executable, str(SCRIPT), str(first), str(count), *names]
    ended = subprocess.run(call, capture_output=True, text=True, timeout=count * len(names) * LIMIT)
    last = ended.stdout.splitlines()[-1] if ended.stdout else "before the first"
    assert ended.returncode == 0, f"ended with {ended.returncode} at {last}:\n{ended.stderr[-3000:]}"
    assert last == "done"


def test_every_fit_of_a_small_table_ends():
    run(0, 3, *FITS)


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_every_fit_of_thousands_of_small_tables_ends(name):
    run(0, 2000, name)


def test_the_limit_ends_a_fit_that_does_not_end():
    hang = (
        "import small_tables as s; s.LIMIT = 1; s.FITS['hang'] = lambda *given: sum(iter(int, 1)); s.main(0, 1, 'hang')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", hang], capture_output=True, text=True, cwd=SCRIPT.parent, timeout=LIMIT
    )
    assert ended.returncode != 0
    assert ended.stdout.splitlines() == ["hang, table 0"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [kind for kind in CLASSES if "n_clusters" in signature(kind).parameters])
def test_as_many_clusters_as_distinct_rows_are_found_without_a_warning(kind):
    """At an objective of 0, differences of sums are only rounding: nothing moves, and the fit has converged."""
    for seed in range(3):
        groups = np.random.default_rng(seed).normal(size=(6, 3))
        labels = seeded(kind, 6).fit(np.repeat(groups, 20, axis=0)).labels_
        np.testing.assert_array_equal(labels, np.repeat(labels[::20], 20))
        assert len(np.unique(labels)) == 6


@pytest.mark.parametrize("kind", ["auto", "thorough"])
def test_a_search_with_more_clusters_than_distinct_rows_ends(kind):
    X = np.tile([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], (5, 1))
    with pytest.warns(UserWarning, match="only 4 of 5 clusters have rows"):
        model = KMeans(5, search=kind, random_state=0).fit(X, sample_weight=np.arange(20) % 3 + 1.0)
    assert model.inertia_ == 0
