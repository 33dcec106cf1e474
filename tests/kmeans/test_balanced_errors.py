"""Invalid sizes and options are rejected with a message that states the valid ones."""

import numpy as np
import pytest

from coterie import BalancedKMeans
from coterie.errors import InputError, ParameterError
from kmeans.balanced_cases import groups


@pytest.mark.parametrize(
    "options, words",
    [
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1; got 0"),
        ({"size_min": -1}, "size_min must be None, an integer >= 0, or 3 of them.*got -1"),
        ({"size_min": 2.5}, "size_min must be None, an integer >= 0.*got 2.5"),
        ({"size_max": True}, "size_max must be None, an integer.*got True"),
        ({"size_max": "many"}, "size_max must be None, an integer.*got 'many'"),
        ({"size_max": [1, [2]]}, r"size_max must be None, an integer.*got \[1, \[2\]\]"),
        ({"size_min": [1, 2]}, r"size_min must be .* or 3 of them, one per cluster; got shape \(2,\)"),
        (
            {"size_min": 20, "size_max": 10},
            "size_min=20 is greater than size_max=10 for cluster 0: size_min must be <= size_max",
        ),
        ({"size_min": [1, 2, 9], "size_max": [90, 90, 8]}, "size_min=9 is greater than size_max=8 for cluster 2"),
        ({"size_min": 31}, r"size_min requires 93 rows in 3 clusters, but X has 90 rows .*: lower size_min"),
        ({"size_max": 29}, r"size_max allows 87 rows in 3 clusters, but X has 90 rows .*: raise size_max"),
        ({"init": "best"}, "init must be one of 'auto', 'k-means"),
        ({"init": np.ones((2, 3))}, "init must be n_clusters=3 centers"),
        ({"n_init": 0}, "n_init must be 'auto' or a whole number"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1; got 0"),
        ({"tol": -1.0}, "tol must be a finite number of at least 0"),
        ({"engine": "gpu"}, "engine must be 'auto'"),
        ({"callback": 3}, "callback must be None or a function"),
    ],
)
def test_invalid_options_are_rejected_with_the_valid_ones(options, words):
    with pytest.raises(ParameterError, match=words):
        BalancedKMeans(**{"n_clusters": 3, **options}).fit(groups(90, 3, 3))


def test_sizes_are_judged_by_the_rows_that_have_weight():
    w = np.repeat([1.0, 0.0], [60, 30])
    with pytest.raises(ParameterError, match=r"but X has 60 rows \(of weight above 0\)"):
        BalancedKMeans(3, size_min=25).fit(groups(90, 3, 3), sample_weight=w)


def test_too_few_rows_and_missing_values_are_rejected():
    with pytest.raises(InputError, match="n_clusters=91: use n_clusters <= 90"):
        BalancedKMeans(91).fit(groups(90, 3, 3))
    with pytest.raises(InputError, match="NaN"):
        BalancedKMeans(3).fit(np.full((9, 2), np.nan))


def test_dask_rows_are_rejected_with_a_remedy_and_can_be_predicted():
    da = pytest.importorskip("dask.array")
    X = groups(90, 3, 3)
    lazy = da.from_array(X, chunks=(30, -1))
    with pytest.raises(InputError, match=r"X is a Dask array, .*: pass X.compute\(\)"):
        BalancedKMeans(3).fit(lazy)
    model = BalancedKMeans(3, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(lazy).compute(), model.predict(X))


def test_a_fit_that_fails_leaves_the_earlier_one_as_it_was():
    X = groups(90, 3, 3)
    model = BalancedKMeans(3, random_state=0).fit(X)
    before = model.predict(X)
    with pytest.raises(ParameterError):
        model.set_params(size_min=99).fit(X)
    np.testing.assert_array_equal(model.predict(X), before)
