from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from coterie import GaussianMixture, KMeans, KMedians, choose_k
from coterie.datasets import make_blobs
from coterie.errors import FitInterruptedWarning, InputError, ParameterError
from coterie.selection import Vote, choose_k_criteria, mixture_table, sweep
from coterie.selection.choose_k_criteria import CRITERIA
from coterie.selection.estimator_sweeps import ESTIMATOR_SWEEPS, one_by_one
from coterie.selection.votes import WEIGHTS, relative_support, total_support, vote

pytestmark = pytest.mark.whole_search
KS = np.array([1, 2, 3])
CHEAP = ("silhouette", "davies_bouldin", "elbow")


def blobs(k=4, n=300, std=0.25, seed=0):
    return make_blobs(n, 2, centers=k, cluster_std=std, random_state=seed)[0]


def apart(k, n):
    """Round clusters of n rows each, far apart."""
    rng = np.random.default_rng(k)
    centers = 12.0 * np.array([(j % 2, j // 2 % 2, j // 4) for j in range(k)])
    return np.repeat(centers, n, axis=0) + rng.normal(size=(n * k, 3))


def test_the_coarse_grid_is_evaluated_on_a_sample_and_only_the_ks_that_are_compared_are_fitted(monkeypatch):
    fitted = []

    def counted(estimator, X, ks, **options):
        fitted.append(list(ks))
        return sweep(estimator, X, ks, **options)

    monkeypatch.setattr(choose_k_criteria, "sweep", counted)
    result = choose_k(blobs(), criteria=(*CHEAP, "tendency", "calinski_harabasz"), budget="quick", random_state=0)
    assert fitted == [list(range(1, 11))]
    assert result.ks.tolist() == result.sweep.ks.tolist() == list(range(1, 11))


def test_the_coarse_fits_of_other_estimators_are_used_again(monkeypatch):
    fitted = []

    def counted(estimator, X, ks, **options):
        fitted.append(list(ks))
        return sweep(estimator, X, ks, **options)

    monkeypatch.setattr(choose_k_criteria, "sweep", counted)
    options = {"criteria": (*CHEAP, "tendency", "calinski_harabasz"), "budget": "quick", "random_state": 0}
    result = choose_k(blobs(), estimator=KMedians(random_state=1, search="none"), **options)
    assert len(fitted) == 1
    assert set(result.ks.tolist()) < set(fitted[0])
    for name in ("silhouette", "davies_bouldin", "calinski_harabasz"):
        curve, again = result.results[name], result.sweep.curve(name, random_state=0)
        assert (curve.ks.tolist(), curve.best) == (again.ks.tolist(), again.best)
        np.testing.assert_allclose(curve.values, again.values, rtol=1e-12)


@pytest.mark.parametrize("k", [2, 5])
def test_clear_clusters_are_counted_and_all_criteria_say_so(k):
    result = choose_k(apart(k, 80), random_state=0)
    counted = [each for each in result.votes if each.weight > 0]
    assert result.recommended == k
    assert result.tendency.clustered
    assert result.confidence > 0.9
    assert [each.k for each in counted] == [k] * len(counted)
    preferred = [each.k for each in result.votes if each.k is not None]
    assert result.reason.startswith(f"All {len(preferred)} criteria prefer {k}.")


def test_the_reason_says_that_all_criteria_agree_only_if_all_votes_are_equal():
    """A criterion that prefers another K is named, even if its weight is 0."""
    result = choose_k(
        apart(2, 80),
        range(1, 5),
        criteria=["silhouette", "davies_bouldin", "calinski_harabasz", "elbow"],
        random_state=0,
    )
    assert {each.k for each in result.votes} == {2}
    assert result.reason.startswith("All 4 criteria prefer 2.")
    votes = {each.criterion: each for each in result.votes}
    votes["calinski_harabasz"] = replace(votes["calinski_harabasz"], k=4).without("the more clusters, the better")
    reason = replace(result, votes=tuple(votes.values())).reason
    assert reason.startswith("All 2 criteria with a weight prefer 2; Calinski–Harabasz prefers 4 but is not counted.")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
@pytest.mark.parametrize("n, d", [(150, 2), (400, 6)])
@pytest.mark.parametrize("kind", ["uniform", "gaussian", "long gaussian"])
def test_rows_without_clusters_are_one(kind, n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d)) if kind == "uniform" else rng.normal(size=(n, d))
    if kind == "long gaussian":
        X[:, 0] *= 4
    result = choose_k(X, budget="quick", random_state=0)
    assert result.recommended == 1
    assert "No clusters" in result.reason


def test_more_clusters_than_a_first_look_has_are_found():
    side = np.arange(5.0)
    centers = np.array([(a, b) for a in side for b in side])
    X = np.repeat(centers, 30, axis=0) + np.random.default_rng(0).normal(0, 0.06, (750, 2))
    result = choose_k(X, criteria=["tendency", "silhouette", "davies_bouldin", "icl"], random_state=0)
    assert result.recommended == 25


def test_overlap_is_named_where_bic_and_icl_differ():
    rng = np.random.default_rng(1)
    X = np.concatenate(
        [rng.normal(0, 1, (400, 2)), rng.normal([2.2, 0], 1, (400, 2)), rng.normal([12, 0], 1, (400, 2))]
    )
    result = choose_k(X, range(1, 6), random_state=0)
    said = {each.criterion: each.k for each in result.votes}
    assert result.recommended == 2
    assert (said["icl"], said["bic"]) == (2, 3)
    assert "Prediction strength and BIC prefer 3" in result.reason
    assert "overlap" in result.reason


def test_groups_of_groups_are_named():
    rng = np.random.default_rng(0)
    groups, pairs = np.array([[0.0, 0], [40, 0], [0, 40]]), np.array([[-2.5, -2.5], [2.5, 2.5]])
    X = np.concatenate([group + own + rng.normal(0, 0.4, (60, 2)) for group in groups for own in pairs])
    result = choose_k(X, range(1, 9), random_state=0)
    said = {each.criterion: each.k for each in result.votes}
    assert result.recommended == 6
    assert said["silhouette"] == 3
    assert "Silhouette prefers 3" in result.reason
    assert "the 6 clusters are subsets of fewer, larger clusters" in result.reason


@pytest.mark.usefixtures("short_searches")
def test_the_answer_is_the_same_on_any_number_of_threads():
    X = blobs(3, 120)
    one, three = (choose_k(X, range(1, 6), n_jobs=n, random_state=0) for n in (1, 3))
    assert one.table() == three.table()
    assert str(one) == str(three)


@pytest.mark.usefixtures("short_searches")
def test_a_criterion_says_the_same_whichever_others_are_asked():
    X = blobs()
    alone = choose_k(X, range(1, 7), criteria=["gap"], random_state=0).results["gap"]
    among = choose_k(X, range(1, 7), criteria=["silhouette", "gap", "stability"], random_state=0).results["gap"]
    np.testing.assert_array_equal(alone.gap, among.gap)


@pytest.mark.usefixtures("short_searches")
def test_every_criterion_can_be_asked():
    result = choose_k(blobs(3, 120), range(1, 6), criteria=CRITERIA, random_state=0)
    assert {each.criterion for each in result.votes} == set(CRITERIA) == set(WEIGHTS)
    assert result.recommended == 3
    assert {"k", "objective", "silhouette", "gap", "gap_se", "bic", "icl", "support", "recommended"} <= set(
        result.table()[0]
    )


@pytest.mark.usefixtures("short_searches")
@pytest.mark.parametrize("estimator", [KMeans(), GaussianMixture()], ids=["advice", "judge"])
def test_starts_of_mixtures_are_searched_only_if_they_judge(monkeypatch, estimator):
    """For other estimators they only advise, and a search would take most of the time."""
    starts = []

    def recorded(*arguments, **options):
        starts.append(options["starts"])
        return mixture_table(*arguments, **{**options, "structures": ["EII"]})

    monkeypatch.setattr(choose_k_criteria, "mixture_table", recorded)
    choose_k(blobs(2, 40), [1, 2], criteria=["icl"], budget="thorough", estimator=estimator, random_state=0)
    assert [each == "auto" for each in starts] == [isinstance(estimator, GaussianMixture)]


@pytest.mark.usefixtures("short_searches")
def test_a_thorough_look_tries_all_structures():
    result = choose_k(blobs(2, 60), range(1, 4), criteria=["icl"], budget="thorough", random_state=0)
    assert len(result.results["mixtures"].structures) == 14


@pytest.mark.usefixtures("short_searches")
def test_weights_are_rows():
    X = blobs(3, 90)
    w = np.random.default_rng(0).integers(1, 4, len(X))
    once = choose_k(np.repeat(X, w, axis=0), range(1, 6), criteria=CHEAP, random_state=0)
    weighted = choose_k(X, range(1, 6), criteria=CHEAP, sample_weight=w, random_state=0)
    for a, b in zip(once.table(), weighted.table(), strict=True):
        assert a["silhouette"] == pytest.approx(b["silhouette"]) if a["k"] > 1 else a["silhouette"] is None
        assert a["objective"] == pytest.approx(b["objective"])


@pytest.mark.usefixtures("short_searches")
def test_rows_of_no_weight_are_not_there():
    X = blobs(3, 90)
    far = np.concatenate([X, [[1e6, 1e6]]])
    a = choose_k(X, range(1, 6), criteria=CHEAP, random_state=0)
    b = choose_k(far, range(1, 6), criteria=CHEAP, sample_weight=np.r_[np.ones(90), 0.0], random_state=0)
    np.testing.assert_allclose(a.support, b.support)
    assert b.n == 90


@pytest.mark.usefixtures("short_searches")
def test_frames_and_single_precision():
    X = blobs(3, 90)
    assert choose_k(pd.DataFrame(X, columns=["a", "b"]), range(1, 6), criteria=CHEAP, random_state=0).recommended == 3
    result = choose_k(X.astype(np.float32), range(1, 6), criteria=CHEAP, random_state=0)
    assert result.sweep.models[2].cluster_centers_.dtype == np.float32
    assert result.recommended == 3


@pytest.mark.usefixtures("short_searches")
def test_many_rows_are_sampled_and_it_says_so():
    result = choose_k(apart(4, 1000), range(1, 6), criteria=["silhouette"], budget="quick", random_state=0)
    assert (result.rows, result.n) == (3000, 4000)
    assert "of 3000 of 4000 rows" in str(result)
    assert result.recommended == 4


@pytest.mark.usefixtures("short_searches")
def test_another_estimator_makes_the_clusters():
    result = choose_k(
        blobs(3, 90), range(1, 6), criteria=["silhouette"], estimator=KMedians(random_state=1), random_state=0
    )
    assert type(result.sweep.models[0]) is KMedians
    assert result.recommended == 3


@pytest.mark.parametrize(
    "X", [np.zeros((20, 2)), np.repeat([[0.0, 1.0], [5.0, 1.0]], 10, axis=0), np.arange(3.0)[:, None], np.zeros((1, 3))]
)
@pytest.mark.usefixtures("short_searches")
def test_next_to_no_distinct_rows(X):
    result = choose_k(X, random_state=0)
    assert 1 <= result.recommended <= len(np.unique(X, axis=0))
    assert result.reason
    for row in result.table():
        assert all(value is None or np.isfinite(value) for value in row.values())


@pytest.mark.usefixtures("short_searches")
def test_one_column():
    X = np.concatenate([np.random.default_rng(0).normal(m, 0.3, 60) for m in (0, 5, 10)])[:, None]
    assert choose_k(X, random_state=0).recommended == 3


@pytest.mark.usefixtures("short_searches")
def test_progress_is_told_and_ends_it():
    seen = []
    result = choose_k(
        blobs(),
        range(1, 6),
        criteria=CHEAP,
        callback=lambda step: seen.append(step.step) or step.done == 2,
        random_state=0,
    )
    assert seen == ["silhouette", "davies_bouldin"]
    assert [each.criterion for each in result.votes] == seen


@pytest.mark.parametrize(
    "options, message",
    [
        ({"criteria": "silhoutte"}, "criteria must be 'auto' or names from .*got 'silhoutte'"),
        ({"criteria": []}, "criteria must be .*got an empty list"),
        ({"budget": 20}, "budget must be 'quick' or 'normal' or 'thorough'; got 20"),
        ({"ks": [0, 2]}, "ks must be whole numbers of at least 1"),
        ({"callback": 3}, "callback must be None or a function"),
        ({"estimator": np.zeros(3)}, "estimator must have n_clusters or n_components"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ParameterError, match=message):
        choose_k(blobs(), **options)


def test_more_clusters_than_rows_and_missing_values():
    X = blobs(2, 20)
    with pytest.raises(InputError, match=r"ks go up to 30, .* 20 distinct"):
        choose_k(X, range(1, 31), random_state=0)
    X[3, 1] = np.nan
    with pytest.raises(InputError, match="NaN"):
        choose_k(X, random_state=0)


def test_support_is_one_at_the_best_and_falls_off():
    np.testing.assert_allclose(relative_support(np.array([0.0, 2.0, np.nan])), [np.exp(-2), 1.0, 0.0])
    np.testing.assert_array_equal(relative_support(np.full(3, np.nan)), np.zeros(3))


def test_perfect_clusters_have_all_the_support():
    """Their Calinski-Harabasz index is infinite."""
    np.testing.assert_array_equal(relative_support(np.array([1.0, np.inf, np.inf, np.nan])), [0.0, 1.0, 1.0, 0.0])
    np.testing.assert_array_equal(relative_support(np.array([-np.inf, -np.inf, np.nan])), np.zeros(3))
    np.testing.assert_array_equal(relative_support(np.array([-np.inf, 2.0])), [0.0, 1.0])


def test_votes_add_up_by_weight():
    a = vote("silhouette", KS, np.array([0.0, 1.0, 0.5]))
    b = vote("gap", KS, np.array([0.0, 0.2, 1.0]))
    assert (a.k, a.confidence, b.k) == (2, 0.5, 3)
    np.testing.assert_allclose(total_support([a, b], KS), [0.0, 1.1 / 1.5, 1.0 / 1.5])
    np.testing.assert_array_equal(total_support([a.without("no")], KS), np.zeros(3))


def test_a_vote_for_what_cannot_be_had_goes_to_the_next():
    a = vote("icl", KS, np.array([1.0, 0.6, 0.2])).among(KS > 1, KS)
    assert isinstance(a, Vote)
    assert (a.k, a.confidence) == (2, pytest.approx(0.4))
    assert vote("icl", KS, np.array([1.0, 0.0, 0.0])).among(KS > 1, KS).k is None


def test_callbacks_get_the_vote_and_the_values_of_each_criterion():
    X, _ = make_blobs(200, 2, centers=3, cluster_std=0.4, random_state=0)
    seen = {}
    result = choose_k(
        X, [2, 3, 4], budget="quick", random_state=0, callback=lambda state: seen.update({state.step: state.stats})
    )
    table = {row["k"]: row for row in result.table()}
    assert set(seen) == {each.criterion for each in result.votes}
    for each in result.votes:
        assert seen[each.criterion].vote.k == each.k or each.weight == 0
    for name in ("silhouette", "gap", "icl", "prediction_strength"):
        assert seen[name].values == {k: row[name] for k, row in table.items() if row[name] is not None}
    assert seen["elbow"].values == {k: row["objective"] for k, row in table.items()}


@pytest.mark.parametrize("interrupted", ["tendency", "silhouette", "gap"])
def test_an_interrupt_keeps_the_criteria_so_far_and_recommends_more_than_one_cluster(monkeypatch, interrupted):
    def ctrl_c(*_):
        raise KeyboardInterrupt

    monkeypatch.setitem(CRITERIA, interrupted, ctrl_c)
    with pytest.warns(FitInterruptedWarning, match="criteria evaluated so far"):
        result = choose_k(blobs(), range(1, 7), budget="quick", random_state=0)
    assert result.is_stopped
    assert result.best_number == 4
    assert interrupted not in [vote.criterion for vote in result.votes]


def test_an_interrupt_of_the_test_for_clusters_keeps_the_best_k_of_the_coarse_grid(monkeypatch):
    def ctrl_c(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(choose_k_criteria, "early_tendency", ctrl_c)
    with pytest.warns(FitInterruptedWarning):
        result = choose_k(blobs(), budget="quick", random_state=0)
    assert (result.is_stopped, result.ks.tolist(), result.recommended) == (True, [4], 4)


def test_an_interrupt_before_two_clusters_are_fitted_is_passed_on(monkeypatch):
    fit = KMedians.fit

    def interrupted(model, *arguments, **options):
        if model.n_clusters > 1:
            raise KeyboardInterrupt
        return fit(model, *arguments, **options)

    monkeypatch.setattr(KMedians, "fit", interrupted)
    monkeypatch.setitem(ESTIMATOR_SWEEPS, KMedians, one_by_one)
    with pytest.raises(KeyboardInterrupt), pytest.warns(FitInterruptedWarning):
        choose_k(blobs(), range(1, 7), estimator=KMedians(), budget="quick", random_state=0)
