from __future__ import annotations

import numpy as np
import pytest
from density_definitions import Hierarchy, hdbscan
from scipy.spatial.distance import cdist
from sklearn.cluster import HDBSCAN as TheirHDBSCAN
from sklearn.datasets import load_iris, make_blobs

from coterie import DBSCAN, HDBSCAN
from coterie.datasets import make_moons, make_rings
from coterie.density import kd_rows, row_distances
from coterie.errors import InputError, ParameterError
from coterie.metrics import adjusted_rand_score

rng = np.random.default_rng(0)
BLOBS = make_blobs(150, centers=[[0, 0], [4, 4], [-4, 4]], cluster_std=[0.3, 0.6, 0.9], random_state=0)[0]
GRID = np.stack(np.meshgrid(np.arange(8.0), np.arange(6.0)), axis=-1).reshape(-1, 2)
REPEATED = np.repeat(rng.normal(size=(25, 2)), 4, axis=0)
TABLES = {
    "blobs": BLOBS,
    "moons": make_moons(120, noise=0.08, random_state=1)[0],
    "noise": rng.uniform(size=(80, 3)),
    "grid": GRID,
    "grids": np.concatenate([GRID, GRID + 20]),
    "repeated": REPEATED,
    "integers": rng.integers(0, 6, size=(90, 2)).astype(float),
}
SIZES = [(5, 5), (3, 1), (8, 3), (2, 2)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", TABLES)
def test_labels_probabilities_and_outlier_scores_are_those_of_the_definition(name, sizes):
    X = TABLES[name]
    model = HDBSCAN(sizes[0], min_samples=sizes[1]).fit(X)
    labels, probabilities, scores = hdbscan(X, *sizes)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(model.probabilities_, probabilities, rtol=1e-9)
    np.testing.assert_allclose(model.outlier_scores_, scores, atol=1e-9)


@pytest.mark.parametrize("name", TABLES)
def test_the_condensed_tree_is_that_of_the_definition(name):
    X = TABLES[name]
    tree, naive = HDBSCAN(4, min_samples=3).fit(X).condensed_tree_, Hierarchy(cdist(X, X), np.ones(len(X)), 3, 4)
    np.testing.assert_allclose(tree.row_lambda, [density for _, density in naive.leaves], rtol=1e-9)
    order = {cluster: [] for cluster in naive.clusters}
    for i, (cluster, _) in enumerate(naive.leaves):
        order[cluster].append(i)
    ours = {tuple(np.flatnonzero(tree.row_cluster == j)) for j in range(len(tree.cluster_parent))}
    assert ours == {tuple(rows) for rows in order.values()}
    np.testing.assert_allclose(np.sort(tree.cluster_size), np.sort([len(c.rows) for c in naive.clusters]))


@pytest.mark.parametrize("name", TABLES)
def test_another_order_of_the_rows_gives_the_same_partition(name):
    X = TABLES[name]
    order = np.random.default_rng(1).permutation(len(X))
    model, permuted = HDBSCAN(4).fit(X), HDBSCAN(4).fit(X[order])
    assert adjusted_rand_score(model.labels_[order], permuted.labels_) == 1
    np.testing.assert_array_equal(model.labels_[order] == -1, permuted.labels_ == -1)
    np.testing.assert_allclose(model.probabilities_[order], permuted.probabilities_, rtol=1e-12)
    np.testing.assert_allclose(model.outlier_scores_[order], permuted.outlier_scores_, atol=1e-12)


@pytest.mark.parametrize("sizes", [(5, 5), (4, 2), (3, 6), (2, 1)], ids=str)
@pytest.mark.parametrize("name", TABLES)
def test_weight_two_is_the_row_twice(name, sizes):
    X = TABLES[name]
    w = np.random.default_rng(2).integers(0, 4, size=len(X))
    rows = np.repeat(np.arange(len(X)), w)
    options = {"min_cluster_size": sizes[0], "min_samples": sizes[1]}
    weighted, repeated = HDBSCAN(**options).fit(X, sample_weight=w), HDBSCAN(**options).fit(X[rows])
    np.testing.assert_array_equal(weighted.labels_[rows], repeated.labels_)
    np.testing.assert_allclose(weighted.probabilities_[rows], repeated.probabilities_, rtol=1e-9)
    np.testing.assert_allclose(weighted.outlier_scores_[rows], repeated.outlier_scores_, atol=1e-9)
    np.testing.assert_allclose(weighted.cluster_persistence_, repeated.cluster_persistence_, rtol=1e-9)


def test_rows_of_weight_zero_do_not_count_and_are_predicted():
    w = np.ones(len(BLOBS))
    w[::7] = 0
    model, without = HDBSCAN().fit(BLOBS, sample_weight=w), HDBSCAN().fit(BLOBS[w > 0])
    np.testing.assert_array_equal(model.labels_[w > 0], without.labels_)
    np.testing.assert_array_equal(model.labels_[w == 0], without.predict(BLOBS[w == 0]))
    np.testing.assert_array_equal(model.cut(0.5)[w == 0], -1)


@pytest.mark.parametrize("exponent", [-600, -3, 5, 600])
def test_a_power_of_two_changes_no_label(exponent):
    model, scaled = HDBSCAN().fit(BLOBS), HDBSCAN().fit(np.ldexp(BLOBS, exponent))
    np.testing.assert_array_equal(model.labels_, scaled.labels_)
    np.testing.assert_allclose(model.probabilities_, scaled.probabilities_)
    np.testing.assert_allclose(model.cluster_persistence_, scaled.cluster_persistence_)
    np.testing.assert_array_equal(
        np.ldexp(model.single_linkage_tree_[:, 2], exponent), scaled.single_linkage_tree_[:, 2]
    )


def peers_ties(model, theirs):
    """Rows that are noise here, and in a cluster of scikit-learn only at the density at which it is split off."""
    differ = np.flatnonzero((model.labels_ == -1) != (theirs.labels_ == -1))
    assert (model.labels_[differ] == -1).all()
    assert len(differ) <= 2 * (model.n_clusters_ + 1)
    return differ


OPTIONS = [
    {}, {"cluster_selection_method": "leaf"}, {"allow_single_cluster": True}, {"max_cluster_size": 60},
    {"min_samples": 2}, {"min_samples": 12}, {"metric": "manhattan"},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", ["blobs", "moons", "iris"])
def test_labels_and_probabilities_are_those_of_scikit_learn_up_to_ties(name, options):
    X = load_iris().data + 1e-4 * np.random.default_rng(0).normal(size=(150, 4)) if name == "iris" else TABLES[name]
    model, theirs = HDBSCAN(8, **options).fit(X), TheirHDBSCAN(min_cluster_size=8, copy=True, **options).fit(X)
    same = np.delete(np.arange(len(X)), peers_ties(model, theirs))
    assert adjusted_rand_score(model.labels_[same], theirs.labels_[same]) == 1
    np.testing.assert_allclose(model.probabilities_[same], theirs.probabilities_[same], rtol=1e-9)
    Z = theirs._single_linkage_tree_
    np.testing.assert_allclose(model.single_linkage_tree_[:, 2], Z["value"], rtol=1e-9)


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev", "canberra", "sqeuclidean"])
def test_any_distance_and_its_matrix_give_the_same_clusters(metric):
    X = np.abs(BLOBS) + 1
    name = {"manhattan": "cityblock"}.get(metric, metric)
    model, matrix = HDBSCAN(metric=metric).fit(X), HDBSCAN(metric="precomputed").fit(cdist(X, X, name))
    np.testing.assert_array_equal(model.labels_, matrix.labels_)
    np.testing.assert_allclose(model.single_linkage_tree_[:, 2], matrix.single_linkage_tree_[:, 2], rtol=1e-9)
    np.testing.assert_array_equal(matrix.predict(cdist(X, X, name)), matrix.labels_)


@pytest.fixture
def _strips(monkeypatch):
    """All distances are computed strip by strip."""
    monkeypatch.setattr(row_distances, "MATRIX_ROWS", 0)


@pytest.fixture
def _kd_tree(monkeypatch):
    """A k-d tree for any number of rows."""
    monkeypatch.setattr(kd_rows, "MIN_ROWS", 2)
    monkeypatch.setattr(kd_rows, "MAX_VISITED", 2.0)


@pytest.fixture(params=["matrix", "strips", "kd_tree"])
def way(request):
    if request.param != "matrix":
        request.getfixturevalue(f"_{request.param}")
    return request.param


LARGER = [*TABLES, "clusters", "one column"]


def larger(name):
    if name == "clusters":
        return make_blobs(900, 5, centers=9, cluster_std=0.4, random_state=3)[0]
    return np.sort(rng.normal(size=(400, 1)), axis=0) if name == "one column" else TABLES[name]


@pytest.mark.parametrize("name", LARGER)
def test_every_way_to_the_tree_gives_the_same_result(name, request):
    X = larger(name)
    w = np.random.default_rng(5).integers(1, 4, size=len(X)) / 2
    models = {"matrix": (HDBSCAN(6).fit(X), HDBSCAN(6).fit(X, sample_weight=w))}
    for way in ("strips", "kd_tree"):
        request.getfixturevalue(f"_{way}")
        models[way] = HDBSCAN(6).fit(X), HDBSCAN(6).fit(X, sample_weight=w)
    for way in ("strips", "kd_tree"):
        for model, other in zip(models["matrix"], models[way], strict=True):
            np.testing.assert_allclose(
                model.single_linkage_tree_[:, 2], other.single_linkage_tree_[:, 2], rtol=1e-9, err_msg=way
            )
            np.testing.assert_array_equal(model.labels_, other.labels_, err_msg=way)
            np.testing.assert_allclose(model.probabilities_, other.probabilities_, rtol=1e-9, err_msg=way)


def test_threads_do_not_change_a_bit(way):
    X = larger("clusters")
    one, four = (HDBSCAN(7, n_jobs=n_jobs).fit(X) for n_jobs in (1, 4))
    np.testing.assert_array_equal(one.minimum_spanning_tree_, four.minimum_spanning_tree_)
    np.testing.assert_array_equal(one.single_linkage_tree_, four.single_linkage_tree_)
    np.testing.assert_array_equal(one.labels_, four.labels_)
    np.testing.assert_array_equal(one.predict(X), four.predict(X))


def test_float32_rows_have_nearly_the_same_tree(way):
    X = larger("clusters")
    double, single = HDBSCAN(7).fit(X.astype(np.float32).astype(np.float64)), HDBSCAN(7).fit(X.astype(np.float32))
    np.testing.assert_allclose(double.single_linkage_tree_[:, 2], single.single_linkage_tree_[:, 2], rtol=1e-5)
    assert adjusted_rand_score(double.labels_, single.labels_) > 0.99


def test_rows_of_the_fit_are_predicted_as_in_the_fit(way):
    for name in LARGER:
        X = larger(name)
        model = HDBSCAN(6).fit(X)
        np.testing.assert_array_equal(model.predict(X), model.labels_, err_msg=name)


def test_new_rows_are_in_the_cluster_around_them_or_noise():
    model = HDBSCAN(10).fit(BLOBS)
    near = model.predict([[0.05, 0.0], [4.0, 4.1], [-4.0, 4.0]])
    assert len(set(near.tolist())) == 3
    assert model.predict([[100.0, 100.0], [1.5, -8.0]]).tolist() == [-1, -1]


@pytest.mark.parametrize("name", ["blobs", "moons", "grids", "repeated"])
def test_a_cut_has_the_core_rows_of_dbscan(name):
    X = TABLES[name]
    model = HDBSCAN(5, min_samples=4).fit(X)
    radii = np.quantile(model.single_linkage_tree_[:, 2], [0.1, 0.5, 0.9, 0.99])
    radii = radii[radii > 0]
    cuts = model.cut(radii)
    for radius, labels in zip(radii, cuts, strict=True):
        theirs = DBSCAN(radius, min_samples=4).fit(X)
        core = theirs.core_sample_indices_
        assert set(core) == set(np.flatnonzero(labels >= 0))
        np.testing.assert_array_equal(labels[core], theirs.labels_[core])
    np.testing.assert_array_equal(model.cut(radii[-1]), cuts[-1])


def test_small_clusters_of_a_cut_are_noise():
    model = HDBSCAN(5, min_samples=2).fit(BLOBS)
    labels, counts = np.unique(model.dbscan_clustering(0.4, min_cluster_size=6), return_counts=True)
    assert (counts[labels >= 0] >= 6).all()
    assert (model.cut(0.4) >= 0).sum() > (labels >= 0).sum()


def test_rows_of_a_cut_are_contiguous_in_the_reachability_plot():
    model = HDBSCAN(5).fit(BLOBS)
    order, reach = model.ordering_, model.reachability_
    assert sorted(order) == list(range(len(BLOBS)))
    assert np.isinf(reach[order[0]])
    np.testing.assert_allclose(np.sort(reach[order[1:]]), model.single_linkage_tree_[:, 2])
    for eps in (0.2, 0.4, 0.8):
        labels = model.cut(eps)[order]
        starts = np.flatnonzero(reach[order] > eps)
        for start, stop in zip(starts, [*starts[1:], len(order)], strict=True):
            assert len(set(labels[start:stop])) == 1


def test_moons_and_rings_are_found():
    for X, y in (make_moons(500, noise=0.05, random_state=0), make_rings(600, noise=0.03, random_state=0)):
        model = HDBSCAN(15).fit(X)
        inside = model.labels_ >= 0
        assert inside.mean() > 0.95
        assert adjusted_rand_score(y[inside], model.labels_[inside]) == 1


def test_degenerate_tables():
    assert HDBSCAN().fit([[1.0, 2.0]]).labels_.tolist() == [-1]
    assert HDBSCAN().fit([[1.0], [2.0], [3.0]]).labels_.tolist() == [-1, -1, -1]
    equal = HDBSCAN(3).fit(np.ones((12, 2)))
    assert set(equal.labels_) == {-1}
    assert np.isfinite(equal.outlier_scores_).all()
    single = HDBSCAN(3, allow_single_cluster=True).fit(np.ones((12, 2)))
    assert set(single.labels_) == {0}
    assert single.probabilities_.tolist() == [1.0] * 12
    two = HDBSCAN(3).fit(np.repeat([[0.0], [1.0]], 5, axis=0))
    assert two.labels_.tolist() == [0] * 5 + [1] * 5


def test_a_row_as_heavy_as_a_cluster_is_one():
    model = HDBSCAN(4, min_samples=4).fit([[0.0], [5.0], [5.1], [30.0]], sample_weight=[4, 2, 2, 1])
    assert model.labels_.tolist() == [0, 1, 1, -1]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"min_cluster_size": 1}, "min_cluster_size must be a whole number of at least 2; got 1"),
        ({"min_samples": 0}, "min_samples must be a whole number of at least 1; got 0"),
        ({"cluster_selection_method": "best"}, "cluster_selection_method must be 'eom' or 'leaf'; got 'best'"),
        ({"cluster_selection_epsilon": -1}, "cluster_selection_epsilon must be a finite number of at least 0; got -1"),
        ({"max_cluster_size": 0}, "max_cluster_size must be a whole number of at least 1; got 0"),
        ({"allow_single_cluster": "yes"}, "allow_single_cluster must be True or False; got 'yes'"),
    ],
)
def test_invalid_options_are_rejected_by_name(options, message):
    with pytest.raises(ParameterError, match=message):
        HDBSCAN(**options).fit(BLOBS)


def test_bad_rows_are_rejected_by_name():
    with pytest.raises(InputError, match="min_samples=9 but X has n_samples=5"):
        HDBSCAN(min_samples=9).fit(BLOBS[:5])
    with pytest.raises(InputError, match="NaN"):
        HDBSCAN().fit([[1.0, np.nan], [1.0, 2.0]])
    with pytest.raises(InputError, match="is not symmetric"):
        HDBSCAN(metric="precomputed").fit([[0.0, 1.0], [2.0, 0.0]])


def test_a_callback_that_returns_true_stops_the_fit():
    with pytest.raises(KeyboardInterrupt, match="the callback returned True"):
        HDBSCAN(callback=lambda progress: True).fit(BLOBS)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
def test_predict_returns_the_labels_of_rows_whose_distances_differ_by_rounding(metric):
    """Sums of numbers with one decimal: heights of 0.8 and 0.8000000000000002 are two merges at the same density."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = np.round(2 * rng.normal(size=(rng.integers(8, 30), 1 + seed % 2)), 1)
        method = ("eom", "leaf")[seed // 2 % 2]
        model = HDBSCAN(3, min_samples=1 + seed % 4, metric=metric, cluster_selection_method=method).fit(X)
        np.testing.assert_array_equal(model.predict(X), model.labels_, err_msg=str(seed))


def test_fewer_rows_than_a_cluster_needs_are_noise_even_if_one_cluster_is_allowed():
    X = np.random.default_rng(0).normal(size=(5, 2))
    for rows in (X, X[:1]):
        assert (HDBSCAN(7, allow_single_cluster=True).fit(rows).labels_ == -1).all()
    weighted = HDBSCAN(7, allow_single_cluster=True).fit(X, sample_weight=np.full(5, 2.0))
    assert weighted.n_clusters_ == 1
