"""Initialisation and random state of K-means."""

import numpy as np
import pytest

from coterie import KMeans, MiniBatchKMeans
from kmeans.kmeans_cases import BOTH, STARTS, groups, in_order, islands, objective
from many_parts import has_many_parts, weights_of_many_digits

# starts


@pytest.mark.parametrize("init", STARTS)
def test_every_start_finds_groups_that_are_far_apart(init):
    X, means = islands()
    model = KMeans(3, init=init, n_init=20, random_state=0).fit(X)
    np.testing.assert_allclose(in_order(model.cluster_centers_), in_order(means), rtol=1e-9)
    assert model.converged_


def runs(**options):
    """Initial centers of a fit."""
    seen = set()
    options = {"search": "none", "random_state": 0, "callback": lambda progress: seen.add(progress.run)} | options
    KMeans(2, **options).fit(groups(40, 2, 2))
    return seen


@pytest.mark.parametrize(
    "init, count", [("k-means++", 1), ("farthest", 1), ("forgy", 10), ("random", 10), ("random_partition", 10)]
)
def test_auto_is_ten_starts_where_one_could_be_bad_luck(init, count):
    assert runs(init=init) == set(range(count))


def test_auto_is_one_start_for_given_centers():
    assert runs(init=np.array([[0.0, 0.0], [1.0, 1.0]])) == {0}


def test_as_many_starts_are_made_as_asked_for():
    assert runs(n_init=3) == {0, 1, 2}


def test_the_best_start_is_kept():
    X = groups(300, 2, 8)
    ends = {}
    model = KMeans(8, init="forgy", n_init=8, random_state=0, callback=lambda p: ends.__setitem__(p.run, p.objective))
    model.fit(X)
    assert len(set(ends.values())) > 1  # otherwise there is nothing to choose
    assert model.inertia_ == min(ends.values())


@pytest.mark.parametrize("kind, options", [(KMeans, {}), (MiniBatchKMeans, {"max_iter": 1, "reassignment_ratio": 0.0})])
def test_an_array_is_where_the_centers_start(kind, options):
    X, _ = islands()
    start = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]])
    model = kind(3, init=start, random_state=0, **options).fit(X)
    np.testing.assert_array_equal(model.labels_, np.repeat([0, 1, 2], 20))
    assert start.tolist() == [[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]]


def test_the_first_report_is_of_the_start_itself():
    X = groups(50, 3, 3)
    first = []
    KMeans(3, init=X[[4, 8, 2]], callback=lambda progress: first.append(progress)).fit(X)
    np.testing.assert_array_equal(first[0].params, X[[4, 8, 2]])
    assert (first[0].run, first[0].iteration) == (0, 0)
    assert first[0].objective == pytest.approx(objective(X, X[[4, 8, 2]]), rel=1e-12)


@BOTH
def test_a_callable_is_given_rows_number_and_random_state(kind):
    X = groups(50, 3, 3)
    given = []

    def start(rows, n_clusters, random_state):
        given.append((rows, n_clusters, random_state))
        return rows[:n_clusters]

    model = kind(3, init=start, n_init=1, random_state=5).fit(X)
    rows, n_clusters, random_state = given[0]
    assert rows.shape[1] == 3
    assert n_clusters == 3
    assert random_state is not None
    assert model.cluster_centers_.shape == (3, 3)


def test_a_callable_is_asked_for_every_start():
    X = groups(300, 2, 8)
    starts = [X[i : i + 8] for i in (0, 50, 100, 150)]
    ends = [KMeans(8, init=start).fit(X).inertia_ for start in starts]
    assert min(ends) < ends[0]  # otherwise the first would do
    left = iter(starts)
    model = KMeans(8, init=lambda rows, k, random_state: next(left), n_init=4).fit(X)
    assert model.inertia_ == min(ends)


def test_k_means_plus_plus_does_not_start_twice_at_one_row():
    X = np.repeat(np.arange(6.0)[:, None], 50, axis=0)
    for seed in range(20):
        starts = []
        model = KMeans(6, algorithm="lloyd", random_state=seed, callback=lambda p, to=starts: to.append(p.params))
        model.fit(X)
        assert sorted(starts[0][:, 0]) == list(range(6))


def test_farthest_leaves_nothing_to_chance():
    X = groups(500, 3, 6)
    found = [KMeans(6, init="farthest", random_state=seed).fit(X).cluster_centers_ for seed in (0, 1, None)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_farthest_starts_at_the_row_farthest_from_the_mean_then_from_those_there_are():
    X = np.array([[0.0], [1.0], [2.0], [10.0], [4.5]])  # mean 3.5; farthest 10, then 0, then 4.5
    starts = []
    KMeans(3, init="farthest", algorithm="lloyd", callback=lambda progress: starts.append(progress.params)).fit(X)
    assert starts[0].tolist() == [[10.0], [0.0], [4.5]]


@pytest.mark.parametrize("init", STARTS)
def test_rows_of_weight_zero_are_no_starts(init):
    X = np.r_[groups(30, 2, 3), groups(30, 2, 3, seed=9) + 1000]
    weight = np.repeat([1.0, 0.0], 30)
    for seed in range(5):
        starts = []
        model = KMeans(4, init=init, n_init=1, random_state=seed, callback=lambda p, to=starts: to.append(p.params))
        model.fit(X, sample_weight=weight)
        assert starts[0].max() < 500


# Random state


@BOTH
@pytest.mark.parametrize("init", ["k-means++", "forgy", "random_partition"])
@pytest.mark.parametrize("n", [100, 20_000])
def test_the_same_seed_gives_the_same_bits(kind, init, n):
    X = groups(n, 4, 5)
    options = {"init": init, "n_init": 2, "random_state": 42}
    one, two = kind(5, **options).fit(X), kind(5, **options).fit(X)
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert one.inertia_ == two.inertia_


@BOTH
def test_another_seed_gives_another_start(kind):
    X = groups(300, 2, 8, apart=1.0)
    found = {kind(8, random_state=seed, max_iter=1000).fit(X).inertia_ for seed in range(5)}
    assert len(found) > 1


@BOTH
@pytest.mark.parametrize(
    "make", [lambda: np.random.RandomState(3), lambda: np.random.default_rng(3), lambda: np.int64(3), lambda: None]
)
def test_every_form_of_random_state_is_taken(kind, make):
    X = groups(100, 2, 3)
    one, two = (kind(3, random_state=make()).fit(X) for _ in range(2))
    if make() is not None:
        np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    assert np.isfinite(two.inertia_)


def test_the_number_of_threads_changes_nothing():
    X = groups(120_000, 4, 5, apart=1.0)
    assert has_many_parts(X)
    w = weights_of_many_digits(X)
    found = [KMeans(5, random_state=0, n_jobs=jobs, engine=engine).fit(X, sample_weight=w)
             for jobs, engine in ((1, "threads"), (2, "threads"), (3, "auto"), (None, "serial"))]  # fmt: skip
    for other in found[1:]:
        np.testing.assert_array_equal(other.history_, found[0].history_)
        np.testing.assert_array_equal(other.cluster_centers_, found[0].cluster_centers_)
        np.testing.assert_array_equal(other.labels_, found[0].labels_)
        assert other.inertia_ == found[0].inertia_
