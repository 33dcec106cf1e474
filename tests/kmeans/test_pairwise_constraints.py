"""Must-link and cannot-link constraints: every assignment is the cheapest that satisfies them."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from coterie import BalancedKMeans, KMeans
from coterie.errors import ParameterError
from coterie.kmeans.pairwise_constraints import as_constraints, check_constraints, colourable

QUICK = settings(max_examples=80, deadline=None)


def groups(n, d, k, seed=0, apart=4.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + apart * rng.normal(size=(k, d))[rng.integers(k, size=n)]


def satisfies(labels, must_link, cannot_link):
    return all(labels[i] == labels[j] for i, j in must_link) and all(labels[i] != labels[j] for i, j in cannot_link)


def cheapest(costs, size_min, size_max, must_link, cannot_link):
    """Minimum cost over all assignments that satisfy sizes and constraints; infinite if there is none."""
    n, k = costs.shape
    best = np.inf
    for labels in itertools.product(range(k), repeat=n):
        size = np.bincount(labels, minlength=k)
        if (size_min <= size).all() and (size <= size_max).all() and satisfies(labels, must_link, cannot_link):
            best = min(best, costs[np.arange(n), labels].sum())
    return best


@st.composite
def problems(draw):
    """Costs of a few rows, sizes, and constraints that may contradict each other."""
    n, k = draw(st.integers(2, 7)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    costs = rng.random((n, k)) if draw(st.booleans()) else rng.integers(0, 3, (n, k)).astype(float)
    size = np.bincount(rng.integers(k, size=n), minlength=k)
    loose = draw(st.sampled_from([0, 1, n]))
    size_min, size_max = np.maximum(size - loose, 0), size + loose
    pairs = st.lists(st.permutations(range(n)).map(lambda rows: tuple(rows[:2])), max_size=3)
    prices = rng.normal(size=k) * draw(st.booleans())
    return costs, size_min, size_max, draw(pairs), draw(pairs), prices


UNSOLVED = np.array([[2, 1], [0, 2], [0, 1], [0, 2], [0, 1], [1, 1], [1, 1]], float)  # by HiGHS with presolve


@given(problems())
@example((UNSOLVED, np.array([2, 3]), np.array([4, 5]), [(0, 1), (0, 2), (0, 4)], [], np.zeros(2)))
@QUICK
def test_an_assignment_is_the_cheapest_that_satisfies_constraints_and_sizes_or_none_exists(problem):
    costs, size_min, size_max, must_link, cannot_link, prices = problem
    n, k = costs.shape
    best, counts = cheapest(costs, size_min, size_max, must_link, cannot_link), np.ones(n, bool)
    try:
        constraints = as_constraints(must_link, cannot_link, n)
        check_constraints(constraints, counts, size_min, size_max)
    except ParameterError:
        assert best == np.inf
        return
    assert best < np.inf
    if constraints is not None:
        labels = np.full(n, -1, np.int32)
        constraints.assign(costs, counts, size_min, size_max, prices, labels)
        assert satisfies(labels, must_link, cannot_link)
        size = np.bincount(labels, minlength=k)
        assert (size_min <= size).all()
        assert (size <= size_max).all()
        assert costs[np.arange(n), labels].sum() == pytest.approx(best, abs=1e-6)


@given(st.integers(0, 2**32 - 1), st.sampled_from([{}, {"size_min": 0}, {"size_min": 1, "size_max": 4}]))
@settings(max_examples=15, deadline=None)
def test_every_step_of_a_fit_is_at_the_cheapest_division(seed, sizes):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(7, 2)), rng.random(7) + 0.1
    must_link, cannot_link = [(0, 4)], [(4, 2), (1, 2), (5, 6)]
    seen = []
    options = {"init": X[:3], "must_link": must_link, "cannot_link": cannot_link, **sizes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of empty clusters
        model = BalancedKMeans(3, callback=seen.append, **options).fit(X, sample_weight=w)
    size_min, size_max = {(): (2, 3), (0,): (0, 7), (1, 4): (1, 4)}[tuple(sizes.values())]
    assert satisfies(model.labels_, must_link, cannot_link)
    assert (np.diff(model.history_) <= 1e-12 * model.history_[:-1]).all()
    for progress in seen:
        costs = w[:, None] * ((X[:, None] - progress.params.centers) ** 2).sum(axis=2)
        best = cheapest(costs, np.full(3, size_min), np.full(3, size_max), must_link, cannot_link)
        assert progress.objective == pytest.approx(best, rel=1e-6)


# many rows


@pytest.mark.parametrize(
    "sizes", [{}, {"size_min": 0}, {"size_min": 100, "size_max": 400}], ids=["even", "free", "wide"]
)
def test_links_and_sizes_hold_among_many_rows(sizes):
    X, rng = groups(1000, 4, 4), np.random.default_rng(1)
    pairs = rng.permutation(1000)[:80].reshape(-1, 2)
    must_link, cannot_link = pairs[:15], pairs[15:]
    model = BalancedKMeans(4, must_link=must_link, cannot_link=cannot_link, random_state=0, **sizes).fit(X)
    assert satisfies(model.labels_, must_link, cannot_link)
    assert (np.diff(model.history_) <= 1e-12 * model.history_[:-1]).all()
    assert model.cluster_sizes_.min() >= sizes.get("size_min", 250)
    assert model.cluster_sizes_.max() <= (sizes.get("size_max", 1000) if sizes else 250)


def test_constraints_that_hold_anyway_change_nothing():
    X = groups(300, 3, 3, apart=30.0)
    plain = KMeans(3, init=X[:3]).fit(X)
    same = np.flatnonzero(plain.labels_ == 0)[:6].reshape(-1, 2)
    other = np.stack([np.flatnonzero(plain.labels_ == 1)[:3], np.flatnonzero(plain.labels_ == 2)[:3]], axis=1)
    linked = BalancedKMeans(3, size_min=0, init=X[:3], must_link=same, cannot_link=other).fit(X)
    np.testing.assert_array_equal(linked.labels_, plain.labels_)


def test_links_of_links_are_links():
    X = groups(60, 2, 3)
    chain = np.stack([np.arange(9), np.arange(1, 10)], axis=1)
    labels = BalancedKMeans(3, must_link=chain, random_state=0).fit_predict(X)
    assert len(set(labels[:10])) == 1


def test_all_rows_in_groups_of_two_are_shared_out_evenly():
    X = groups(24, 2, 3)
    pairs = np.arange(24).reshape(-1, 2)
    model = BalancedKMeans(3, must_link=pairs, random_state=0).fit(X)
    assert model.cluster_sizes_.tolist() == [8, 8, 8]
    assert satisfies(model.labels_, pairs, [])


def test_rows_of_weight_zero_keep_their_links_and_take_no_place():
    X = groups(33, 2, 3)
    w = np.repeat([1.0, 0.0], [30, 3])
    constraints = {"must_link": [(30, 0)], "cannot_link": [(31, 32), (31, 1)]}
    model = BalancedKMeans(3, random_state=0, **constraints).fit(X, sample_weight=w)
    assert satisfies(model.labels_, **constraints)
    assert model.cluster_sizes_.tolist() == [10, 10, 10]
    np.testing.assert_array_equal(np.bincount(model.labels_[:30]), [10, 10, 10])


def test_no_links_are_as_none():
    X = groups(60, 2, 3)
    plain = BalancedKMeans(3, random_state=0).fit(X)
    empty = BalancedKMeans(3, must_link=[], cannot_link=np.empty((0, 2), int), random_state=0).fit(X)
    np.testing.assert_array_equal(plain.labels_, empty.labels_)


# contradictions


CYCLE = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]


@pytest.mark.parametrize(
    "options, words",
    [
        (
            {"must_link": [(3, 5), (5, 8)], "cannot_link": [(3, 8)]},
            r"cannot_link \(3, 8\) contradicts must_link, which links rows 3, 5, 8: remove one of these",
        ),
        (
            {"cannot_link": list(itertools.combinations([1, 4, 7, 9], 2)), "n_clusters": 3},
            "cannot_link needs more than n_clusters=3 clusters: rows 1, 4, 7, 9 exclude each other; raise n_clusters",
        ),
        (
            {"cannot_link": CYCLE, "n_clusters": 2},
            "cannot_link needs more than n_clusters=2 clusters; raise n_clusters",
        ),
        (
            {"must_link": [(i, i + 1) for i in range(11)], "size_min": 0, "size_max": 10},
            r"must_link joins 12 rows \(0, 1, 2, 3, 4, 5, 6, 7 and 4 more\), but a cluster has at most size_max=10",
        ),
        (
            {"must_link": [(2 * i, 2 * i + 1) for i in range(10)], "n_clusters": 4},
            "must_link, cannot_link, size_min and size_max cannot all be satisfied: relax the sizes",
        ),
        (
            {"cannot_link": [(0, i) for i in range(1, 16)], "n_clusters": 2},
            "must_link, cannot_link, size_min and size_max cannot all be satisfied",
        ),
        ({"must_link": [(0, 20)]}, "must_link contains row 20, but the rows of X are 0 to 19"),
        ({"cannot_link": [(-1, 2)]}, "cannot_link contains row -1, but the rows of X are 0 to 19"),
        ({"must_link": [(3, 3)]}, r"must_link must pair different rows; got \(3, 3\)"),
        ({"cannot_link": [(3, 3)]}, r"cannot_link must pair different rows; got \(3, 3\)"),
        ({"must_link": [1, 2]}, r"must_link must be None or pairs of row indices \(m, 2\); got int64 of shape \(2,\)"),
        (
            {"must_link": [(1.0, 2.0)]},
            r"must_link must be None or pairs of row indices .* got float64 of shape \(1, 2\)",
        ),
        (
            {"cannot_link": [(1, 2), (3,)]},
            r"cannot_link must be None or pairs of row indices .* got \[\(1, 2\), \(3,\)\]",
        ),
        ({"cannot_link": "all"}, r"cannot_link must be None or pairs of row indices .* got <U3 of shape \(\)"),
    ],
)
def test_contradictory_constraints_are_rejected_before_any_work(options, words):
    def watch(progress):
        raise AssertionError("it was begun")

    with pytest.raises(ParameterError, match=words):
        BalancedKMeans(**{"n_clusters": 3, "callback": watch, **options}).fit(groups(20, 2, 3))


def test_as_many_clusters_as_a_graph_needs_are_enough():
    cycle = np.array(CYCLE)
    assert not colourable(cycle, 5, 2)
    assert colourable(cycle, 5, 3)
    crown = np.array([(i, 10 + j) for i in range(10) for j in range(10) if i != j])  # taking turns needs ten, two do
    assert colourable(crown, 20, 2)
