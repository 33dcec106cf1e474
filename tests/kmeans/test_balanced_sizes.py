"""Balanced K-means: sizes of clusters, and options of a fit."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from coterie import BalancedKMeans
from coterie.errors import FitInterruptedWarning
from kmeans.balanced_cases import cost_of, groups

# sizes


def test_sizes_of_each_cluster_keep_the_order_of_given_centers():
    X = groups(100, 2, 3)
    model = BalancedKMeans(3, size_min=[10, 20, 70], size_max=[10, 20, 70], init=X[:3]).fit(X)
    assert model.cluster_sizes_.tolist() == [10, 20, 70]


@pytest.mark.parametrize("sizes", [[70, 20, 10], [20, 10, 70], [10, 70, 20]])
def test_the_largest_size_goes_to_the_start_that_most_rows_are_near_to(sizes):
    X = np.repeat([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]], [10, 20, 70], axis=0)
    X = X + np.random.default_rng(0).normal(size=X.shape)
    model = BalancedKMeans(3, size_min=sizes, size_max=sizes, init="farthest").fit(X)
    assert model.cluster_sizes_.tolist() == sizes
    np.testing.assert_array_equal(model.labels_, model.predict(X))  # the groups as they are


def test_one_bound_leaves_the_other_open():
    X = groups(200, 2, 3)
    low = BalancedKMeans(3, size_min=40, random_state=0).fit(X).cluster_sizes_
    high = BalancedKMeans(3, size_max=90, random_state=0).fit(X).cluster_sizes_
    assert low.min() >= 40
    assert low.max() > 67
    assert high.max() <= 90
    assert high.min() < 66


@pytest.mark.parametrize("k", [1, 12])
def test_one_cluster_and_as_many_as_rows(k):
    X = groups(12, 2, 3)
    model = BalancedKMeans(k, random_state=0).fit(X)
    assert model.cluster_sizes_.tolist() == [12 // k] * k
    assert model.inertia_ == pytest.approx(12 * X.var(axis=0).sum() if k == 1 else 0.0, abs=1e-12)


def test_rows_that_are_all_alike_are_shared_out():
    model = BalancedKMeans(3, random_state=0).fit(np.full((10, 2), 0.1))
    assert sorted(model.cluster_sizes_) == [3, 3, 4]
    assert model.inertia_ == pytest.approx(0.0, abs=1e-25)
    assert model.converged_


def test_a_cluster_that_may_be_empty_is_so_where_rows_are_too_alike_with_a_warning():
    X = np.repeat([[0.0], [5.0]], 10, axis=0)
    with pytest.warns(
        ConvergenceWarning, match="only 2 of 3 clusters have rows: use size_min=1 to give each cluster a row"
    ):
        model = BalancedKMeans(3, size_min=0, random_state=0).fit(X)
    assert sorted(model.cluster_sizes_) == [0, 10, 10]


def test_an_empty_cluster_is_moved_to_the_costliest_row():
    X = groups(60, 2, 3)
    far = np.full(2, 1e3)  # nearest to no row
    model = BalancedKMeans(3, size_min=0, size_max=40, init=np.stack([*X[:2], far])).fit(X)
    assert model.cluster_sizes_.min() > 0


# beside others


def test_no_worse_than_k_means_constrained_from_the_same_start():
    theirs = pytest.importorskip("k_means_constrained").KMeansConstrained
    X = groups(200, 3, 4)
    options = {"size_min": 30, "size_max": 70, "n_init": 1}
    ours = BalancedKMeans(4, init=X[:4], tol=0, **options).fit(X)
    other = theirs(4, init=X[:4].copy(), tol=0, random_state=0, **options).fit(X)
    assert ours.inertia_ <= other.inertia_ * (1 + 1e-4)  # which rounds costs


# running


def test_a_callback_hears_of_every_iteration_and_can_end_the_fit():
    heard = []
    X = groups(300, 3, 6)
    model = BalancedKMeans(6, random_state=0, callback=lambda p: heard.append(p) or len(heard) == 3).fit(X)
    assert [progress.iteration for progress in heard] == [0, 1, 2]
    assert [progress.objective for progress in heard] == model.history_.tolist()
    for progress in heard:
        labels = np.concatenate(progress.params.labels)
        assert set(np.bincount(labels)) == {50}
        assert progress.objective == pytest.approx(cost_of(X, labels, progress.params.centers), rel=1e-12)


def test_an_interrupt_keeps_the_clusters_so_far():
    def watch(progress):
        if progress.iteration == 2:
            raise KeyboardInterrupt

    X = groups(300, 3, 6)
    with pytest.warns(FitInterruptedWarning):
        model = BalancedKMeans(6, random_state=0, callback=watch).fit(X)
    assert model.cluster_sizes_.tolist() == [50] * 6


def test_verbose_prints_every_iteration(capsys):
    model = BalancedKMeans(3, verbose=2, random_state=0).fit(groups(100, 2, 3))
    assert len(capsys.readouterr().out.splitlines()) == model.n_iter_ + 1


def test_running_out_of_iterations_warns_with_the_remedy():
    with pytest.warns(ConvergenceWarning, match="BalancedKMeans did not converge in max_iter=1.*raise max_iter"):
        BalancedKMeans(4, max_iter=1, tol=0, random_state=0).fit(groups(300, 2, 6, apart=1.0))


def test_a_number_gives_the_same_answer_every_time():
    X = groups(400, 2, 9)
    first, again = (BalancedKMeans(9, random_state=4).fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, again.labels_)


def test_frames_are_read_and_a_pickled_model_predicts_the_same():
    pandas = pytest.importorskip("pandas")
    X = groups(90, 2, 3)
    model = BalancedKMeans(3, random_state=0).fit(pandas.DataFrame(X, columns=["x", "y"]))
    assert model.feature_names_in_.tolist() == ["x", "y"]
    again = pickle.loads(pickle.dumps(model))
    frame = pandas.DataFrame(X[:5], columns=["x", "y"])
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
