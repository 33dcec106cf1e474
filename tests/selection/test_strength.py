"""How clear a number of clusters is: clear, weak or none; and the runner-up."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from coterie import GaussianMixture, choose_k
from coterie.selection import choose_k_criteria
from coterie.selection.votes import ADVICE, MODEL_WEIGHTS, NAMES, WEIGHTS

pytestmark = pytest.mark.whole_search
JUDGES = ["tendency", "silhouette", "gap", "prediction_strength", "valleys"]


def clusters(*centers, n=80, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(center, 1, (n, 2)) for center in centers])


def quick(X, ks="auto", **options):
    return choose_k(X, ks, budget="quick", random_state=0, **options)


def test_separate_clusters_are_clear():
    result = quick(clusters((0, 0), (12, 0), (0, 12)))
    assert (result.recommended, result.strength) == (3, "clear")
    assert result.runner_up not in (None, 3)
    assert result.decision.doubts == ()
    assert " ".join(result.reasons) == result.reason


@pytest.mark.parametrize("kind", ["uniform", "normal", "exponential", "lognormal"])
def test_one_population_is_never_clear(kind):
    X = getattr(np.random.default_rng(1), kind)(size=(500, 3))
    assert quick(X).strength != "clear"


def test_no_clusters_are_no_clear_number():
    result = quick(np.random.default_rng(0).uniform(size=(300, 3)))
    assert (result.recommended, result.strength) == (1, "none")
    assert result.range_text == "between 2 and 10"


def test_a_range_without_one_says_that_no_number_is_clear():
    result = quick(np.random.default_rng(0).uniform(size=(300, 3)), range(2, 7))
    assert result.strength == "none"
    assert 2 <= result.recommended <= 6
    assert result.reason.startswith("No clear number of clusters between 2 and 6.")


def test_clusters_in_pairs_are_weak_and_both_numbers_are_named():
    rng = np.random.default_rng(0)
    centers = np.array([[0, 0], [3.6, 0], [20, 0], [23.6, 0], [10, 16], [13.6, 16]])
    result = quick((rng.normal(0, 1, (6, 80, 2)) + centers[:, None]).reshape(-1, 2))
    assert {result.recommended, result.runner_up} == {3, 6}
    assert result.strength == "weak"
    assert "3 or 6 depends on the detail you need" in result.reason


def test_a_number_at_the_edge_of_the_requested_range_is_weak():
    result = quick(clusters((0, 0), (12, 0), (0, 12), (12, 12)), range(2, 5))
    assert (result.recommended, result.strength) == (4, "weak")
    assert result.reason.endswith("4 is the largest number that was compared: larger numbers would decide it.")
    assert quick(clusters((0, 0), (12, 0), (0, 12), (12, 12)), range(2, 6)).strength == "clear"


def test_a_number_at_the_edge_of_the_automatic_range_extends_it(monkeypatch):
    monkeypatch.setattr(choose_k_criteria, "MAX_DENSE_K", 3)
    monkeypatch.setattr(choose_k_criteria.CriteriaRun, "automatic_ks", lambda run, names: run.fit_requested([1, 2, 3]))
    centers = [(12 * i, 12 * j) for i in range(3) for j in range(2)]
    result = quick(clusters(*centers), criteria=["silhouette", "gap", "valleys"])
    assert result.recommended == 6
    assert result.ks.tolist() == list(range(1, result.ks.max() + 1))
    assert result.sweep.ks.tolist() == result.ks.tolist()


def test_advice_does_not_outvote_the_clusters():
    """All mixture criteria together weigh less than any one of the silhouette, stability, gap and valleys."""
    advice = sum(WEIGHTS[name] for name in ADVICE)
    assert all(advice < WEIGHTS[name] for name in ("silhouette", "prediction_strength", "valleys"))
    assert sum(MODEL_WEIGHTS[name] for name in ADVICE) > sum(WEIGHTS[name] for name in ADVICE)


def test_mixture_criteria_judge_the_clusters_of_a_mixture():
    X = clusters((0, 0), (6, 0))
    votes = {
        kind: {vote.criterion: vote.weight for vote in quick(X, [1, 2], estimator=estimator, criteria=["icl"]).votes}
        for kind, estimator in [("k-means", None), ("mixture", GaussianMixture(random_state=0))]
    }
    assert votes["k-means"]["icl"] == WEIGHTS["icl"] < votes["mixture"]["icl"] == MODEL_WEIGHTS["icl"]


def test_the_text_forms_are_short_and_have_the_strength():
    result = quick(clusters((0, 0), (12, 0)), range(1, 5), criteria=JUDGES)
    assert str(result).startswith("K = 2 (clear): ")
    assert len(repr(result).splitlines()) < 20


def test_every_criterion_has_a_name_and_two_weights():
    assert set(NAMES) == set(WEIGHTS) == set(MODEL_WEIGHTS)


def test_few_outliers_in_a_cluster_are_a_reason_for_doubt():
    result = quick(clusters((0, 0), (12, 0)), range(1, 5), criteria=JUDGES)
    labels = [np.asarray(each).copy() for each in result.sweep.labels]
    labels[1][:] = 0
    labels[1][0] = 1
    sweep = SimpleNamespace(ks=result.sweep.ks, labels=labels, sample_weight=None, X=result.sweep.X)
    doubtful = replace(result, sweep=sweep)
    assert doubtful.strength == "weak"
    assert "The smallest of the 2 clusters has less than 1 % of the rows." in doubtful.reason
