"""The rows, clusters and weights that a figure shows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import DBSCAN

from coterie import (
    AgglomerativeClustering,
    BalancedKMeans,
    DivisiveClustering,
    FuzzyCMeans,
    GaussianMixture,
    KernelKMeans,
    KMeans,
    KMedoids,
    MiniBatchKMeans,
    Mixture,
    diagnose,
    plots,
)
from coterie.datasets import make_blobs
from coterie.distances import pairwise
from coterie.errors import InputError
from coterie.metrics.model_labels import labels_by
from coterie.plots import cloud as drawing
from coterie.plots import silhouette_display
from coterie.plots.projection import View, as_rows

pytest.importorskip("matplotlib")

X = make_blobs(150, 2, centers=3, cluster_std=1.2, random_state=0)[0]
WIDE = make_blobs(90, 4, centers=3, cluster_std=2.0, random_state=0)[0]
ORDER = np.random.default_rng(0).permutation(150)
W = np.random.default_rng(1).integers(0, 4, size=150)
HOLES = np.where(np.random.default_rng(2).random(WIDE.shape) < 0.1, np.nan, WIDE)
HOLES = HOLES[~np.isnan(HOLES).all(axis=1)]

PREDICT = {
    "kmeans": KMeans(3, random_state=0),
    "batches": MiniBatchKMeans(3, random_state=0),
    "fuzzy": FuzzyCMeans(3, random_state=0),
    "kernel": KernelKMeans(3, random_state=0),
    "medoids": KMedoids(3, random_state=0),
    "gaussians": GaussianMixture(3, random_state=0),
    "any": Mixture(3, "student_t", random_state=0, max_iter=30),
    "bisecting tree": DivisiveClustering(3, method="bisecting", random_state=0),
}
DIVIDE = {
    **{
        f"{linkage} tree": AgglomerativeClustering(3, linkage=linkage)
        for linkage in ("ward", "single", "complete", "average", "weighted", "centroid", "median")
    },
    "tree of another distance": AgglomerativeClustering(3, linkage="average", metric="mahalanobis"),
    "diana": DivisiveClustering(3),
    "sizes": BalancedKMeans(3, size_min=20, size_max=[90, 40, 40], random_state=0),
}


def fitted(name, w=None):
    model = (PREDICT | DIVIDE)[name]
    model = type(model)(**model.get_params(deep=False))
    return model.fit(X) if w is None else model.fit(X, sample_weight=w)


# which cluster


@pytest.mark.parametrize("name", PREDICT)
def test_clusters_do_not_depend_on_the_order_of_rows(name):
    model = fitted(name)
    np.testing.assert_array_equal(labels_by(model, X, 150), model.labels_)
    np.testing.assert_array_equal(labels_by(model, X[ORDER], 150), model.labels_[ORDER])
    np.testing.assert_array_equal(labels_by(model, X + 0.5, 150), model.predict(X + 0.5))


@pytest.mark.parametrize(
    "name, weighted",
    [(name, weighted) for name in DIVIDE for weighted in (False, True) if (name, weighted) != ("diana", True)],
)
def test_fitted_rows_have_the_labels_of_the_fit_and_others_are_predicted(name, weighted):
    w = W.astype(float) if weighted else None
    model = fitted(name, w)
    np.testing.assert_array_equal(labels_by(model, X, 150, w), model.labels_)
    other = X[ORDER]
    there = None if w is None else w[ORDER]
    np.testing.assert_array_equal(labels_by(model, other, 150, there), model.predict(other))


def test_the_sizes_of_balanced_clusters_are_drawn():
    model = fitted("sizes")
    assert (model.predict(X) != model.labels_).any()
    display = plots.ClustersDisplay.from_estimator(model, X)
    np.testing.assert_array_equal(display.cloud.sizes, model.cluster_sizes_)


def test_silhouettes_and_diagnoses_do_not_depend_on_the_order_of_rows():
    apart = make_blobs(150, 2, centers=3, cluster_std=0.3, random_state=0)[0]
    model = KMeans(3, random_state=0).fit(apart)
    one, other = (plots.SilhouetteDisplay.from_estimator(model, rows) for rows in (apart, apart[ORDER]))
    assert one.mean == pytest.approx(other.mean, abs=1e-12)
    assert one.mean > 0.8
    assert diagnose(apart[ORDER], model=model, random_state=0)["boundary_rows"].finding is None


def test_models_without_predict_need_the_rows_of_the_fit():
    model = DBSCAN(eps=2).fit(X)
    np.testing.assert_array_equal(labels_by(model, X, 150), model.labels_)
    with pytest.raises(InputError, match="X has 20 rows, but model was fitted to 150 rows and cannot predict"):
        plots.clusters(model, X[:20])
    with pytest.raises(ValueError, match="X has 1 features, but DBSCAN is expecting 2"):
        plots.clusters(model, X[:, :1])


@pytest.mark.parametrize(
    "model", [KMedoids(3, metric="precomputed"), AgglomerativeClustering(3, metric="precomputed", linkage="average")]
)
def test_distances_must_be_those_of_the_fit(model):
    D = pairwise(X)
    model.fit(D)
    assert plots.SilhouetteDisplay.from_estimator(model, D).sizes.sum() == 150
    with pytest.raises(InputError, match="must be the matrix of distances that the model was fitted to"):
        plots.silhouette(model, D[np.ix_(ORDER, ORDER)])


# values that are missing


def test_missing_values_are_drawn_at_the_means_and_the_caption_says_so():
    model = KMeans(3, missing="ignore", random_state=0).fit(HOLES)
    display = plots.ClustersDisplay.from_estimator(model, HOLES)
    np.testing.assert_array_equal(display.cloud.codes, model.labels_)
    count = int(np.isnan(HOLES).sum())
    assert f"; {count} missing values at the means of their columns" in display.ax_.get_title(loc="left").replace(
        "\n", " "
    )
    filled = np.where(np.isnan(HOLES), np.nanmean(HOLES, axis=0), HOLES)
    np.testing.assert_allclose(display.cloud.points, View.of(as_rows(filled)).points(filled), atol=1e-9)
    assert display.cloud.axes == View.of(as_rows(filled)).axes


@pytest.mark.parametrize("name", ["clusters", "voronoi", "profiles", "ellipses", "responsibilities"])
@pytest.mark.parametrize("of", ["model", "labels"])
def test_figures_of_models_with_missing_values_accept_them(name, of):
    soft = name in ("ellipses", "responsibilities")
    model = (GaussianMixture if soft else KMeans)(3, missing="ignore", random_state=0).fit(HOLES)
    labels = model.predict_proba(HOLES) if name == "responsibilities" else model.labels_
    ax = getattr(plots, name)(model if of == "model" else labels, HOLES)
    assert "missing values" in ax.get_title(loc="left").replace("\n", " ")
    ax.figure.draw_without_rendering()


def test_means_of_profiles_ignore_missing_values():
    model = KMeans(3, missing="ignore", random_state=0).fit(HOLES)
    display = plots.ProfilesDisplay.from_estimator(model, HOLES)
    frame = pd.DataFrame(HOLES)
    np.testing.assert_allclose(display.means, frame.groupby(model.labels_).mean())
    np.testing.assert_allclose(display.scores, (display.means - frame.mean().to_numpy()) / frame.std(ddof=0).to_numpy())


def test_a_cell_without_any_value_is_blank():
    rows = np.array([[0.0, 1.0], [1.0, 2.0], [8.0, np.nan], [9.0, np.nan]])
    display = plots.ProfilesDisplay.from_predictions(rows, [0, 0, 1, 1])
    assert np.isnan(display.means[1, 1])
    assert display.scores[1, 1] == 0
    assert [text.get_text() for text in display.texts_] == ["0.5", "1.5", "8.5"]
    assert display.to_dict()["means"][1][1] is None


def test_errors_about_missing_values():
    model = KMeans(3, random_state=0).fit(WIDE)
    with pytest.raises(InputError, match=r"contains NaN: column 0 .*missing='ignore'"):
        plots.clusters(model, HOLES)
    model = KMeans(3, missing="ignore", random_state=0).fit(HOLES)
    with pytest.raises(InputError, match=r"contains NaN: column 0 \(\d+\).*Silhouettes need complete rows") as error:
        plots.silhouette(model, HOLES)
    assert "missing=" not in str(error.value)


# weights


TWICE = np.repeat(X, W, axis=0)
LABELS = KMeans(3, random_state=0).fit(X).labels_


def cloud_of(display):
    cloud = display.cloud
    return {"sizes": cloud.sizes, "centers": cloud.centers, "axes": cloud.axes, "n": cloud.total}


WEIGHED = {
    "clusters": (plots.ClustersDisplay, LABELS, cloud_of),
    "voronoi": (plots.VoronoiDisplay, LABELS, lambda display: {**cloud_of(display), "owner": display.owner}),
    "ellipses": (
        plots.EllipsesDisplay,
        LABELS,
        lambda display: {**cloud_of(display), "spreads": display.covariances, "weights": display.weights},
    ),
    "silhouette": (
        plots.SilhouetteDisplay,
        LABELS,
        lambda display: {name: getattr(display, name) for name in ("sizes", "means", "below", "mean")},
    ),
    "profiles": (
        plots.ProfilesDisplay,
        LABELS,
        lambda display: {name: getattr(display, name) for name in ("sizes", "means", "scores")},
    ),
    "responsibilities": (
        plots.ResponsibilitiesDisplay,
        GaussianMixture(3, init_params="kmeans", random_state=0).fit(X).predict_proba(X),
        lambda display: {**cloud_of(display), "unsure": display.unsure},
    ),
}


def assert_alike(one, other):
    assert set(one) == set(other)
    for name, value in one.items():
        if name == "axes":
            assert value == other[name]
        else:
            np.testing.assert_allclose(value, other[name], rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("name", WEIGHED)
def test_weight_two_is_the_row_twice(name, d):
    display, result, told = WEIGHED[name]
    rows = np.column_stack([X, X[:, 0] * X[:, 1]])[:, :d]
    weighted = display.from_predictions(rows, result, sample_weight=W)
    twice = display.from_predictions(np.repeat(rows, W, axis=0), np.repeat(result, W, axis=0))
    assert_alike(told(weighted), told(twice))
    assert "weights" in weighted.ax_.get_title(loc="left").replace("\n", " ")
    assert "weight" not in twice.ax_.get_title(loc="left")


@pytest.mark.parametrize("name", ["clusters", "silhouette", "profiles"])
def test_weights_of_a_fit_are_weights_of_its_figures(name):
    display, _, told = WEIGHED[name]
    model = KMeans(3, random_state=0).fit(X, sample_weight=W)
    weighted = display.from_estimator(model, X, sample_weight=W)
    assert_alike(told(weighted), told(display.from_estimator(model, TWICE)))
    with pytest.raises(InputError, match="sample_weight must be one number for each of the 150 rows"):
        display.from_estimator(model, X, sample_weight=[1, 2])


def test_bars_and_shades_are_sums_of_weights(monkeypatch):
    monkeypatch.setattr(drawing, "n_bins_for", lambda n: 12)
    one, other = (
        plots.ClustersDisplay.from_predictions(rows[:, :1], labels, sample_weight=w).cloud.bars
        for rows, labels, w in ((X, LABELS, W), (TWICE, np.repeat(LABELS, W), None))
    )
    np.testing.assert_array_equal(one.counts, other.counts)
    monkeypatch.setattr(drawing, "MANY", 10)
    monkeypatch.setattr(drawing, "CELLS", 6)
    mixed = np.arange(150) % 3
    one, other = (
        plots.ClustersDisplay.from_predictions(rows, labels, sample_weight=w).cloud.shades
        for rows, labels, w in ((X, mixed, W), (TWICE, np.repeat(mixed, W), None))
    )
    np.testing.assert_array_equal(one.counts, other.counts)
    np.testing.assert_array_equal(one.owner, other.owner)
    assert one.counts.sum() == W.sum()


def test_heights_of_silhouette_areas_are_weights():
    display = plots.SilhouetteDisplay.from_predictions(
        [[0.0], [1.0], [9.0], [12.0]], [0, 0, 1, 1], sample_weight=[1, 3, 1, 1]
    )
    values = np.sort(np.unique(display.outlines[0]))
    assert len(values) == 2
    shares = [np.mean(display.outlines[0] == value) for value in values]
    assert sorted(shares) == [0.25, 0.75]
    assert len(display.outlines[0]) == silhouette_display.STEPS


def test_the_legend_shows_weights():
    ax = plots.clusters(LABELS, X, sample_weight=np.where(np.arange(150) < 75, 0.5, 1.0))
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert all(": weight " in text for text in texts)
    assert ax.get_title(loc="left") == "3 clusters, 150 rows, counted by weights"
