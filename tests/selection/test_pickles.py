"""Results can be sent to other processes."""

import pickle

import numpy as np
import pytest

from coterie import KMeans, choose_k, diagnose
from coterie.datasets import make_blobs
from coterie.selection import gap_statistic, mixture_table, stability, sweep, tendency

RESULTS = {
    "choose_k": lambda X: choose_k(X, range(1, 4), budget="quick", random_state=0),
    "diagnose": lambda X: diagnose(X=X, random_state=0),
    "gap_statistic": lambda X: gap_statistic(X, range(1, 4), n_references=3, random_state=0),
    "mixture_table": lambda X: mixture_table(X, [2], structures=["EII"], random_state=0),
    "coarse mixture_table": lambda X: mixture_table(X, [2], starts=sweep(KMeans(random_state=0), X, [2])),
    "stability": lambda X: stability(KMeans(random_state=0), X, [2], n_resamples=3, random_state=0),
    "sweep": lambda X: sweep(KMeans(random_state=0), X, range(1, 4)),
    "tendency": lambda X: tendency(X, random_state=0),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_can_be_pickled(name):
    X, _ = make_blobs(60, 2, centers=3, random_state=0)
    result = RESULTS[name](X)
    assert str(pickle.loads(pickle.dumps(result))) == str(result)


def test_a_model_of_an_approximate_table_has_no_callback_left():
    """Otherwise a later fit of it would stop early."""
    X, _ = make_blobs(60, 2, centers=3, random_state=0)
    table = mixture_table(X, [2, 3], starts=sweep(KMeans(random_state=0), X, [2, 3]))
    assert all(model.callback is None for model in table.models.values())
    assert np.isfinite(table.bic).any()
