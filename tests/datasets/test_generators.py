import numpy as np
import pytest

from coterie.datasets import make_blobs, make_gaussians, make_moons, make_rings
from coterie.errors import ParameterError

GENERATORS = [make_blobs, make_gaussians, make_moons, make_rings]


@pytest.mark.parametrize("make", GENERATORS)
def test_the_same_seed_gives_the_same_data_and_another_seed_does_not(make):
    first, again, other = (make(50, random_state=seed)[0] for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_data_has_the_given_type_and_one_label_per_row(make, dtype):
    X, y, *_ = make(41, random_state=0, dtype=dtype)
    assert X.dtype == dtype
    assert X.shape == (41, 2)
    assert y.shape == (41,)
    assert np.isfinite(X).all()


@pytest.mark.parametrize("make", [make_blobs, make_moons, make_rings])
def test_clusters_are_of_equal_size_and_shuffled(make):
    _, y = make(60, random_state=0)
    sizes = np.bincount(y)
    assert np.ptp(sizes) == 0
    assert (np.diff(y) != 0).sum() > len(sizes)


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("bad", [{"n_samples": 0}, {"dtype": np.int64}])
def test_an_invalid_size_or_type_is_an_error(make, bad):
    with pytest.raises(ParameterError, match=next(iter(bad))):
        make(**bad)


def test_blobs_have_the_given_centers_and_standard_deviations():
    centers = np.array([[0.0, 0.0, 0.0], [50.0, -50.0, 9.0]])
    X, y = make_blobs(20_000, centers=centers, cluster_std=[0.5, 4.0], random_state=0)
    for j, spread in enumerate([0.5, 4.0]):
        np.testing.assert_allclose(X[y == j].mean(axis=0), centers[j], atol=0.15)
        np.testing.assert_allclose(X[y == j].std(axis=0), spread, rtol=0.05)


def test_random_centers_of_blobs_are_in_the_box():
    X, _ = make_blobs(200, n_features=5, centers=20, cluster_std=0.0, center_box=(2.0, 3.0), random_state=0)
    assert X.shape == (200, 5)
    assert X.min() >= 2.0
    assert X.max() <= 3.0
    assert len(np.unique(X, axis=0)) == 20


@pytest.mark.parametrize(
    "bad", [{"centers": 0}, {"centers": [1.0, 2.0]}, {"cluster_std": [1.0, 2.0]}, {"cluster_std": -1.0}]
)
def test_errors_of_blobs_name_the_invalid_argument(bad):
    with pytest.raises(ParameterError, match=next(iter(bad))):
        make_blobs(10, **bad)


def test_a_large_sample_of_gaussians_has_the_parameters_returned():
    X, y, truth = make_gaussians(60_000, n_features=3, n_components=4, random_state=1)
    np.testing.assert_allclose(truth.weights.sum(), 1.0)
    np.testing.assert_allclose(np.bincount(y) / len(y), truth.weights, atol=0.01)
    for j in range(4):
        np.testing.assert_allclose(X[y == j].mean(axis=0), truth.means[j], atol=0.15)
        scale = np.abs(truth.covariances[j]).max()
        np.testing.assert_allclose(np.cov(X[y == j].T), truth.covariances[j], atol=0.05 * scale)


def test_gaussians_are_elongated_and_rotated_by_default():
    *_, truth = make_gaussians(10, n_features=4, random_state=0)
    off_diagonal = truth.covariances[:, ~np.eye(4, dtype=bool)]
    assert np.abs(off_diagonal).max() > 0.1
    *_, round_truth = make_gaussians(10, n_features=4, elongation=1.0, random_state=0)
    np.testing.assert_allclose(round_truth.covariances, np.broadcast_to(np.eye(4), (3, 4, 4)), atol=1e-12)


@pytest.mark.parametrize("bad", [{"n_components": 0}, {"n_features": 0}, {"elongation": 0.5}])
def test_errors_of_gaussians_name_the_invalid_argument(bad):
    with pytest.raises(ParameterError, match=next(iter(bad))):
        make_gaussians(10, **bad)


def test_moons_without_noise_lie_on_two_half_circles_that_reach_into_each_other():
    X, y = make_moons(400, noise=0.0, random_state=0)
    upper, lower = X[y == 0], X[y == 1]
    np.testing.assert_allclose(np.hypot(*upper.T), 1.0)
    np.testing.assert_allclose(np.hypot(*(lower - [1.0, 0.5]).T), 1.0)
    assert upper[:, 1].min() >= 0.0
    assert lower[:, 1].max() <= 0.5
    assert lower[:, 0].min() < upper[:, 0].max()


def test_rings_share_a_centre_and_differ_in_radius():
    X, y = make_rings(3000, n_rings=3, noise=0.01, random_state=0)
    radius = np.hypot(*X.T)
    for ring in range(3):
        np.testing.assert_allclose(radius[y == ring], ring + 1, atol=0.06)
        np.testing.assert_allclose(X[y == ring].mean(axis=0), 0.0, atol=0.3)


@pytest.mark.parametrize("make", [make_moons, make_rings])
def test_negative_noise_is_an_error(make):
    with pytest.raises(ParameterError, match="noise"):
        make(10, noise=-0.1)
