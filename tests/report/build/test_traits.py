"""What sets a cluster apart: one value of each category, and shares of columns of zeros and ones."""

import numpy as np

from coterie.report.build.cluster_summaries import _is_share, _strongest


def test_one_value_of_a_category_is_named_and_rather_the_frequent_one():
    categories = [None, ("sex", "f"), ("sex", "m"), ("island", "x"), ("island", "y")]
    deviations = np.array([0.6, -0.9, 0.9, 1.2, -0.7])
    assert _strongest(deviations, categories) == [3, 2, 0]


def test_means_are_shares_if_all_values_are_zeros_and_ones():
    overall, variance = np.array([0.25, 0.25, 3.0, 0.5]), np.array([0.1875, 0.05, 1.0, 0.25])
    means = np.array([[0.0, 0.2, 2.0, -1.0], [0.5, 0.3, 4.0, 2.0]])
    assert _is_share([None] * 4, means, overall, variance).tolist() == [True, False, False, False]
    assert _is_share([None, ("a", "b"), None, None], means, overall, variance).tolist() == [True, True, False, False]
