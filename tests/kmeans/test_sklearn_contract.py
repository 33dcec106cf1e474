"""Compatibility with scikit-learn's tools. Its own checks are in `laws/test_sklearn_checks.py`."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from coterie import KMeans, MiniBatchKMeans

CLASSES = [KMeans, MiniBatchKMeans]


@pytest.fixture
def blobs():
    """Three groups of 30 rows, ten apart, in two columns of very different size."""
    rng = np.random.default_rng(7)
    middle = np.repeat([[0, 0], [10, -10], [20, -20]], 30, axis=0)
    return (rng.normal(size=(90, 2)) + middle) * np.array([1.0, 100.0])


def same_partition(a, b):
    """Whether two labellings differ at most in the names of the clusters."""
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len({p for p, _ in pairs}) == len({q for _, q in pairs})


def frame_of(library, X, names):
    return library.DataFrame({name: X[:, j] for j, name in enumerate(names)})


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("kind", CLASSES)
def test_set_output_gives_frames_with_named_distances(kind, library, blobs):
    frames = pytest.importorskip(library)
    model = kind(3, random_state=0).fit(blobs)
    plain = model.transform(blobs)
    model.set_output(transform=library)
    for given in (blobs, frame_of(frames, blobs, ("x", "y"))):
        fresh = clone(model).fit(given)
        found = fresh.transform(given)
        assert isinstance(found, frames.DataFrame)
        assert list(found.columns) == [f"{kind.__name__.lower()}{j}" for j in range(3)]
        np.testing.assert_array_equal(found.to_numpy(), plain)


@pytest.mark.parametrize("kind", CLASSES)
def test_set_output_keeps_the_index_of_a_pandas_frame(kind, blobs):
    pandas = pytest.importorskip("pandas")
    frame = frame_of(pandas, blobs, ("x", "y"))
    frame.index = [f"row {i}" for i in range(len(frame))]
    found = kind(3, random_state=0).set_output(transform="pandas").fit_transform(frame)
    assert found.index.equals(frame.index)


@pytest.mark.parametrize("kind", CLASSES)
def test_feature_names_out_are_one_for_each_center(kind, blobs):
    names = kind(4, random_state=0).fit(blobs).get_feature_names_out()
    assert names.tolist() == [f"{kind.__name__.lower()}{j}" for j in range(4)]


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("kind", CLASSES)
def test_the_names_of_a_frames_columns_are_kept(kind, library, blobs):
    frames = pytest.importorskip(library)
    model = kind(3, random_state=0).fit(frame_of(frames, blobs, ("height", "weight")))
    assert model.feature_names_in_.tolist() == ["height", "weight"]
    assert model.n_features_in_ == 2


@pytest.mark.parametrize("kind", CLASSES)
def test_arrays_and_frames_without_text_names_leave_no_feature_names(kind, blobs):
    pandas = pytest.importorskip("pandas")
    for given in (blobs, pandas.DataFrame(blobs)):
        model = kind(3, random_state=0).fit(given)
        assert not hasattr(model, "feature_names_in_")
        assert model.n_features_in_ == 2


@pytest.mark.parametrize("kind", CLASSES)
def test_weights_are_routed_through_a_pipeline(kind, blobs):
    weight = np.repeat([1.0, 0.0, 2.0], 30)
    options = {"n_clusters": 2, "init": "farthest", "random_state": 0}
    with sklearn.config_context(enable_metadata_routing=True):
        model = kind(**options).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        routed = Pipeline([("scale", scaler), ("cluster", model)]).fit(blobs, sample_weight=weight)
    scaled = StandardScaler().fit_transform(blobs)
    by_hand = kind(**options).fit(scaled, sample_weight=weight)
    unweighted = kind(**options).fit(scaled)
    np.testing.assert_array_equal(routed["cluster"].cluster_centers_, by_hand.cluster_centers_)
    assert not np.allclose(routed["cluster"].cluster_centers_, unweighted.cluster_centers_)


@pytest.mark.parametrize("kind", CLASSES)
def test_a_pipeline_fits_predicts_transforms_and_scores(kind, blobs):
    pipeline = make_pipeline(StandardScaler(), kind(3, random_state=0)).fit(blobs)
    scaled = StandardScaler().fit_transform(blobs)
    alone = kind(3, random_state=0).fit(scaled)
    np.testing.assert_array_equal(pipeline.predict(blobs), alone.labels_)
    np.testing.assert_array_equal(pipeline.transform(blobs), alone.transform(scaled))
    assert pipeline.score(blobs) == alone.score(scaled)
    assert same_partition(pipeline.predict(blobs), np.repeat([0, 1, 2], 30))


@pytest.mark.parametrize("kind", CLASSES)
def test_grid_search_goes_over_the_number_of_clusters(kind, blobs):
    search = GridSearchCV(kind(random_state=0), {"n_clusters": [1, 2, 3]}, cv=3).fit(
        np.random.default_rng(1).permutation(blobs)
    )
    assert search.best_params_ == {"n_clusters": 3}  # larger scores are better, and three groups there are
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("kind", CLASSES)
def test_clone_keeps_every_option_and_nothing_that_was_fitted(kind, blobs):
    model = kind(3, init="forgy", n_init=2, tol=0.5, random_state=3).fit(blobs)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert [name for name in vars(twin) if name.endswith("_")] == []
    np.testing.assert_array_equal(twin.fit(blobs).cluster_centers_, model.cluster_centers_)


@pytest.mark.parametrize("kind", CLASSES)
def test_a_pickled_model_predicts_the_same(kind, blobs):
    model = kind(3, random_state=0).fit(blobs)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(blobs), model.predict(blobs))
    np.testing.assert_array_equal(again.transform(blobs), model.transform(blobs))
    assert again.get_params() == model.get_params()


def test_a_pickled_mini_batch_model_goes_on_learning_the_same(blobs):
    model = MiniBatchKMeans(3, random_state=0).partial_fit(blobs)
    again = pickle.loads(pickle.dumps(model))
    rest = blobs[::-2]
    np.testing.assert_array_equal(again.partial_fit(rest).cluster_centers_, model.partial_fit(rest).cluster_centers_)
