from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from density_definitions import dbscan
from scipy.spatial.distance import cdist
from sklearn.cluster import DBSCAN as TheirDBSCAN
from sklearn.datasets import make_blobs

from coterie import DBSCAN, HDBSCAN
from coterie.datasets import make_moons, make_rings
from coterie.density import kd_rows, row_distances
from coterie.errors import InputError, ParameterError
from coterie.metrics import adjusted_rand_score

rng = np.random.default_rng(0)
BLOBS = make_blobs(150, centers=[[0, 0], [4, 4], [-4, 4]], cluster_std=[0.3, 0.6, 0.9], random_state=0)[0]
GRID = np.stack(np.meshgrid(np.arange(8.0), np.arange(6.0)), axis=-1).reshape(-1, 2)
TABLES = {
    "blobs": BLOBS,
    "moons": make_moons(150, noise=0.08, random_state=1)[0],
    "noise": rng.uniform(size=(120, 3)),
    "grids": np.concatenate([GRID, GRID + 20]),
    "integers": rng.integers(0, 9, size=(90, 2)).astype(float),
}
RADII = (0.1, 0.3, 1.0, 2.0)


@pytest.fixture(params=["matrix", "strips", "kd_tree"], autouse=True)
def way(request, monkeypatch):
    """All distances at once, strip by strip, or by a k-d tree."""
    if request.param == "strips":
        monkeypatch.setattr(row_distances, "MATRIX_ROWS", 0)
    elif request.param == "kd_tree":
        monkeypatch.setattr(kd_rows, "MIN_ROWS", 2)
        monkeypatch.setattr(kd_rows, "MAX_VISITED", 2.0)
    return request.param


@pytest.mark.parametrize("eps", RADII)
@pytest.mark.parametrize("name", TABLES)
def test_labels_and_core_rows_are_those_of_scikit_learn_and_of_the_definition(name, eps):
    X = TABLES[name]
    for min_samples in (1, 3, 5):
        model, theirs = (kind(eps=eps, min_samples=min_samples).fit(X) for kind in (DBSCAN, TheirDBSCAN))
        np.testing.assert_array_equal(model.labels_, theirs.labels_)
        np.testing.assert_array_equal(model.core_sample_indices_, theirs.core_sample_indices_)
        np.testing.assert_array_equal(model.components_, theirs.components_)
        np.testing.assert_array_equal(model.labels_, dbscan(X, eps, min_samples))
        np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("name", TABLES)
def test_weight_two_is_the_row_twice(name):
    X = TABLES[name]
    w = np.random.default_rng(2).integers(0, 4, size=len(X))
    rows = np.repeat(np.arange(len(X)), w)
    for eps in RADII:
        weighted, repeated = DBSCAN(eps, min_samples=4).fit(X, sample_weight=w), DBSCAN(eps, min_samples=4).fit(X[rows])
        np.testing.assert_array_equal(weighted.labels_[rows], repeated.labels_)
        assert (w[weighted.core_sample_indices_] > 0).all()


@pytest.mark.parametrize("name", TABLES)
def test_another_order_of_the_rows_changes_at_most_border_rows(name):
    X = TABLES[name]
    order = np.random.default_rng(1).permutation(len(X))
    for eps in RADII:
        model, permuted = DBSCAN(eps).fit(X), DBSCAN(eps).fit(X[order])
        core = np.isin(np.arange(len(X)), model.core_sample_indices_)[order]
        assert set(order[permuted.core_sample_indices_]) == set(model.core_sample_indices_)
        if core.any():
            assert adjusted_rand_score(model.labels_[order][core], permuted.labels_[core]) == 1
        np.testing.assert_array_equal(model.labels_[order] == -1, permuted.labels_ == -1)


@pytest.mark.parametrize("exponent", [-600, -3, 5, 600])
def test_a_power_of_two_changes_no_label(exponent):
    model, scaled = DBSCAN(0.5).fit(BLOBS), DBSCAN(float(np.ldexp(0.5, exponent))).fit(np.ldexp(BLOBS, exponent))
    np.testing.assert_array_equal(model.labels_, scaled.labels_)


def test_threads_do_not_change_a_label():
    X = make_blobs(3000, 3, centers=8, random_state=1)[0]
    one, four = (DBSCAN(0.6, n_jobs=n_jobs).fit(X) for n_jobs in (1, 4))
    np.testing.assert_array_equal(one.labels_, four.labels_)
    np.testing.assert_array_equal(one.labels_, TheirDBSCAN(eps=0.6).fit(X).labels_)


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev", "canberra", "sqeuclidean"])
def test_any_distance_and_its_matrix_give_the_same_clusters(metric):
    X = np.abs(BLOBS) + 1
    D = cdist(X, X, {"manhattan": "cityblock"}.get(metric, metric))
    eps = float(np.quantile(D, 0.02))
    model, matrix = DBSCAN(eps, metric=metric).fit(X), DBSCAN(eps, metric="precomputed").fit(D)
    np.testing.assert_array_equal(model.labels_, matrix.labels_)
    np.testing.assert_array_equal(matrix.predict(D), matrix.labels_)
    assert matrix.components_ is None


def widest_range(X, min_samples):
    """Ends of the widest range of radii with the same number of clusters, by DBSCAN* for all radii."""
    size = max(min_samples, np.sqrt(len(X)))
    tree = HDBSCAN(2, min_samples=min_samples).fit(X)
    radii = np.unique(np.append(tree.minimum_spanning_tree_[:, 2], np.sort(cdist(X, X))[:, min_samples - 1]))
    labels = tree.cut(radii)
    counts = [np.sum(np.bincount(row[row >= 0], minlength=1) >= size) for row in labels]
    cuts = np.flatnonzero(np.diff(counts, prepend=-1))
    ranges = [(radii[i], radii[j], counts[i]) for i, j in pairwise(cuts)]
    reached = [(tree.cut(high) >= 0).mean() for _, high, _ in ranges]
    return max(
        (np.log(high / low) * share, low, high)
        for (low, high, count), share in zip(ranges, reached, strict=True)
        if count > 1
    )[1:]


@pytest.mark.parametrize(
    "X, n_clusters",
    [
        (make_moons(200, noise=0.05, random_state=0)[0], 2),
        (make_rings(600, noise=0.03, random_state=0)[0], 2),
        (BLOBS, 3),
    ],
    ids=["moons", "rings", "blobs"],
)
def test_the_automatic_radius_is_in_the_widest_range_with_the_same_number_of_clusters(X, n_clusters):
    low, high = widest_range(X, 4)
    model = DBSCAN("auto", min_samples=4).fit(X)
    assert low < model.eps_ < high
    assert model.eps_ == pytest.approx(low * (high / low) ** 0.75, rel=0.05)
    assert model.n_clusters_ == n_clusters
    assert (model.labels_ == -1).mean() < 0.05
    assert DBSCAN(model.eps_, min_samples=4).fit(X).labels_.tolist() == model.labels_.tolist()


def test_the_automatic_radius_obeys_weights_scale_and_noise():
    X = np.concatenate([BLOBS, np.random.default_rng(3).uniform(-15, 15, size=(30, 2))])
    eps = DBSCAN("auto").fit(X).eps_
    assert DBSCAN("auto").fit(np.ldexp(X, 300)).eps_ == np.ldexp(eps, 300)
    w = np.random.default_rng(4).integers(1, 3, size=len(X))
    repeated = DBSCAN("auto").fit(np.repeat(X, w, axis=0)).eps_
    assert DBSCAN("auto").fit(X, sample_weight=w).eps_ == pytest.approx(repeated, rel=1e-9)
    model = DBSCAN("auto").fit(X)
    assert model.n_clusters_ == 3
    assert (model.labels_[150:] == -1).mean() > 0.8


@pytest.mark.parametrize("min_samples", [1, 5])
def test_without_two_clusters_nearly_all_rows_are_in_one(min_samples):
    X = np.arange(8.0)[:, None]
    w = np.random.default_rng(1).integers(1, 4, size=8)
    for exponent in (-700, 0, 700):
        model = DBSCAN("auto", min_samples=min_samples).fit(np.ldexp(X, exponent), sample_weight=w)
        assert model.n_clusters_ == 1
        assert w[model.labels_ == 0].sum() >= 0.9 * w.sum()
    repeated = DBSCAN("auto", min_samples=min_samples).fit(np.repeat(X, w, axis=0))
    np.testing.assert_array_equal(repeated.labels_, np.repeat(model.labels_, w))


def test_a_radius_beyond_float32_contains_all_rows():
    X = np.ldexp(np.arange(6.0).reshape(3, 2), -97).astype(np.float32)
    assert DBSCAN(0.5, min_samples=3, metric="sqeuclidean").fit(X).labels_.tolist() == [0, 0, 0]


def test_degenerate_tables():
    assert DBSCAN().fit([[1.0, 2.0]]).labels_.tolist() == [-1]
    assert DBSCAN(min_samples=1).fit([[1.0], [5.0]]).labels_.tolist() == [0, 1]
    assert set(DBSCAN().fit(np.ones((12, 2))).labels_) == {0}
    assert set(DBSCAN("auto").fit(np.ones((12, 2))).labels_) == {0}
    none = DBSCAN(0.01).fit(BLOBS)
    assert set(none.labels_) == {-1}
    assert none.n_clusters_ == 0
    assert none.predict(BLOBS).tolist() == [-1] * len(BLOBS)


@pytest.mark.parametrize("eps", [0, -1.0, np.inf, "knee", None, True])
def test_an_invalid_radius_is_rejected_by_name(eps):
    with pytest.raises(ParameterError, match="eps must be a positive number, or 'auto'"):
        DBSCAN(eps).fit(BLOBS)


def test_missing_values_are_rejected_by_name():
    with pytest.raises(InputError, match="NaN"):
        DBSCAN().fit([[1.0, np.nan], [1.0, 2.0]])
