"""Starting points for centers; each is passes of an engine, so each works on every source."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.core.errors import ParameterError
from coterie.core.protocols import Engine, Source
from coterie.seeding.farthest import farthest
from coterie.seeding.plusplus import plusplus
from coterie.seeding.rows import forgy, random_partition

__all__ = ["METHODS", "check_start", "farthest", "forgy", "plusplus", "random_partition", "start", "starts"]

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
    """`k` centers (k, d) in the data's type: by the name of a method, a function, or the centers themselves."""
    if isinstance(init, str):
        return METHODS[check_start(init, source, k)](source, engine, rng, k, unit).astype(source.dtype, copy=False)
    if callable(init):
        init = init(getattr(source, "X", None), k, np.random.RandomState(rng.integers(2**32)))
    return np.array(check_start(init, source, k), dtype=source.dtype, order="C")


def check_start(init: Any, source: Source, k: int) -> Any:
    """`init` if it can be a start: a name, a function, or `k` finite centers."""
    if isinstance(init, str):
        if init not in METHODS:
            known = ", ".join(map(repr, METHODS))
            raise ParameterError(f"init must be one of {known}, an array or a callable; got {init!r}")
        return init
    if callable(init):
        return init
    wanted = (k, source.shape[1])
    try:
        centers = np.asarray(init, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"init must be the name of a method, a callable or numbers; got {init!r}") from None
    if centers.shape != wanted:
        raise ParameterError(
            f"init must be n_clusters={k} centers of {wanted[1]} columns, shape {wanted}; its shape is {centers.shape}"
        )
    if not np.isfinite(centers).all():
        raise ParameterError("init contains NaN or infinity: every center needs finite coordinates")
    return init


def starts(init: Any, n_init: Any, if_random: int) -> int:
    """How many starts `n_init` means: "auto" is `if_random` where chance decides alone, else 1."""
    if n_init == "auto":
        random = callable(init) or (isinstance(init, str) and METHODS.get(init) in (forgy, random_partition))
        return if_random if random else 1
    if isinstance(n_init, bool) or not hasattr(n_init, "__index__") or n_init < 1:
        raise ParameterError(f"n_init must be 'auto' or a whole number of at least 1; got {n_init!r}")
    return int(n_init)
