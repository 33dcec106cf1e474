"""Criteria over the number of clusters."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import AgglomerativeClustering, FuzzyCMeans, KMeans, KMedians, KMedoids, SphericalKMeans, metrics
from coterie.distances import pairwise
from coterie.errors import InputError, ParameterError
from coterie.selection import criteria, sweep

rng = np.random.default_rng(0)
BLOBS = rng.normal(size=(90, 2)) + 6 * np.array([[0, 0], [1, 1], [2, 0]])[np.arange(90) % 3] + 9
INDICES = ("silhouette", "calinski_harabasz", "davies_bouldin", "dunn")
SCORES = {name: getattr(metrics, f"{name}_score") for name in INDICES}


@pytest.fixture(scope="module")
def found():
    return sweep(KMeans(random_state=0), BLOBS, range(1, 8))


@pytest.mark.parametrize("name", INDICES)
def test_values_are_the_indices_of_the_labels(found, name):
    curve = found.curve(name)
    assert curve.ks.tolist() == list(range(2, 8))
    want = [SCORES[name](BLOBS, labels) for labels in found.labels[1:]]
    np.testing.assert_allclose(curve.values, want, rtol=1e-12)
    assert (curve.errors, curve.note) == (None, None)


@pytest.mark.parametrize("name", INDICES)
def test_the_best_is_where_there_are_clusters(found, name):
    curve = found.curve(name)
    assert curve.best == 3
    assert curve.higher_is_better == (name != "davies_bouldin")
    assert 0 < curve.lead < 1


def test_the_lead_is_that_over_the_runner_up():
    curve = criteria.Curve("silhouette", np.arange(2, 5), np.array([0.5, 0.8, 0.6]), 3, True)
    assert curve.lead == pytest.approx(0.25)
    curve = criteria.Curve("davies_bouldin", np.arange(2, 5), np.array([0.5, 0.4, 0.8]), 3, False)
    assert curve.lead == pytest.approx(0.2)
    assert criteria.Curve("silhouette", np.array([2]), np.array([0.5]), 2, True).lead is None


def test_objectives_have_no_best(found):
    for name in ("objective", "inertia"):
        curve = found.curve(name)
        np.testing.assert_array_equal(curve.values, found.objectives)
        assert (curve.best, curve.lead, curve.ks[0]) == (None, None, 1)


def test_inertia_of_estimators_that_have_none():
    trees = sweep(AgglomerativeClustering(linkage="average"), BLOBS, [1, 3])
    curve = trees.curve("inertia")
    np.testing.assert_allclose(curve.values, [metrics.inertia(BLOBS, labels) for labels in trees.labels])
    assert curve.values[0] != trees.objectives[0]


@pytest.mark.parametrize(
    "estimator, metric",
    [
        (SphericalKMeans(random_state=0), {"metric": "cosine"}),
        (KMedians(random_state=0), {"metric": "manhattan"}),
        (KMedians(metric="l2", random_state=0), {}),
        (FuzzyCMeans(random_state=0), {}),
        (KMedoids(metric="minkowski", metric_params={"p": 3}), {"metric": "minkowski", "p": 3}),
        (AgglomerativeClustering(linkage="complete", metric="chebyshev"), {"metric": "chebyshev"}),
        (KMeans(metric_weights=[1.0, 9.0], random_state=0), {"w": [1.0, 9.0]}),
    ],
)
@pytest.mark.parametrize("name", ["silhouette", "dunn"])
def test_distances_are_those_of_the_estimator(estimator, metric, name):
    made = sweep(estimator, BLOBS, [3])
    assert made.curve(name).values[0] == pytest.approx(SCORES[name](BLOBS, made.labels[0], **metric), rel=1e-12)


def test_given_distances_have_silhouettes_and_no_means():
    made = sweep(KMedoids(metric="precomputed"), pairwise(BLOBS), [1, 2, 3])
    assert made.curve("silhouette").best == 3
    assert made.curve("dunn").best == 3
    with pytest.raises(InputError, match="clusters have no means"):
        made.curve("davies_bouldin")


def test_weights_count_and_rows_of_weight_0_do_not():
    w = np.random.default_rng(1).integers(0, 3, 90)
    made = sweep(KMeans(random_state=0), BLOBS, [1, 2, 3], sample_weight=w)
    rows = np.repeat(np.arange(90), w)
    for name in INDICES:
        curve = made.curve(name)
        want = [SCORES[name](BLOBS[rows], labels[rows]) for labels in made.labels[1:]]
        np.testing.assert_allclose(curve.values, want, rtol=1e-9)


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("w", [None, np.r_[np.ones(6), np.zeros(3)]])
def test_nothing_undefined_or_infinite_comes_out(name, w):
    """One cluster, every row its own, and clusters that are single points."""
    X = np.array([[0.0], [1], [3], [6], [10], [15], [15], [21], [28]])
    top = 8 if w is None else 6
    curve = sweep(KMeans(random_state=0), X, range(1, top + 1), sample_weight=w).curve(name)
    assert np.isfinite(curve.values).all()
    assert 1 not in curve.ks
    assert curve.best in curve.ks
    if name in ("calinski_harabasz", "dunn"):  # infinite there
        assert top not in curve.ks


def test_a_sweep_of_one_cluster_has_empty_curves():
    curve = sweep(KMeans(), BLOBS, [1]).curve("silhouette")
    assert (len(curve.values), curve.best, curve.lead, str(curve)) == (0, None, None, "")


def test_many_rows_are_sampled_and_the_curve_says_so(monkeypatch, found):
    monkeypatch.setattr(criteria, "MAX_ROWS", 60)
    monkeypatch.setattr(criteria, "SILHOUETTE_ROWS", 40)
    exact = np.array([metrics.silhouette_score(BLOBS, labels) for labels in found.labels[1:]])
    curve = found.curve("silhouette", random_state=0)
    assert (np.abs(curve.values - exact) < 4 * curve.errors).all()
    assert "40 of 90 rows" in curve.note
    assert "40 of 90 rows" in str(curve)
    assert "error" in curve.table()[0]
    np.testing.assert_array_equal(curve.values, found.curve("silhouette", random_state=0).values)
    assert (curve.values != found.curve("silhouette", random_state=1).values).any()
    dunn = found.curve("dunn")
    assert "sample of 60 of 90 rows" in dunn.note
    assert (dunn.values >= [metrics.dunn_score(BLOBS, labels) for labels in found.labels[1:]]).all()


def test_tables_are_plain(found):
    rows = found.curve("davies_bouldin").table()
    assert [row["k"] for row in rows if row["best"]] == [3]
    assert {type(value) for row in rows for value in row.values()} == {int, float, bool}


def test_an_unknown_curve_is_said(found):
    with pytest.raises(ParameterError, match="name must be 'objective' or 'inertia' or"):
        found.curve("elbow")
