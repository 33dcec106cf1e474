"""The number of clusters of rows with missing values, which the estimator ignores."""

import numpy as np
import pytest

from coterie import GaussianMixture, KMeans, choose_k
from coterie.datasets import make_blobs
from coterie.errors import InputError, ParameterError


def rows(share, n=240, d=4, centers=3):
    X, _ = make_blobs(n, d, centers=centers, cluster_std=0.3, random_state=2)
    X[np.random.default_rng(0).random(X.shape) < share] = np.nan
    return X[~np.isnan(X).all(axis=1)]


@pytest.mark.parametrize("estimator", [KMeans(missing="ignore"), GaussianMixture(missing="ignore", tol=0.01)])
def test_clusters_far_apart_are_counted(estimator):
    X = rows(0.05, n=120, d=3, centers=2)
    result = choose_k(X, range(1, 4), estimator=estimator, budget="quick", random_state=0)
    assert result.recommended == 2
    assert [vote.criterion for vote in result.votes] == ["tendency", "silhouette", "elbow", "prediction_strength"]


def test_weights_and_threads_are_for_these_rows_too():
    X, w = rows(0.05), np.arange(240) % 3
    first, second = (
        choose_k(X, range(1, 5), estimator=KMeans(missing="ignore"), sample_weight=w[: len(X)], n_jobs=n,
                 budget="quick", random_state=0).table() for n in (1, 3)
    )  # fmt: skip
    assert first == second


def test_what_too_few_values_do_not_allow_is_not_computed_and_says_so():
    X = rows(0.5, d=3)
    X[:, 0] = np.nan
    X[np.isnan(X).all(axis=1), 1] = 0.0
    X[4] = [1.0, np.nan, np.nan]  # no other row, and no half but one, has a value in this column
    result = choose_k(X, range(1, 4), estimator=KMeans(missing="ignore"), budget="quick", random_state=0)
    notes = {vote.criterion: vote.note for vote in result.votes if vote.k is None}
    assert notes["tendency"] == "not computed: most rows have missing values"
    assert "two rows have no column in which both have a value" in notes["silhouette"]
    assert "NaN in every row" in notes["prediction_strength"]


def test_other_criteria_and_other_estimators_are_rejected():
    X = rows(0.05)
    with pytest.raises(ParameterError, match=r"criteria for rows with missing values are .*; got 'gap'"):
        choose_k(X, criteria="gap", estimator=KMeans(missing="ignore"))
    with pytest.raises(InputError, match=r"KMeans\(missing='ignore'\)"):
        choose_k(X)


def test_rows_without_missing_values_have_all_criteria():
    X = rows(0)
    plain, ignoring = (choose_k(X, range(1, 5), estimator=each, criteria=["silhouette", "gap"], random_state=0)
                       for each in (KMeans(n_init=10), KMeans(n_init=10, missing="ignore")))  # fmt: skip
    assert plain.table() == ignoring.table()
