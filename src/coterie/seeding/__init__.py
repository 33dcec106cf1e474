"""Starting points for centers; each is passes of an engine, so each works on every source."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.core.errors import ParameterError
from coterie.core.protocols import Engine, Source
from coterie.seeding.farthest import farthest
from coterie.seeding.plusplus import plusplus
from coterie.seeding.rows import forgy, random_partition

__all__ = ["METHODS", "farthest", "forgy", "plusplus", "random_partition", "start"]

METHODS = {
    "k-means++": plusplus,
    "forgy": forgy,
    "random": forgy,  # scikit-learn's word
    "random_partition": random_partition,
    "farthest": farthest,
}


def start(
    init: Any, source: Source, engine: Engine, rng: np.random.Generator, k: int, unit: float
) -> np.ndarray[Any, Any]:
    """`k` centers (k, d) in the data's type, from the name of a method or from the centers themselves."""
    if isinstance(init, str):
        if init not in METHODS:
            raise ParameterError(
                f"init must be one of {', '.join(map(repr, METHODS))}, an array or a callable; got {init!r}"
            )
        return METHODS[init](source, engine, rng, k, unit).astype(source.dtype, copy=False)
    return np.array(init, dtype=source.dtype, order="C")
