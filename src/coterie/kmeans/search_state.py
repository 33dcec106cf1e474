"""State of a search, from which it can resume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.stored import stored
from coterie.errors import CheckpointError

INDICES = {"labels": 0, "second": -1}  # arrays whose values are indices of clusters, and their minimum


@stored(
    "checkpoint.Search",
    in_checkpoints=True,
    best="real K D",
    steps="count",
    rng="generator",
    base="tuple",
    base_moves="tuple",
    population="tuple",
)
@dataclass(frozen=True)
class SearchState:
    """State of a search between two jumps, or between two children."""

    best: np.ndarray  # (k, d) best centers so far
    best_objective: float
    steps: int
    spent: float  # multiply-adds
    allowed: float  # multiply-adds
    seconds: float  # remaining time
    rng: np.random.Generator
    base: tuple[Any, ...]  # arrays of the solution from which it jumps
    base_moves: tuple[Any, ...]  # arrays that describe the moves of that solution
    population: tuple[tuple[float, Any], ...]  # objectives and centers


def check_state_matches(state: SearchState, centers: np.ndarray, base: Any, base_moves: Any) -> None:
    """Raise an error if the arrays of `state` do not fit the arrays of this search."""
    expected = [("centers", centers)] * (1 + len(state.population))
    expected += [*zip(base._fields, base, strict=True), *zip(base_moves._fields, base_moves, strict=True)]
    arrays = [state.best, *(member for _, member in state.population), *state.base, *state.base_moves]
    if len(arrays) != len(expected) or not all(
        _matches(name, like, array, len(centers)) for (name, like), array in zip(expected, arrays, strict=True)
    ):
        raise CheckpointError(
            "the state of the search in the checkpoint does not match these rows: delete the file to start again"
        )


def _matches(name: str, like: np.ndarray, array: Any, k: int) -> bool:
    if not isinstance(array, np.ndarray) or array.shape != like.shape or array.dtype != like.dtype:
        return False
    if name == "centers":
        return bool(np.isfinite(array).all())
    return name not in INDICES or bool(((array >= INDICES[name]) & (array < k)).all())
