"""Bisecting K-means: repeated splits of the worst cluster."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from coterie import BisectingKMeans, KMeans
from coterie.errors import FitInterruptedWarning, InputError, ParameterError
from coterie.kmeans import bisecting_kmeans
from many_parts import many_parts, weights_of_many_digits
from reference.shared_data import published

SINGLE = pytest.mark.parametrize("dtype", [np.float64, np.float32])
FORMS = pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
STRATEGIES = pytest.mark.parametrize("strategy", ["biggest_inertia", "largest_cluster"])
# NumPy kernels; compiled kernels, in several parts
SIZES = pytest.mark.parametrize("n, d, k", [(90, 3, 7), (9000, 8, 9)], ids=["small", "large"])


def groups(n, d, k, seed=0, apart=4.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + apart * rng.normal(size=(k, d))[rng.integers(k, size=n)]


def own_costs(X, model, w=None):
    """Cost of every cluster, in float64."""
    gone = np.asarray(X, np.float64) - model.cluster_centers_[model.labels_]
    squares = (gone**2).sum(axis=1) * (1 if w is None else w)
    return np.bincount(model.labels_, squares, len(model.cluster_centers_))


def by_hand(tree, X):
    """Labels of the tree, one row at a time."""
    labels = []
    for x in np.asarray(X, np.float64):
        node = 0
        while tree.children[node, 0] >= 0:
            node = min(tree.children[node], key=lambda child: ((x - tree.centers[child]) ** 2).sum())
        labels.append(tree.clusters[node])
    return np.array(labels)


# what the attributes say


@SIZES
@SINGLE
@FORMS
@STRATEGIES
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_attributes_belong_together(n, d, k, dtype, form, strategy, weighted):
    X = groups(n, d, k).astype(dtype)
    w = np.random.default_rng(2).random(n) if weighted else None
    model = BisectingKMeans(k, bisecting_strategy=strategy, random_state=0).fit(form(X), sample_weight=w)
    eps = 1e-9 if dtype == np.float64 else 1e-5
    assert model.cluster_centers_.shape == (k, d)
    assert model.cluster_centers_.dtype == dtype
    assert set(model.labels_) == set(range(k))
    assert model.labels_.dtype == np.int32
    np.testing.assert_array_equal(model.labels_, model.predict(form(X)))
    assert model.inertia_ == pytest.approx(own_costs(X, model, w).sum(), rel=eps)
    assert model.score(form(X), sample_weight=w) == pytest.approx(-model.inertia_, rel=eps)
    assert len(model.history_) == k
    assert model.history_[-1] == model.inertia_
    assert (np.diff(model.history_) < 0).all()
    found = model.transform(form(X))
    own = found[np.arange(n), model.labels_].astype(np.float64)
    assert found.shape == (n, k)
    assert found.dtype == dtype
    assert (own**2) @ (np.ones(n) if w is None else w) == pytest.approx(model.inertia_, rel=10 * eps)


def test_labels_are_where_the_tree_leads():
    X, new = groups(200, 3, 6), groups(100, 3, 6, seed=5)
    model = BisectingKMeans(6, random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, by_hand(model.tree_, X))
    np.testing.assert_array_equal(model.predict(new), by_hand(model.tree_, new))


def test_the_tree_is_plain_arrays():
    model = BisectingKMeans(6, random_state=0).fit(groups(200, 3, 6))
    children, centers, clusters = model.tree_
    assert children.shape == (11, 2)
    assert centers.shape == (11, 3)
    inner = children[:, 0] >= 0
    assert inner.sum() == 5
    assert sorted(children[inner].ravel()) == list(range(1, 11))  # every node but the first has one parent
    assert (children[inner] > np.flatnonzero(inner)[:, None]).all()
    np.testing.assert_array_equal(clusters >= 0, ~inner)
    np.testing.assert_array_equal(model.cluster_centers_[clusters[~inner]], centers[~inner])


def test_the_clusters_of_a_branch_have_successive_labels():
    tree = BisectingKMeans(9, random_state=0).fit(groups(300, 3, 9)).tree_

    def labels(node):
        first, second = tree.children[node]
        return [tree.clusters[node]] if first < 0 else labels(first) + labels(second)

    assert labels(0) == list(range(9))


@STRATEGIES
def test_the_cluster_that_is_cut_is_the_worst_one(strategy):
    X = groups(300, 3, 8)
    for k in range(2, 9):
        model = BisectingKMeans(k, bisecting_strategy=strategy, init="farthest").fit(X)
        more = BisectingKMeans(k + 1, bisecting_strategy=strategy, init="farthest").fit(X)
        size = own_costs(X, model) if strategy == "biggest_inertia" else np.bincount(model.labels_)
        cut = np.flatnonzero([len(set(more.labels_[model.labels_ == j])) == 2 for j in range(k)])
        assert cut.tolist() == [int(size.argmax())]


# laws


@SIZES
@SINGLE
@FORMS
def test_two_clusters_are_those_of_kmeans(n, d, k, dtype, form):
    X = groups(n, d, k).astype(dtype)
    ours = BisectingKMeans(2, random_state=3).fit(form(X))
    plain = KMeans(2, search="none", random_state=3).fit(form(X))
    np.testing.assert_array_equal(ours.labels_, plain.labels_)
    rounding = 4 * np.finfo(dtype).eps * np.abs(X).max()  # the centers before the last iteration differ in rounding
    np.testing.assert_allclose(ours.cluster_centers_, plain.cluster_centers_, rtol=0, atol=rounding)
    assert ours.inertia_ == pytest.approx(plain.inertia_, rel=max(1e-12, float(np.finfo(dtype).eps)))


def test_one_cluster_is_the_mean():
    X = groups(60, 3, 3)
    model = BisectingKMeans(1).fit(X)
    np.testing.assert_allclose(model.cluster_centers_, [X.mean(axis=0)], rtol=1e-12)
    assert model.inertia_ == pytest.approx(60 * X.var(axis=0).sum(), rel=1e-12)
    assert not model.labels_.any()
    assert not model.predict(X).any()


def test_a_cut_is_two_means_of_the_rows_of_its_cluster_alone():
    X = groups(300, 3, 6)
    two = BisectingKMeans(2, init="farthest").fit(X)
    three = BisectingKMeans(3, init="farthest").fit(X)
    worst = int(own_costs(X, two).argmax())
    mine = two.labels_ == worst
    halves = KMeans(2, init="farthest").fit(X[mine])
    np.testing.assert_allclose(
        sorted(three.tree_.centers[3:].tolist()), sorted(halves.cluster_centers_.tolist()), rtol=1e-9
    )
    assert three.inertia_ == pytest.approx(own_costs(X, two)[1 - worst] + halves.inertia_, rel=1e-9)


@STRATEGIES
def test_weight_two_is_the_row_twice(strategy):
    X = groups(400, 3, 6)
    options = {"init": "farthest", "bisecting_strategy": strategy}
    heavy = BisectingKMeans(6, **options).fit(X, sample_weight=np.repeat([1.0, 2.0], 200))
    twice = BisectingKMeans(6, **options).fit(np.r_[X, X[200:]])
    np.testing.assert_allclose(heavy.cluster_centers_, twice.cluster_centers_, atol=1e-9)
    np.testing.assert_array_equal(heavy.labels_, twice.labels_[:400])


@STRATEGIES
def test_rows_of_weight_zero_count_for_nothing(strategy):
    X = groups(400, 3, 6)
    options = {"init": "farthest", "bisecting_strategy": strategy}
    ignored = BisectingKMeans(6, **options).fit(X, sample_weight=np.repeat([1.0, 0.0], 200))
    absent = BisectingKMeans(6, **options).fit(X[:200])
    np.testing.assert_allclose(ignored.cluster_centers_, absent.cluster_centers_, atol=1e-9)
    np.testing.assert_array_equal(ignored.labels_, absent.predict(X))


@FORMS
@SINGLE
def test_threads_change_nothing(form, dtype, monkeypatch):
    X = form(groups(3000, 20, 9).astype(dtype))
    many_parts(monkeypatch, X)
    w = weights_of_many_digits(X)
    alone = BisectingKMeans(9, random_state=0, n_jobs=1).fit(X, sample_weight=w)
    for jobs in (3, 8):
        together = BisectingKMeans(9, random_state=0, n_jobs=jobs).fit(X, sample_weight=w)
        for ours, theirs in zip(together.tree_, alone.tree_, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(together.labels_, alone.labels_)
        assert together.inertia_ == alone.inertia_


@SIZES
def test_dense_and_sparse_rows_give_the_same(n, d, k):
    X = groups(n, d, k)
    X[np.random.default_rng(4).random(X.shape) < 0.5] = 0
    dense = BisectingKMeans(k, init="farthest").fit(X)
    thin = BisectingKMeans(k, init="farthest").fit(sparse.csr_array(X))
    np.testing.assert_array_equal(dense.labels_, thin.labels_)
    np.testing.assert_allclose(dense.cluster_centers_, thin.cluster_centers_, atol=1e-9)


def test_dask_rows_give_the_same_lazily():
    da = pytest.importorskip("dask.array")
    X, w = groups(600, 4, 5), np.random.default_rng(1).random(600)
    lazy = da.from_array(X, chunks=(150, -1))
    model = BisectingKMeans(5, init="farthest").fit(lazy, sample_weight=w)
    plain = BisectingKMeans(5, init="farthest").fit(X, sample_weight=w)
    assert hasattr(model.labels_, "dask")
    np.testing.assert_array_equal(model.labels_.compute(), plain.labels_)
    np.testing.assert_allclose(model.cluster_centers_, plain.cluster_centers_, atol=1e-9)


def test_more_initialisations_of_a_split_are_never_worse():
    X = groups(400, 2, 12)
    one, many = (BisectingKMeans(2, init="forgy", n_init=n, random_state=0).fit(X) for n in (1, 20))
    assert many.inertia_ <= one.inertia_


def test_a_number_gives_the_same_answer_every_time():
    X = groups(400, 2, 12)
    first, again = (BisectingKMeans(9, random_state=4).fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.cluster_centers_, again.cluster_centers_)


# published


def test_the_example_of_the_scikit_learn_manual():
    value = published("sklearn.bisect.toy")["value"]["centers"]
    X = np.array([[1, 1], [10, 1], [3, 1], [10, 0], [2, 1], [10, 2], [10, 8], [10, 9], [10, 10]])
    for seed in range(5):
        model = BisectingKMeans(3, random_state=seed).fit(X)
        assert sorted(model.cluster_centers_.tolist()) == sorted(value)
        assert model.predict([[0, 0], [12, 0]]).tolist() == [model.labels_[0], model.labels_[1]]


# edges


def test_fewer_distinct_rows_than_clusters_are_all_found_with_a_warning():
    X = np.repeat([[0.1, 0.2], [1.3, 5.7], [9.1, 2.9]], 10, axis=0)
    with pytest.warns(ConvergenceWarning, match="only 3 of 5 clusters have rows: X has too few distinct rows"):
        model = BisectingKMeans(5, random_state=0).fit(X)
    assert model.cluster_centers_.shape == (3, 2)
    assert model.transform(X).shape == (30, 3)
    np.testing.assert_allclose(model.cluster_centers_[model.labels_], X, rtol=1e-12)
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_as_many_clusters_as_rows_cost_nothing():
    X = groups(25, 3, 4)
    model = BisectingKMeans(25, random_state=0).fit(X)
    assert model.inertia_ == 0
    assert sorted(model.labels_) == list(range(25))


def test_running_out_of_iterations_warns_with_the_remedy():
    with pytest.warns(ConvergenceWarning, match="BisectingKMeans did not converge in max_iter=1.*raise max_iter"):
        BisectingKMeans(3, max_iter=1, tol=0, random_state=0).fit(groups(300, 2, 6, apart=1.0))


def test_a_callback_hears_of_every_cut_and_can_end_the_fit():
    heard = []
    X = groups(200, 3, 6)
    model = BisectingKMeans(6, random_state=0, callback=lambda p: heard.append(p) or len(heard) == 3).fit(X)
    assert [progress.iteration for progress in heard] == [1, 2, 3]
    assert [len(progress.params) for progress in heard] == [2, 3, 4]
    assert model.cluster_centers_.shape == (4, 3)
    assert model.history_[1:].tolist() == [progress.objective for progress in heard]


def test_an_interrupt_keeps_the_clusters_so_far():
    X, calls = groups(200, 3, 6), []

    def init(rows, k, random_state):
        calls.append(len(rows))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return rows[:k]

    with pytest.warns(FitInterruptedWarning, match="the clusters so far are kept"):
        model = BisectingKMeans(6, init=init, n_init=1).fit(X)
    assert model.cluster_centers_.shape == (3, 3)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert calls[0] == 200 > max(calls[1:])  # a cut is given the rows of its cluster


def test_verbose_prints_every_cut(capsys):
    BisectingKMeans(4, verbose=2, random_state=0).fit(groups(100, 2, 4))
    assert len(capsys.readouterr().out.splitlines()) == 3


# Errors


@pytest.mark.parametrize(
    "option, value, words",
    [
        ("n_clusters", 0, "n_clusters must be a whole number of at least 1; got 0"),
        ("n_clusters", 91, "n_clusters=91: use n_clusters <= 90"),
        (
            "bisecting_strategy",
            "worst",
            "bisecting_strategy must be 'biggest_inertia' or 'largest_cluster'; got 'worst'",
        ),
        ("init", "best", "init must be one of 'auto', 'k-means"),
        ("init", np.ones((2, 3)), "init must be the name of a method or a callable.*got ndarray"),
        ("init", lambda X, k, random_state: X[:5], r"init must be n_clusters=2 centers of 3 columns"),
        ("n_init", 0, "n_init must be 'auto' or a whole number"),
        ("max_iter", 0, "max_iter must be a whole number of at least 1; got 0"),
        ("tol", -1.0, "tol must be a finite number of at least 0"),
        ("engine", "gpu", "engine must be 'auto'"),
        ("random_state", "luck", "random_state must be None"),
        ("callback", 3, "callback must be None or a function"),
    ],
)
def test_invalid_options_are_rejected_with_the_valid_values(option, value, words):
    with pytest.raises(InputError if "91" in words else ParameterError, match=words):
        BisectingKMeans(**{"n_clusters": 3, option: value}).fit(groups(90, 3, 3))


def test_a_fit_that_fails_leaves_the_earlier_one_as_it_was():
    X = groups(90, 3, 3)
    model = BisectingKMeans(3, random_state=0).fit(X)
    before = model.labels_
    with warnings.catch_warnings(), pytest.raises(InputError):
        model.fit(np.where(X > 5, np.nan, X))
    np.testing.assert_array_equal(model.predict(X), before)


def many_rows(n=40_000):
    rng = np.random.default_rng(4)
    return np.array([[0, 0], [0, 9], [20, 0], [20, 9]])[rng.integers(4, size=n)] + rng.normal(size=(n, 2))


def test_a_sketch_on_a_sample_ends_where_all_rows_would(monkeypatch):
    X = many_rows()
    sketched = BisectingKMeans(4, random_state=0).fit(X)
    monkeypatch.setattr(bisecting_kmeans, "MANY", 100)
    whole = BisectingKMeans(4, random_state=0).fit(X)
    assert sketched.inertia_ == pytest.approx(whole.inertia_, rel=1e-3)
    np.testing.assert_array_equal(sketched.labels_, sketched.predict(X))
    assert sketched.inertia_ == sketched.history_[-1]


def test_a_sample_without_weight_is_no_sketch():
    X, w = many_rows(), np.zeros(40_000)
    w[[0, 1, 2, 3]] = 1
    model = BisectingKMeans(4, random_state=0).fit(X, sample_weight=w)
    np.testing.assert_allclose(np.sort(model.cluster_centers_, axis=0), np.sort(X[:4], axis=0))
    assert model.inertia_ == pytest.approx(0, abs=1e-20)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_nothing_of_a_sketch(n_jobs, monkeypatch):
    X = many_rows()
    many_parts(monkeypatch, X)
    one, many = (BisectingKMeans(3, random_state=1, n_jobs=jobs).fit(X) for jobs in (1, n_jobs))
    np.testing.assert_array_equal(one.cluster_centers_, many.cluster_centers_)


@pytest.mark.parametrize("init", ["forgy", "random_partition"])
def test_a_cluster_with_one_row_that_has_a_weight_is_not_cut(init):
    """After one iteration its center may not be at that row yet, so that it has a cost."""
    X = (np.arange(24.0)[:, None] % 17) ** 2
    w = np.where(np.arange(24) % 3 == 0, 1.0, 0.0)
    for seed in range(12):
        with pytest.warns(ConvergenceWarning, match="max_iter=1"):
            model = BisectingKMeans(8, init=init, n_init=1, max_iter=1, random_state=seed).fit(X, sample_weight=w)
        assert (np.bincount(model.labels_, weights=w) > 0).all()
