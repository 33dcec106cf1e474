"""Where a search stands, so that another one can go on from there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.errors import CheckpointError
from coterie.core.stored import stored

INDICES = ("labels", "other", "listed")  # arrays that hold numbers of clusters


@stored(
    "checkpoint.Search",
    in_checkpoints=True,
    best="real K D",
    steps="count",
    rng="generator",
    home="tuple",
    moves="tuple",
    crowd="tuple",
)
@dataclass(frozen=True)
class Searched:
    """A search between two jumps, or between two children."""

    best: np.ndarray  # (k, d) the best centers there have been
    least: float  # their objective
    steps: int
    spent: float
    allowed: float
    seconds: float  # left to it
    rng: np.random.Generator
    home: tuple[Any, ...]  # arrays of the solution it jumps from
    moves: tuple[Any, ...]  # and what is known of its moves
    crowd: tuple[tuple[float, Any], ...]  # objectives and centers of the population


def check_alike(found: Searched, centers: np.ndarray, home: Any, moves: Any) -> None:
    """Refuse a state whose arrays are not of a search like this one."""
    good = _centers(found.best, centers) and all(_centers(each, centers) for _, each in found.crowd)
    if not (good and _all_alike(home, found.home, len(centers)) and _all_alike(moves, found.moves, len(centers))):
        raise CheckpointError("the state of the search in the checkpoint does not go with these rows: delete the file")


def _all_alike(like: Any, found: tuple[Any, ...], k: int) -> bool:
    return len(like) == len(found) and all(
        _alike(name, mine, theirs, k) for name, mine, theirs in zip(like._fields, like, found, strict=True)
    )


def _centers(found: Any, centers: np.ndarray) -> bool:
    return bool(_alike("centers", centers, found, 0) and np.isfinite(found).all())


def _alike(name: str, like: np.ndarray, found: Any, k: int) -> bool:
    if not isinstance(found, np.ndarray) or found.shape != like.shape or found.dtype != like.dtype:
        return False
    return name not in INDICES or found.size == 0 or bool(found.min() >= 0 and found.max() < k)
