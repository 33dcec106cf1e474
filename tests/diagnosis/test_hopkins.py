"""The Hopkins statistic against its definition, and its p-values against uniform rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from coterie.diagnosis.tendency_checks import hopkins


def naive_hopkins(X, rng, m):
    """The definition in loops, with the same random draws as `hopkins`."""
    n, d = X.shape
    places = rng.uniform(X.min(axis=0), X.max(axis=0), (m, d))
    rows = rng.choice(n, m, replace=False)
    u = [min(np.linalg.norm(place - row) for row in X) for place in places]
    w = [min(np.linalg.norm(X[i] - X[j]) for j in range(n) if j != i) for i in rows]
    return sum(v**d for v in u) / (sum(v**d for v in u) + sum(v**d for v in w))


@pytest.mark.parametrize("d", [1, 2, 5])
def test_statistic_matches_its_definition(d):
    X = np.random.default_rng(d).normal(size=(120, d))
    result = hopkins(X, np.random.default_rng(7))
    assert result.probes == 12
    assert result.value == pytest.approx(naive_hopkins(X, np.random.default_rng(7), 12))
    assert result.p == pytest.approx(beta.sf(result.value, 12, 12))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_p_values_of_uniform_rows_are_uniform(d):
    """In 200 tables, the share of p-values below a level is within four standard deviations of the level."""
    rng = np.random.default_rng(d)
    p = np.array([hopkins(rng.uniform(size=(400, d)), rng).p for _ in range(200)])
    for level in (0.05, 0.25, 0.5):
        assert abs((p <= level).mean() - level) <= 4 * np.sqrt(level * (1 - level) / 200)


def test_statistic_of_clusters_and_of_a_grid():
    rng = np.random.default_rng(0)
    together = rng.normal(size=(300, 2)) * 0.1 + rng.integers(0, 2, (300, 1)) * 5
    grid = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), axis=-1).reshape(-1, 2)
    assert hopkins(together, rng).value > 0.95
    assert hopkins(grid, rng).value < 0.2
    assert hopkins(np.zeros((50, 2)), rng).value == 1.0


def test_the_unit_does_not_matter():
    X = np.random.default_rng(0).normal(size=(200, 4))
    values = [hopkins(X * unit, np.random.default_rng(1)).value for unit in (1.0, 1e-100, 1e100)]
    assert values == pytest.approx([values[0]] * 3)
