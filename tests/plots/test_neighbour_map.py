"""The neighbour map keeps neighbours, is the same for each run, and says how far to trust it."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness
from threadpoolctl import threadpool_limits

from coterie import KMeans, KMedoids, TimeSeriesKMeans, plots
from coterie.distances import pairwise
from coterie.errors import InputError, ParameterError
from coterie.plots.neighbour_map import central_points, neighbour_map, principal_coordinates, trust

pytest.importorskip("matplotlib")

Y = np.arange(90) % 6
X = np.random.default_rng(0).normal(size=(90, 12)) + 5 * np.eye(12)[Y]
MAP = neighbour_map(pairwise(X))


def test_trustworthiness_is_that_of_scikit_learn():
    points = np.random.default_rng(0).normal(size=(90, 2))
    expected = trustworthiness(X, points, n_neighbors=10)
    assert trust(pairwise(X), points).trustworthiness == pytest.approx(expected, abs=1e-12)
    assert MAP.trust.trustworthiness == pytest.approx(trustworthiness(X, MAP.points, n_neighbors=10), abs=1e-12)


def test_a_map_of_the_data_itself_keeps_all_neighbours():
    result = trust(pairwise(X[:, :2]), X[:, :2])
    assert (result.trustworthiness, result.neighbours_kept, result.neighbours) == (1.0, 1.0, 10)


def test_random_places_keep_no_neighbours():
    places = np.random.default_rng(0).normal(size=(90, 2))
    result = trust(pairwise(X), places)
    assert result.trustworthiness == pytest.approx(0.5, abs=0.1)
    assert result.neighbours_kept < 0.25


def test_rows_count_by_their_weights():
    D, weight = pairwise(X), np.where(Y == 0, 1.0, 0.0)
    places = MAP.points.copy()
    places[Y != 0] = np.random.default_rng(0).normal(size=(int((Y != 0).sum()), 2)) + 9
    assert trust(D, places, weight).neighbours_kept > trust(D, places).neighbours_kept + 0.2


def test_the_map_keeps_more_neighbours_than_two_principal_axes():
    axes = trust(pairwise(X), PCA(2).fit_transform(X))
    assert MAP.trust.neighbours_kept > axes.neighbours_kept + 0.1
    assert MAP.trust.trustworthiness > 0.95


def test_principal_coordinates_of_euclidean_distances_are_principal_axes():
    coordinates, axes = principal_coordinates(pairwise(X)), PCA(2).fit_transform(X)
    np.testing.assert_allclose(np.abs(coordinates), np.abs(axes), atol=1e-6)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_map_does_not_depend_on_threads(threads):
    with threadpool_limits(limits=threads):
        result = neighbour_map(pairwise(X, n_jobs=threads))
    np.testing.assert_array_equal(result.points, MAP.points)


@pytest.mark.parametrize("rows", [X[:4], np.zeros((20, 3))])
def test_too_few_or_equal_rows_have_no_map(rows):
    with pytest.raises(InputError, match="map='axes'"):
        neighbour_map(pairwise(rows))


def test_duplicates_and_a_far_row_are_no_problem():
    rows = np.concatenate([np.repeat(X[:10], 4, axis=0), [[1e9] * 12]])
    result = neighbour_map(pairwise(rows))
    assert np.isfinite(result.points).all()
    assert 0.5 < result.trust.trustworthiness <= 1


def test_the_place_of_a_cluster_is_one_of_its_rows():
    points, codes = np.array([[0.0, 0], [1, 0], [9, 0], [9, 9]]), np.array([0, 0, 1, 1])
    places = central_points(points, codes, 3)
    assert places[0].tolist() in ([0.0, 0.0], [1.0, 0.0])
    assert np.isnan(places[2]).all()


# figures


def test_the_figure_says_what_it_is_and_how_far_to_trust_it():
    display = plots.clusters(Y, X, map="neighbours")
    kept, value = 100 * MAP.trust.neighbours_kept, MAP.trust.trustworthiness
    text = " ".join(display.get_title(loc="left").split())
    assert f"neighbour map (t-SNE): of the 10 rows nearest to a row here, {kept:.0f} %" in text
    assert f"(trustworthiness {value:.2f}); distances between groups mean nothing" in text
    assert list(display.get_xticks()) == []
    np.testing.assert_array_equal(display.cloud.points, MAP.points)


def test_auto_draws_a_neighbour_map_only_if_two_axes_show_little():
    digits = load_digits().data[:60]
    assert plots.ClustersDisplay.from_predictions(digits, np.zeros(60), map="auto").trust is not None
    flat = np.column_stack([X[:, :2], np.zeros((90, 3))])
    assert plots.ClustersDisplay.from_predictions(flat, Y, map="auto").trust is None
    assert plots.ClustersDisplay.from_predictions(digits, np.zeros(60)).trust is None


def test_the_metric_of_the_model_is_used():
    model = KMedoids(3, metric="manhattan", random_state=0).fit(X)
    shown = plots.ClustersDisplay.from_estimator(model, X, map="neighbours")
    expected = neighbour_map(pairwise(X, metric="manhattan"))
    np.testing.assert_array_equal(shown.cloud.points, expected.points)
    series = TimeSeriesKMeans(2, random_state=0).fit(X)
    warped = plots.ClustersDisplay.from_estimator(series, X, map="neighbours")
    expected = neighbour_map(pairwise(X, metric="dtw"))
    np.testing.assert_array_equal(warped.cloud.points, expected.points)


def test_precomputed_distances_are_drawn_as_distances():
    D = pairwise(X, metric="manhattan")
    model = KMedoids(3, metric="precomputed", random_state=0).fit(D)
    shown = plots.ClustersDisplay.from_estimator(model, D)
    np.testing.assert_array_equal(shown.cloud.points, principal_coordinates(D))
    assert shown.cloud.axes == ["principal coordinate 1", "principal coordinate 2"]
    near = plots.ClustersDisplay.from_estimator(model, D, map="auto")
    np.testing.assert_array_equal(near.cloud.points, neighbour_map(D).points)


def test_weights_of_zero_leave_rows_out_of_distances():
    D, weight = pairwise(X, metric="manhattan"), (np.arange(90) % 3 > 0).astype(float)
    model = KMedoids(3, metric="precomputed", random_state=0).fit(D, sample_weight=weight)
    shown = plots.ClustersDisplay.from_estimator(model, D, sample_weight=weight)
    kept = weight > 0
    np.testing.assert_allclose(shown.cloud.points, principal_coordinates(D[np.ix_(kept, kept)]), atol=1e-9)


@pytest.mark.parametrize("options, words", [
    ({"map": "pca"}, "map"),
    ({"map": "neighbours", "columns": [0, 1]}, "both choose the axes"),
])  # fmt: skip
def test_invalid_options_are_rejected(options, words):
    with pytest.raises(ParameterError, match=words):
        plots.clusters(Y, X, **options)


def test_the_sample_has_rows_of_every_cluster(monkeypatch):
    monkeypatch.setattr("coterie.plots.clusters_display.ROWS", 60)
    labels = np.where(np.arange(90) == 7, "rare", "common")
    display = plots.ClustersDisplay.from_predictions(X, labels, map="neighbours")
    assert set(display.cloud.codes) == {0, 1}
    assert len(display.cloud.points) < 90
    assert f"{len(display.cloud.points)} of 90 rows" in display.cloud.description


# far rows


def test_one_far_row_does_not_squeeze_the_figure():
    rows = np.concatenate([X[:, :2], [[1e6, 0.0]]])
    display = plots.clusters(np.append(Y, 0), rows)
    assert max(map(abs, display.get_xlim())) < 100
    assert "1 row beyond the border (arrow)" in " ".join(display.get_title(loc="left").split())
    assert len(display.rows_.get_offsets()) == 90
    assert len(display.ax_.collections) == 2


def test_one_far_value_does_not_squeeze_the_histogram():
    x = np.append(X[:, 0], 1e6)[:, None]
    display = plots.clusters(np.append(Y, 0), x)
    assert max(map(abs, display.get_xlim())) < 100
    assert display.cloud.bars.counts.sum() == 90


def test_far_rows_of_many_rows_are_counted():
    rows = np.random.default_rng(0).normal(size=(60_000, 2))
    rows[5] = 1e6
    display = plots.clusters(np.zeros(60_000), rows)
    assert display.cloud.beyond == 1
    assert display.cloud.limits.max() < 10
    assert (display.cloud.points == 1e6).all(axis=1).sum() == 1


def test_figures_of_kmeans_have_no_arrows_without_far_rows():
    display = plots.ClustersDisplay.from_estimator(KMeans(3, random_state=0).fit(X), X)
    assert display.cloud.box is None
    assert display.cloud.beyond == 0
