"""States of a search in a checkpoint: those that do not fit the search are rejected."""

from collections import namedtuple
from dataclasses import replace

import numpy as np
import pytest

from coterie.errors import CheckpointError
from coterie.kmeans.search_state import SearchState, check_state_matches

CENTERS = np.zeros((2, 1))
BASE = namedtuple("Base", "labels second")(np.zeros(4, int), np.full(4, -1))
MOVES = namedtuple("Moves", "gain")(np.zeros(2))
STATE = SearchState(CENTERS, 1.0, 0, 0.0, 1.0, 1.0, np.random.default_rng(0), tuple(BASE), tuple(MOVES), ())


def test_a_state_of_the_same_search_is_accepted():
    check_state_matches(replace(STATE, population=((1.0, CENTERS),)), CENTERS, BASE, MOVES)


@pytest.mark.parametrize("damage", [{"labels": 2}, {"labels": -1}, {"second": 2}, {"second": -2}], ids=str)
def test_indices_of_clusters_that_do_not_exist_are_rejected(damage):
    """The kernels use these indices without a check."""
    damaged = BASE._replace(**{name: np.full(4, value) for name, value in damage.items()})
    with pytest.raises(CheckpointError, match="does not match these rows"):
        check_state_matches(replace(STATE, base=tuple(damaged)), CENTERS, BASE, MOVES)


@pytest.mark.parametrize(
    "changes",
    [
        {"best": np.zeros((3, 1))},
        {"best": np.full((2, 1), np.nan)},
        {"base_moves": ()},
        {"population": ((1.0, CENTERS[:1]),)},
        {"base": (BASE.labels, BASE.second.astype(float))},
    ],
    ids=["shape", "not finite", "no moves", "population", "dtype"],
)
def test_arrays_of_another_search_are_rejected(changes):
    with pytest.raises(CheckpointError, match="does not match these rows"):
        check_state_matches(replace(STATE, **changes), CENTERS, BASE, MOVES)
