"""State of a search, from which it can resume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.stored import stored
from coterie.errors import CheckpointError

INDICES = ("labels", "other", "listed")  # arrays whose values are indices of clusters


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
    k = len(centers)
    matches = (
        all(_is_centers(each, centers) for each in (state.best, *(member for _, member in state.population)))
        and _all_match(base, state.base, k)
        and _all_match(base_moves, state.base_moves, k)
    )
    if not matches:
        raise CheckpointError(
            "the state of the search in the checkpoint does not match these rows: delete the file to start again"
        )


def _all_match(expected: Any, arrays: tuple[Any, ...], k: int) -> bool:
    return len(expected) == len(arrays) and all(
        _matches(name, array, values, k) for name, array, values in zip(expected._fields, expected, arrays, strict=True)
    )


def _is_centers(array: Any, centers: np.ndarray) -> bool:
    return bool(_matches("centers", centers, array, 0) and np.isfinite(array).all())


def _matches(name: str, expected: np.ndarray, array: Any, k: int) -> bool:
    if not isinstance(array, np.ndarray) or array.shape != expected.shape or array.dtype != expected.dtype:
        return False
    return name not in INDICES or array.size == 0 or bool(array.min() >= 0 and array.max() < k)
