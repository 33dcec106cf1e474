"""A fit does not change the rows, and the model does not depend on what happens to them later."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from coterie import KMedoids
from coterie.errors import ParameterError
from laws.test_refitting import NAMES
from persistence.fitted import UNFITTED, X
from persistence.test_round_trip import answers, same
from short_searches import short_searches


def overwrite(rows):
    if isinstance(rows, pd.DataFrame):
        for name in rows.columns:
            rows.loc[:, name] = rows[name].iloc[0]
    elif isinstance(rows, list):
        for row in rows:
            overwrite(row)
    else:
        values = rows.data if sparse.issparse(rows) else rows
        values[...] = values.reshape(-1)[0]


@pytest.mark.parametrize("name", NAMES)
def test_rows_that_change_after_a_fit_change_no_answer(name):
    model, rows = UNFITTED[name]
    passed = deepcopy(rows)
    with short_searches():
        model = clone(model).fit(passed)
    assert passed.equals(rows) if isinstance(rows, pd.DataFrame) else same(passed, rows)
    before = answers(model, rows)
    overwrite(passed)
    assert same(answers(model, rows), before)


def test_parameters_of_a_distance_are_a_dict():
    with pytest.raises(ParameterError, match=r"metric_params must be a dict or None; got \[1\]"):
        KMedoids(2, metric_params=[1]).fit(X)


def test_parameters_of_a_distance_that_change_after_a_fit_change_no_answer():
    weights = np.array([1.0, 2.0, 3.0])
    model = KMedoids(3, metric="manhattan", metric_params={"w": weights}, random_state=0).fit(X)
    before = model.transform(X)
    weights[:] = [9.0, 0.0, 0.0]
    assert same(model.transform(X), before)
