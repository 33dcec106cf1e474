"""The gap statistic: its parts against their definitions, its rules against small curves, its bits on any threads."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.exceptions import ConvergenceWarning

from coterie import AgglomerativeClustering, KMeans, KMedoids
from coterie.datasets import make_blobs
from coterie.errors import InputError, ParameterError
from coterie.selection import Progress, gap_statistic
from coterie.selection.gap import RULES, Gap, dispersion, kmeans_path
from coterie.selection.references import box_about

rng = np.random.default_rng(0)
BLOBS, _ = make_blobs(240, 2, centers=4, cluster_std=0.25, random_state=3)
NOISE = rng.random((300, 2))


def naive_dispersion(X, labels, w, power):
    """By all ordered pairs of rows, as the paper has it."""
    total = 0.0
    for cluster in set(labels):
        mine = np.flatnonzero(labels == cluster)
        pairs = sum(w[i] * w[j] * np.linalg.norm(X[i] - X[j]) ** power for i in mine for j in mine)
        total += pairs / (2 * w[mine].sum())
    return total


@pytest.mark.parametrize("power", [1, 2, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_dispersion_is_that_of_all_pairs(power, weighted):
    X, labels = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    w = rng.exponential(size=40) if weighted else np.ones(40)
    found = dispersion(X, labels, w if weighted else None, power)
    assert found == pytest.approx(naive_dispersion(X, labels, w, power), rel=1e-12)


def test_a_row_of_weight_two_is_the_row_twice_in_w():
    X, labels, w = rng.normal(size=(30, 2)), rng.integers(0, 3, 30), rng.integers(1, 4, 30)
    for power in (1, 2):
        twice = dispersion(np.repeat(X, w, axis=0), np.repeat(labels, w), None, power)
        assert dispersion(X, labels, w.astype(float), power) == pytest.approx(twice, rel=1e-12)


def test_one_cluster_of_squares_is_the_total_sum_of_squares():
    found = gap_statistic(NOISE, [1], n_references=2, random_state=0)
    assert found.log_w[0] == pytest.approx(np.log(NOISE.var(axis=0).sum() * 300), rel=1e-12)


def test_unsquared_distances_of_one_cluster():
    found = gap_statistic(NOISE, [1], n_references=2, power=1, random_state=0)
    assert found.log_w[0] == pytest.approx(np.log(pdist(NOISE).sum() / 300), rel=1e-12)


TABLES = [
    pytest.param(BLOBS, None, list(range(1, 12)), id="blobs"),
    pytest.param(NOISE, rng.exponential(size=300), [1, 2, 5, 6, 20], id="weights"),
    pytest.param(NOISE, 2.0 ** rng.integers(-20, 20, size=300), [2, 5, 20, 40], id="weights-of-all-sizes"),
    pytest.param(np.repeat(BLOBS[:9], 7, axis=0), None, [1, 3, 8], id="duplicates"),
    pytest.param(rng.integers(0, 4, size=(90, 2)).astype(float), None, list(range(1, 16)), id="ties"),
    pytest.param(BLOBS[:12] * 1e-150, None, list(range(1, 12)), id="all-but-one-alone-and-tiny"),
    pytest.param(NOISE[:, :1] + 1e6, None, [2, 4, 9], id="one-column-far-away"),
    pytest.param(rng.normal(size=(1300, 7)).astype(np.float32), None, [1, 2, 3, 10], id="blocks-float32"),
]


@pytest.mark.parametrize("X, w, ks", TABLES)
def test_clusters_of_all_k_in_one_call(X, w, ks):
    """Squares are those about the means of the labels, never rise, and rows are all but with the nearest mean."""
    found = kmeans_path(X, w, ks, np.random.default_rng(0))
    want = [dispersion(X, found.clusters[ks.index(k)], w, 2) for k in ks]
    np.testing.assert_allclose(found.squares, want, rtol=1e-6 if X.dtype == np.float32 else 1e-9)
    assert (np.diff(found.squares) <= 1e-12 * found.squares[0]).all()
    assert [len(np.unique(found.clusters[ks.index(k)])) for k in ks] == ks
    for k in ks:
        again = KMeans(k, init=means(X, w, found.clusters[ks.index(k)]), n_init=1, max_iter=1, algorithm="lloyd")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            assert again.fit(X, sample_weight=w).history_[0] >= 0.98 * found.squares[ks.index(k)]


def means(X, w, labels):
    heavy = np.ones(len(X)) if w is None else w
    return np.array([np.average(X[labels == j], axis=0, weights=heavy[labels == j]) for j in np.unique(labels)])


def test_clusters_in_one_call_are_as_good_as_ten_starts():
    """On average, over clusters that are hard to find."""
    hard = np.random.default_rng(5)
    X = hard.normal(size=(800, 2)) * 0.1 + hard.uniform(0, 4, size=(16, 2))[hard.integers(0, 16, 800)]
    ks = list(range(2, 20))
    found = np.mean([np.log(kmeans_path(X, None, ks, np.random.default_rng(s)).squares) for s in range(5)], axis=0)
    alone = np.log([KMeans(k, n_init=10, random_state=0).fit(X).inertia_ for k in ks])
    assert (found - alone).mean() <= 0


@pytest.mark.parametrize("reference", ["uniform", "pca"])
@pytest.mark.parametrize("power", [1, 2])
def test_clusters_are_counted(reference, power):
    found = gap_statistic(BLOBS, range(1, 8), n_references=15, reference=reference, power=power, random_state=0)
    assert found.recommended == 4
    assert found.by_rule()["firstSEmax"] == 4


@pytest.mark.parametrize("seed", range(3))
def test_rows_without_clusters_are_one(seed):
    X = np.random.default_rng(seed).random((200, 2))
    assert gap_statistic(X, range(1, 6), n_references=20, random_state=0).recommended == 1


def test_a_long_cloud_is_one_by_its_axes():
    """In a box along the columns a diagonal cloud looks like clusters; in one along its axes it does not."""
    X = np.random.default_rng(1).random((300, 2)) * [10, 0.5] @ np.array([[1, 1], [-1, 1]]) / np.sqrt(2)
    along, turned = (
        gap_statistic(X, range(1, 6), n_references=15, reference=kind, random_state=0) for kind in ("uniform", "pca")
    )
    assert along.recommended > 1
    assert turned.recommended == 1


def test_under_the_reference_itself_the_gap_is_nothing():
    """Data drawn like a reference differ from it by chance alone: the same procedure is applied to both."""
    X = np.random.default_rng(2).random((150, 3))
    X[[0, 1]] = [[0, 0, 0], [1, 1, 1]]
    found = gap_statistic(X, range(1, 7), n_references=40, random_state=1)
    assert (np.abs(found.gap) < 4 * found.se).all()


def test_gap_and_error_are_those_of_the_paper():
    log_w, references = np.array([3.0, 2.0]), np.array([[3.1, 2.4], [3.3, 2.2], [3.2, 2.6]])
    found = Gap(np.array([1, 2]), log_w, references, "firstmax", 1.0, "uniform", 2.0)
    np.testing.assert_allclose(found.gap, [0.2, 0.4])
    np.testing.assert_allclose(found.se, np.array([0.1, 0.2]) * np.sqrt(4 / 3))
    assert found.table()[1]["recommended"]
    assert str(found).split()[:3] == ["k", "log_w", "expected"]


# gaps, standard errors, and what each rule says: tibs2001SEmax, firstSEmax, globalSEmax, firstmax, globalmax
CURVES = [
    ([0.1, 0.5, 0.45, 0.6, 0.2], [0.01] * 5, (2, 2, 4, 2, 4)),
    ([0.1, 0.5, 0.55, 0.54, 0.6], [0.06] * 5, (2, 2, 3, 3, 5)),
    ([0.5, 0.4, 0.3], [0.0] * 3, (1, 1, 1, 1, 1)),
    ([0.1, 0.2, 0.3], [0.01] * 3, (3, 3, 3, 3, 3)),
    ([0.30, 0.31, 0.20, 0.9], [0.05, 0.05, 0.05, 0.01], (1, 1, 4, 2, 4)),
    ([0.3], [0.1], (1, 1, 1, 1, 1)),
]


@pytest.mark.parametrize("gap, se, want", CURVES)
def test_rules(gap, se, want):
    for rule, k in zip(("tibs2001SEmax", "firstSEmax", "globalSEmax", "firstmax", "globalmax"), want, strict=True):
        assert RULES[rule](np.array(gap), np.array(se)) + 1 == k


def test_a_larger_factor_asks_for_clearer_gaps():
    options = {"n_references": 15, "random_state": 0}
    strict, loose = (gap_statistic(NOISE, range(1, 6), se_factor=f, **options) for f in (0.0, 3.0))
    np.testing.assert_array_equal(strict.gap, loose.gap)
    assert loose.recommended <= strict.recommended


@pytest.mark.parametrize("X", [BLOBS, np.tile(BLOBS, (20, 1)) + np.arange(4800)[:, None] * 1e-7])
def test_threads_change_nothing(X):
    one, *more = (gap_statistic(X, range(1, 5), n_references=6, random_state=4, n_jobs=jobs) for jobs in (1, 2, 3))
    for other in more:
        np.testing.assert_array_equal(one.log_w, other.log_w)
        np.testing.assert_array_equal(one.reference_log_w, other.reference_log_w)


def test_references_are_the_same_however_many_follow():
    few, many = (gap_statistic(BLOBS, [1, 2], n_references=b, random_state=4) for b in (3, 6))
    np.testing.assert_array_equal(few.reference_log_w, many.reference_log_w[:3])


def test_boxes_hold_the_rows_and_fill_up():
    X = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 3)) + 100
    for reference in ("uniform", "pca"):
        box = box_about(X, None, reference)
        drawn = box.draw(4000, np.float64, np.random.default_rng(0))
        axes = np.eye(3) if box.axes is None else box.axes
        np.testing.assert_allclose(axes.T @ axes, np.eye(3), atol=1e-12)
        for rows in (X, drawn):
            along = (rows - (0 if box.center is None else box.center)) @ axes
            assert (along >= box.low - 1e-9).all()
            assert (along <= box.high + 1e-9).all()
        middle = (drawn - (0 if box.center is None else box.center)) @ axes
        np.testing.assert_allclose(middle.mean(axis=0), (box.low + box.high) / 2, atol=0.02 * np.ptp(X))
        np.testing.assert_allclose(middle.var(axis=0), (box.high - box.low) ** 2 / 12, rtol=0.1)


def test_principal_axes_are_those_of_weighted_rows():
    X, w = rng.normal(size=(50, 3)), rng.integers(1, 4, 50)
    a, b = box_about(X, w.astype(float), "pca"), box_about(np.repeat(X, w, axis=0), None, "pca")
    np.testing.assert_allclose(np.abs(a.axes), np.abs(b.axes), rtol=1e-9)
    np.testing.assert_allclose(a.high - a.low, b.high - b.low, rtol=1e-9)


def test_rows_of_weight_0_are_not_there():
    w = np.r_[np.ones(240), np.zeros(60)]
    X = np.concatenate([BLOBS, 100 + NOISE[:60]])
    for reference in ("uniform", "pca"):
        options = {"n_references": 3, "reference": reference, "random_state": 0}
        a, b = gap_statistic(X, [1, 3], sample_weight=w, **options), gap_statistic(BLOBS, [1, 3], **options)
        np.testing.assert_allclose(a.reference_log_w, b.reference_log_w, rtol=1e-12)
        np.testing.assert_allclose(a.log_w, b.log_w, rtol=1e-12)


def test_equal_weights_move_log_w_and_not_the_gap():
    options = {"n_references": 4, "random_state": 0}
    a = gap_statistic(BLOBS, range(1, 5), sample_weight=np.full(240, 8.0), **options)
    b = gap_statistic(BLOBS, range(1, 5), **options)
    np.testing.assert_allclose(a.log_w, b.log_w + np.log(8), rtol=1e-12)
    np.testing.assert_allclose(a.gap, b.gap, atol=1e-9)


def test_units_and_origin_do_not_matter():
    """But for rounding, which may send a reference to another optimum."""
    options = {"n_references": 4, "random_state": 0, "power": 1}
    here, larger, away = (gap_statistic(X, range(1, 5), **options) for X in (BLOBS, BLOBS * 1024, BLOBS + 2.0**20))
    np.testing.assert_allclose(larger.gap, here.gap, atol=1e-9)
    np.testing.assert_allclose(away.gap, here.gap, atol=0.01)


def test_single_floats_have_single_references():
    X = BLOBS.astype(np.float32)
    assert box_about(X, None, "pca").draw(5, X.dtype, np.random.default_rng(0)).dtype == np.float32
    a, b = (gap_statistic(rows, range(1, 6), n_references=15, random_state=0) for rows in (X, BLOBS))
    np.testing.assert_allclose(a.log_w, b.log_w, atol=1e-4)
    assert a.recommended == b.recommended == 4


def test_frames_and_files(tmp_path):
    np.save(tmp_path / "rows.npy", BLOBS)
    options = {"ks": [1, 2], "n_references": 2, "random_state": 0}
    plain = gap_statistic(BLOBS, **options)
    for X in (pd.DataFrame(BLOBS, columns=["a", "b"]), tmp_path / "rows.npy"):
        np.testing.assert_array_equal(gap_statistic(X, **options).reference_log_w, plain.reference_log_w)


@pytest.mark.parametrize(
    "estimator",
    [KMeans(), KMedoids(), AgglomerativeClustering(), AgglomerativeClustering(linkage="average")],
)
def test_any_estimator_makes_the_clusters(estimator):
    found = gap_statistic(BLOBS, range(1, 7), n_references=6, estimator=estimator, random_state=0)
    assert found.recommended == 4
    assert found.log_w[0] == pytest.approx(np.log(BLOBS.var(axis=0).sum() * 240), rel=1e-9)


@pytest.mark.parametrize("stop, kept", [(1, 2), (5, 4)])
def test_a_stop_keeps_the_references_there_are(stop, kept):
    told = []

    def progress(step: Progress):
        told.append(step)
        return step.done >= stop

    found = gap_statistic(BLOBS, [1, 2], n_references=9, random_state=0, callback=progress)
    assert found.reference_log_w.shape == (kept, 2)
    assert told[0].step == "data"
    assert told[-1].total == 10


@pytest.mark.parametrize(
    "X, options, error, message",
    [
        (BLOBS, {"ks": [0]}, ParameterError, "ks must be whole numbers"),
        (BLOBS, {"n_references": 1}, ParameterError, "n_references must be a whole number of at least 2"),
        (BLOBS, {"reference": "box"}, ParameterError, "reference must be 'uniform' or 'pca'"),
        (BLOBS, {"rule": "max"}, ParameterError, "rule must be 'tibs2001SEmax' or"),
        (BLOBS, {"se_factor": -1}, ParameterError, "se_factor"),
        (BLOBS, {"power": 0}, ParameterError, "power=0 is not supported"),
        (BLOBS, {"callback": 1}, ParameterError, "callback must be"),
        (BLOBS, {"sample_weight": np.ones(3)}, InputError, "one number for each of the 240 rows"),
        (sparse.eye_array(9, format="csr"), {}, InputError, "pass a dense array"),
        (np.full((9, 2), np.inf), {}, InputError, "infinity"),
        (BLOBS[:5], {"ks": [1, 6]}, InputError, "n_samples=5 rows"),
        (BLOBS[:5], {"ks": [1, 5]}, InputError, "log W is infinite for K = 5"),
        (np.repeat(BLOBS[:3], 5, axis=0), {"ks": [1, 4]}, InputError, "X has 3 distinct rows"),
        (np.ones((9, 2)), {"ks": [1]}, InputError, "log W is infinite for K = 1"),
    ],
)
def test_invalid_input_raises_an_error(X, options, error, message):
    with pytest.raises(error, match=message):
        gap_statistic(X, **{"n_references": 3, "random_state": 0} | options)
