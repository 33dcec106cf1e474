import numpy as np
import pytest
from scipy import stats

from coterie.datasets import make_blobs
from coterie.errors import InputError, ParameterError
from coterie.selection import Tendency, tendency
from coterie.selection.references import hull_about


def blobs(n=200):
    return make_blobs(n, 2, centers=3, cluster_std=0.3, random_state=0)[0]


def test_false_alarms_are_as_rare_as_they_should_be():
    """At 1 % each, three of forty would be a wonder of 1 in 130."""
    rng = np.random.default_rng(0)
    tables = [rng.uniform(size=(120, 2)) for _ in range(20)] + [rng.normal(size=(120, 3)) for _ in range(20)]
    alarms = sum(tendency(X, (2, 3, 5), n_references=10, random_state=i).clustered for i, X in enumerate(tables))
    assert alarms <= 2


def test_clusters_are_seen():
    found = tendency(blobs(), random_state=0)
    assert found.clustered
    assert found.p_value < 1e-6
    assert found.best > found.by_chance[0]


def test_the_p_value_is_that_of_one_more_draw():
    even, normal = np.array([0.1, 0.2, 0.3]), np.array([0.0, 0.05, 0.1])
    found = Tendency(np.array([2, 3]), np.array([0.5, 0.6]), {"box": even, "normal": normal})
    z = (0.6 - 0.2) / (0.1 * np.sqrt(4 / 3))
    assert found.p_value == pytest.approx(stats.t.sf(z, 2))
    assert found.by_chance == pytest.approx((0.2, 0.1))


def test_references_that_are_all_alike_are_beaten_or_not():
    alike = np.full(3, 0.25)
    assert Tendency(np.array([2]), np.array([0.3]), {"box": alike}).p_value == 0
    assert Tendency(np.array([2]), np.array([0.25]), {"box": alike}).p_value == 1


def test_references_of_float32_rows_far_from_the_origin_are_those_of_float64_rows():
    X = 1e8 + 8.0 * np.random.default_rng(0).integers(-20, 21, (1500, 2))
    single, double = (tendency(X.astype(dtype), (2,), n_references=3, random_state=0) for dtype in ("f4", "f8"))
    for kind, silhouettes in double.references.items():
        np.testing.assert_allclose(single.references[kind], silhouettes, atol=0.03)


def test_threads_change_nothing():
    one, three = (tendency(blobs(), (2, 3), n_references=4, n_jobs=n, random_state=1) for n in (1, 3))
    for kind, silhouettes in one.references.items():
        np.testing.assert_array_equal(silhouettes, three.references[kind])


def test_references_lie_as_the_data_do():
    """Columns that depend on each other: a box along the columns would split otherwise."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 1)) * [3.0, 3.0] + rng.normal(0, 0.2, (300, 2))
    assert not tendency(X, random_state=0).clustered


@pytest.mark.parametrize("name", ["triangle", "rotated square"])
def test_the_outline_of_the_rows_is_no_cluster(name):
    """A box along the principal axes has corners that these rows do not have, and splits worse."""
    rng = np.random.default_rng(0)
    X = rng.dirichlet(np.ones(3), 500) if name == "triangle" else rng.uniform(size=(500, 2)) @ [[1, 1], [-1, 1]]
    assert not tendency(X, random_state=0).clustered


def test_rows_of_the_hull_are_between_the_outermost_rows():
    X = np.random.default_rng(0).dirichlet(np.ones(3), 400) * [1.0, 2.0, 3.0]
    rows = hull_about(X, None, np.random.default_rng(1)).draw(2000, X.dtype, np.random.default_rng(2))
    lowest, highest = X.min(axis=0), X.max(axis=0)
    margin = 0.1 * (highest - lowest)
    assert ((rows > lowest - margin) & (rows < highest + margin)).all()
    np.testing.assert_allclose((rows / [1.0, 2.0, 3.0]).sum(axis=1), 1.0, atol=1e-5)  # in the plane of the rows
    np.testing.assert_allclose(rows.mean(axis=0), X.mean(axis=0), atol=0.05)


def test_progress_ends_it_with_two_of_each_kind():
    found = tendency(blobs(), (2,), callback=lambda step: True, random_state=0)
    assert {kind: len(values) for kind, values in found.references.items()} == {"box": 2, "hull": 2, "normal": 2}


def test_bad_input():
    with pytest.raises(InputError, match="2 distinct rows"):
        tendency(np.repeat([[0.0], [1.0]], 5, axis=0))
    with pytest.raises(ParameterError, match="n_references must be a whole number of at least 2"):
        tendency(blobs(), n_references=1)
