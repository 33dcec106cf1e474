"""What sets a cluster apart: one value of each category, and shares of columns of zeros and ones."""

import numpy as np

from coterie.report.build.cluster_summaries import _is_binary, _strongest


def test_one_value_of_a_category_is_named_and_rather_the_frequent_one():
    categories = [None, ("sex", "f"), ("sex", "m"), ("island", "x"), ("island", "y")]
    deviations = np.array([0.6, -0.9, 0.9, 1.2, -0.7])
    assert _strongest(deviations, categories) == [3, 2, 0]


def test_means_are_shares_if_all_values_are_zeros_and_ones():
    X = np.array([[0.0, 0.2, 2.0, 1e-9, np.nan], [1.0, 0.3, 4.0, 2e-9, 1.0], [1.0, 1.0, 4.0, 0.0, 0.0]])
    assert _is_binary(X).tolist() == [True, False, False, False, True]
