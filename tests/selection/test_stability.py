"""Stability of clusters under resampling."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.cluster import AgglomerativeClustering as SklearnAgglomerative
from sklearn.cluster import KMeans as SklearnKMeans

from coterie import (
    AgglomerativeClustering,
    FuzzyCMeans,
    GaussianMixture,
    KMeans,
    KMedians,
    KMedoids,
    MiniBatchKMeans,
)
from coterie.datasets import make_blobs
from coterie.distances import pairwise
from coterie.errors import InputError, ParameterError
from coterie.metrics import adjusted_rand_score
from coterie.selection import stability
from coterie.selection.agreement import (
    adjusted_rand,
    ambiguous_share,
    area_under_cdf,
    consensus_matrix,
    contingency_table,
    jaccard,
    prediction_strengths,
)

LABELS = st.lists(st.integers(0, 4), min_size=2, max_size=25)
FAST = {"n_resamples": 8, "random_state": 0}


@pytest.fixture(scope="module")
def blobs():
    X, _ = make_blobs(160, 2, centers=4, cluster_std=0.3, random_state=3)
    return X


@pytest.fixture(scope="module")
def cloud():
    return np.random.default_rng(0).normal(size=(150, 2))


# agreement of two divisions, against loops over pairs of rows


@given(LABELS, st.randoms(use_true_random=False))
def test_the_rand_index_is_that_of_the_metrics(labels, random):
    other = [random.randint(0, 3) for _ in labels]
    found = adjusted_rand(contingency_table(np.array(labels), np.array(other)))
    assert found == pytest.approx(adjusted_rand_score(labels, other), abs=1e-12)


@given(LABELS, st.randoms(use_true_random=False))
def test_strengths_count_pairs(labels, random):
    labels, other = np.array(labels), np.array([random.randint(0, 3) for _ in labels])
    expected = []
    for j in np.unique(labels):
        rows = np.flatnonzero(labels == j)
        pairs = [(a, b) for a in rows for b in rows if a < b]
        expected.append(np.mean([other[a] == other[b] for a, b in pairs]) if pairs else 0.0)
    np.testing.assert_allclose(prediction_strengths(contingency_table(labels, other)), expected)


@given(LABELS, st.randoms(use_true_random=False))
def test_jaccard_is_of_sets(labels, random):
    labels, other = np.array(labels), np.array([random.randint(0, 3) for _ in labels])
    for j, found in enumerate(jaccard(contingency_table(labels, other))):
        mine = set(np.flatnonzero(labels == j))
        theirs = [set(np.flatnonzero(other == i)) for i in range(4)]
        assert found == pytest.approx(max(len(mine & them) / len(mine | them) if mine else 0.0 for them in theirs))


def test_weights_are_counts_of_rows():
    rng = np.random.default_rng(0)
    first, second, w = rng.integers(0, 3, 40), rng.integers(0, 4, 40), rng.integers(0, 3, 40)
    table, repeated = (
        contingency_table(first, second, w.astype(float)),
        contingency_table(np.repeat(first, w), np.repeat(second, w)),
    )
    np.testing.assert_array_equal(table, repeated)


def test_shares_are_the_limit_of_many_rows():
    table = np.array([[5.0, 1.0], [2.0, 7.0]])
    assert adjusted_rand(table, 0.0) == pytest.approx(adjusted_rand(table * 1e9, 1.0), rel=1e-8)


def test_rows_without_a_label_are_left_out():
    first, second = np.array([0, 0, 1, -1, 1]), np.array([1, -1, 0, 0, 0])
    np.testing.assert_array_equal(contingency_table(first, second), [[0, 1], [2, 0]])


# the consensus


def naive_consensus(divisions):
    m = divisions.shape[1]
    found = np.zeros((m, m))
    for i in range(m):
        for j in range(m):
            both = (divisions[:, i] >= 0) & (divisions[:, j] >= 0)
            if both.any():
                found[i, j] = np.mean(divisions[both, i] == divisions[both, j])
    return found


def test_the_consensus_is_a_mean_over_draws_with_both_rows():
    divisions = np.random.default_rng(0).integers(-1, 3, (7, 12))
    divisions[:, 0] = -1
    found = consensus_matrix(divisions)
    np.testing.assert_allclose(found, naive_consensus(divisions), rtol=1e-6)
    values = found[np.triu_indices(12, 1)]
    at = np.linspace(0, 1, 200_001)
    cdf = np.searchsorted(np.sort(values), at, side="right") / len(values)
    assert area_under_cdf(found) == pytest.approx(cdf.mean(), abs=1e-4)
    assert ambiguous_share(found, 0.1, 0.9) == np.mean([0.1 < value < 0.9 for value in values])


def test_what_is_always_the_same_is_not_ambiguous(blobs):
    found = stability(KMeans(), blobs, [4, 6], **FAST)
    assert found.pac(4) == 0
    assert found.pac(6) > 0.02
    matrix = found.consensus(4)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(matrix, found.labels[0][:, None] == found.labels[0])
    assert found.consensus(4, rows=10).shape == (10, 10)
    assert found.area(4) == pytest.approx(1 - matrix[np.triu_indices(160, 1)].mean())


# stability


@pytest.mark.parametrize("measure", ["adjusted_rand", "jaccard", "prediction_strength"])
def test_the_clear_number_is_chosen(measure, blobs):
    found = stability(KMeans(), blobs, range(1, 8), measure=measure, **FAST)
    assert found.best == 4
    assert found.mean[3] == pytest.approx(1)
    assert found.mean[4:].max() < 0.95
    assert found.clusters[3].min() == pytest.approx(1)


@pytest.mark.parametrize(
    "estimator",
    [
        GaussianMixture(init_params="kmeans"),
        KMedoids(),
        AgglomerativeClustering(),
        SklearnKMeans(),
        SklearnAgglomerative(),
    ],
    ids=lambda estimator: type(estimator).__module__.split(".")[0] + "." + type(estimator).__name__,
)
@pytest.mark.parametrize("method", ["bootstrap", "subsample"])
def test_any_estimator_will_do(estimator, method, blobs):
    found = stability(estimator, blobs, [2, 4, 6], resampling=method, **FAST)
    assert found.best == 4
    assert estimator.get_params().get("n_clusters") == type(estimator)().get_params().get("n_clusters")


def test_distances_will_do(blobs):
    found = stability(KMedoids(metric="precomputed"), pairwise(blobs), [3, 4, 5], **FAST)
    assert found.best == 4


def test_no_number_is_stable_without_clusters(cloud):
    found = stability(KMeans(), cloud, range(2, 7), n_resamples=20, random_state=0)
    assert found.best is None
    assert "no K reaches the threshold 0.75" in str(found)
    strength = stability(KMeans(), cloud, range(1, 7), measure="prediction_strength", n_resamples=20, random_state=0)
    assert strength.best == 1


def test_one_cluster_wins_by_prediction_strength_alone(blobs):
    assert stability(KMeans(), blobs, [1], **FAST).best is None
    assert stability(KMeans(), blobs, [1], measure="prediction_strength", **FAST).best == 1


def test_the_largest_of_the_stable_numbers_is_best():
    """Two pairs of clusters: two and four are as stable as can be."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(center, 0.05, (40, 1)) for center in (0, 1, 10, 11)])
    found = stability(KMeans(), X, range(2, 6), **FAST)
    np.testing.assert_allclose(found.mean[[0, 2]], 1)
    assert found.best == 4


def test_the_mean_is_over_all_pairs_of_draws(cloud):
    found = stability(KMeans(), cloud, [3], **FAST)
    (divisions,) = found.divisions
    pairs = [(i, j) for i in range(8) for j in range(i)]
    values = [adjusted_rand_score(divisions[i], divisions[j]) for i, j in pairs]
    assert found.mean[0] == pytest.approx(np.mean(values))
    assert found.standard_error[0] == pytest.approx(2 * found.values[0].std(ddof=1) / np.sqrt(8))


def test_the_standard_error_is_about_the_spread_of_the_mean(cloud):
    runs = [stability(KMeans(), cloud, [3], n_resamples=10, random_state=seed) for seed in range(25)]
    spread = np.std([run.mean[0] for run in runs])
    assert spread / 3 < np.mean([run.standard_error[0] for run in runs]) < 3 * spread


def test_a_cluster_that_dissolves_is_seen():
    """Two clear clusters and a cloud between that has to be cut."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-9, 0.3, (60, 2)), rng.normal(9, 0.3, (60, 2)), rng.normal(0, 1, (80, 2))])
    found = stability(KMeans(n_init=5), X, [4], n_resamples=20, random_state=0)
    clear = np.sort(found.clusters[0])
    assert (clear[2:] > 0.99).all()
    assert (clear[:2] < 0.85).all()


def unequal_clusters(distance, sizes):
    """A large cluster and two small ones: single initialisations often split the large one."""
    rng, centers = np.random.default_rng(1), distance * np.array([[0.0, 0], [1, 0], [0, 1]])
    return 20 + np.concatenate([c + rng.normal(size=(n, 2)) for c, n in zip(centers, sizes, strict=True)])


SMALL, MEDIUM = (6.5, (1350, 120, 60)), (12, (480, 72, 48))  # objectives of distances that are not squared split more


@pytest.mark.parametrize(
    "estimator, table",
    [
        (KMeans(n_init=1), SMALL),
        (KMeans(init="random", n_init=1), SMALL),
        (KMeans(n_init=3), SMALL),
        (KMeans(init="random", search="fast", search_budget=1), SMALL),
        (MiniBatchKMeans(batch_size=200), SMALL),
        (FuzzyCMeans(search="none", fuzzifier=1.2), MEDIUM),
        (KMedians(search="none"), MEDIUM),
        (KMedoids(search="none"), MEDIUM),
        (GaussianMixture(init_params="kmeans"), SMALL),
        (GaussianMixture(init_params="kmeans", covariance_type="spherical"), SMALL),
    ],
    ids=lambda value: repr(value) if not isinstance(value, tuple) else "",
)
def test_separate_clusters_are_stable_with_every_setting(estimator, table):
    """A single fit of each resample would measure the luck of its initialisation: values down to 0.5."""
    assert stability(estimator, unequal_clusters(*table), [3], n_resamples=10, random_state=0).mean[0] > 0.98


@pytest.mark.parametrize("k", [3, 5])
def test_more_initialisations_neither_raise_nor_lower_the_stability(k, blobs, cloud):
    """The clusters of 3 of 4 groups, of 4 groups and a split, and of no groups differ because of the rows alone."""
    for X in (blobs, cloud):
        few, many = (stability(KMeans(n_init=n_init), X, [k], n_resamples=20, random_state=1) for n_init in (1, 20))
        assert abs(few.mean[0] - many.mean[0]) < 0.1


@pytest.mark.parametrize("method", ["bootstrap", "subsample", "halves"])
def test_the_same_bits_on_any_number_of_threads(method, cloud):
    one, three = (stability(KMeans(), cloud, [2, 3], resampling=method, n_jobs=n_jobs, **FAST) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one.values, three.values)
    np.testing.assert_array_equal(one.divisions[1], three.divisions[1])


def test_other_numbers_of_clusters_change_nothing(cloud):
    few, many = (stability(KMeans(), cloud, ks, **FAST) for ks in ([3], [2, 3, 5]))
    np.testing.assert_array_equal(few.values[0], many.values[1])


def test_draws_with_replacement_follow_the_weights(blobs):
    w = np.where(np.arange(len(blobs)) < 80, 0.0, 1.0)
    found = stability(KMeans(), blobs, [3], sample_weight=w, **FAST)
    plain = stability(KMeans(), blobs[80:], [3], **FAST)
    assert found.rows.tolist() == list(range(80, 160))
    np.testing.assert_allclose(found.values, plain.values, atol=0.2)


class Spy(KMeans):
    """Writes down what it is fitted to."""

    seen: list[tuple[int, float]] = []  # noqa: RUF012

    def fit(self, X, y=None, sample_weight=None):
        self.seen.append((len(X), len(X) if sample_weight is None else sample_weight.sum()))
        return super().fit(X, sample_weight=sample_weight)


class Unweighted(Spy):
    def fit(self, X, y=None):
        return super().fit(X)


@pytest.mark.parametrize(
    "estimator, w, method, rows, weight",
    [
        (Spy(), None, "bootstrap", (90, 114), 160),
        (Spy(), np.full(160, 3.0), "bootstrap", (140, 160), 480),
        (Spy(), np.full(160, 0.5), "bootstrap", (90, 114), 160),
        (Spy(), np.full(160, 3.0), "subsample", (128, 128), 384),
        (Unweighted(), None, "bootstrap", (160, 160), 160),
        (Unweighted(), None, "halves", (80, 80), 80),
    ],
)
def test_as_many_rows_are_drawn_as_there_are(estimator, w, method, rows, weight, blobs):
    Spy.seen.clear()
    stability(estimator, blobs, [3], resampling=method, sample_weight=w, n_jobs=1, **FAST)
    n = len(Spy.seen) // 2  # each sample is fitted twice; the first sample is all rows
    drawn, total = zip(*Spy.seen[1:n], *Spy.seen[n + 1 :], strict=True)
    assert rows[0] <= min(drawn) <= max(drawn) <= rows[1]
    assert set(total) == {weight}


@pytest.mark.parametrize("scale", [1.0, 0.37])
def test_weights_of_any_size_will_do(scale, blobs):
    w = scale * (1.0 + np.arange(len(blobs)) % 3)
    for measure in ("adjusted_rand", "jaccard", "prediction_strength"):
        assert stability(KMeans(), blobs, [3, 4, 6], measure=measure, sample_weight=w, **FAST).best == 4


def test_float32_frames_and_sparse_rows_work(blobs):
    for X in (blobs.astype(np.float32), pd.DataFrame(blobs), sparse.csr_array(blobs)):
        assert stability(KMeans(), X, [3, 4, 5], **FAST).best == 4


def test_of_many_rows_a_sample_is_compared():
    X, _ = make_blobs(12_000, 2, centers=3, cluster_std=0.3, random_state=0)
    found = stability(KMeans(), X, [3], n_resamples=2, random_state=0)
    assert len(found.rows) == found.divisions[0].shape[1] == 10_000
    assert (np.diff(found.rows) > 0).all()
    assert found.mean[0] == 1


def test_a_true_answer_to_progress_keeps_what_there_is(blobs):
    seen = []
    found = stability(
        KMeans(), blobs, [2, 3, 4], callback=lambda report: seen.append(report) or report.done == 2, **FAST
    )
    assert found.ks.tolist() == [2, 3]
    assert [report.step for report in seen] == ["K = 2", "K = 3"]
    assert found.mean.shape == found.standard_error.shape == (2,)


def test_it_prints_a_table(blobs):
    found = stability(KMeans(), blobs, [3, 4], **FAST)
    assert [row["best"] for row in found.table()] == [False, True]
    header = str(found).splitlines()[0].split()
    assert header == ["k", "adjusted_rand", "standard_error", "least_stable_cluster", "best"]


@pytest.mark.parametrize(
    "estimator, options, error, message",
    [
        (KMeans(), {"measure": "silhouette"}, ParameterError, "measure must be"),
        (KMeans(), {"resampling": "jackknife"}, ParameterError, "resampling must be"),
        (
            KMeans(),
            {"measure": "prediction_strength", "resampling": "bootstrap"},
            ParameterError,
            "needs resampling='halves'",
        ),
        (SklearnAgglomerative(), {"measure": "prediction_strength"}, ParameterError, "needs an estimator with predict"),
        (SklearnAgglomerative(), {"sample_weight": np.ones(160)}, InputError, "does not support it"),
        (KMeans(), {"n_resamples": 1}, ParameterError, "n_resamples must be a whole number of at least 2"),
        (KMeans(), {"resampling": "subsample", "share": 1.0}, ParameterError, "share must be"),
        (KMeans(), {"ks": [2, 161]}, InputError, "only 160 rows"),
        (KMeans(), {"ks": [2, 150]}, InputError, "a resample has only [0-9]+ different rows: use smaller ks"),
        (KMeans(), {"ks": []}, ParameterError, "ks must be"),
        (KMeans(), {"callback": 1}, ParameterError, "callback must be"),
        (object(), {}, ParameterError, "stability got object as estimator"),
    ],
)
def test_invalid_options_raise_an_error(estimator, options, error, message, blobs):
    with pytest.raises(error, match=message):
        stability(estimator, blobs, **{"ks": [2], **options})


def test_a_number_that_was_not_tried_is_said(blobs):
    with pytest.raises(ParameterError, match=r"k=5 was not evaluated: use one of \[4\]"):
        stability(KMeans(), blobs, [4], **FAST).consensus(5)


@pytest.mark.parametrize(
    "options",
    [
        lambda X: {"init": X[:4]},
        lambda X: {"metric_weights": np.array([1.0, 2.0])},
        lambda X: {"frozen_centers": X[:1]},
    ],
)
def test_options_of_kmeans_may_be_arrays(blobs, options):
    assert stability(KMeans(4, n_init=1, **options(blobs)), blobs, [4], **FAST).ks.tolist() == [4]


@pytest.mark.parametrize("distinct", [1, 2])
@pytest.mark.parametrize("weights", [False, True])
def test_empty_clusters_are_not_stable(distinct, weights):
    """Rows of weight zero do not count; the first rows are equal, whatever comes later."""
    X = np.r_[np.zeros((200, 2)), np.full((20, 2), distinct - 1.0), [[5.0, 5]] if weights else np.empty((0, 2))]
    w = np.r_[np.ones(220), 0.0] if weights else None
    with pytest.raises(InputError, match=rf"X has {distinct} distinct rows? of positive weight.*use ks <= {distinct}"):
        stability(KMeans(), X, range(1, 4), sample_weight=w, **FAST)
    if distinct == 2:
        assert stability(KMeans(), X, [2], sample_weight=w, **FAST).best == 2
