"""A fitted model predicts with what it was fitted to: the number of clusters can be set for the next fit."""

from copy import copy

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

from persistence.fitted import UNFITTED, fitted
from persistence.test_round_trip import same

NUMBERS = ("n_clusters", "n_components")
NAMES = [
    name
    for name, (model, _) in UNFITTED.items()
    if not isinstance(model, Pipeline) and any(isinstance(getattr(model, each, None), int) for each in NUMBERS)
]


def predictions(model, rows):
    methods = ("predict", "transform", "predict_proba", "score_samples")
    return {name: np.asarray(getattr(model, name)(rows)) for name in methods if hasattr(model, name)}


@pytest.mark.parametrize("name", NAMES)
def test_the_number_of_clusters_of_the_next_fit_does_not_change_predictions(name):
    model, rows = fitted(name)
    if not hasattr(model, "predict"):
        pytest.skip("it has no predictions")
    number = next(each for each in NUMBERS if hasattr(model, each))
    for other in (1, getattr(model, number) + 2):
        assert same(predictions(copy(model).set_params(**{number: other}), rows), predictions(model, rows))
