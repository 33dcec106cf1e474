"""States of a search in a checkpoint: those that do not fit the search are rejected."""

from dataclasses import replace

import numpy as np
import pytest

from coterie.errors import CheckpointError
from coterie.kmeans.search_state import SearchState, check_state_matches

CENTERS = np.zeros((2, 1))
STATE = SearchState(CENTERS, 1.0, 0, 0.0, 1.0, 1.0, np.random.default_rng(0), ())


def test_a_state_of_the_same_search_is_accepted():
    check_state_matches(replace(STATE, population=((1.0, CENTERS),)), CENTERS)


@pytest.mark.parametrize(
    "changes",
    [
        {"best": np.zeros((3, 1))},
        {"best": np.full((2, 1), np.nan)},
        {"population": ((1.0, CENTERS[:1]),)},
        {"population": ((1.0, CENTERS.astype(np.float32)),)},
    ],
    ids=["shape", "not finite", "population", "dtype"],
)
def test_arrays_of_another_search_are_rejected(changes):
    with pytest.raises(CheckpointError, match="does not match these rows"):
        check_state_matches(replace(STATE, **changes), CENTERS)
