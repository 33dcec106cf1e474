"""Starting points for centers; each is passes of an engine, so each works on every source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coterie.core.arguments import as_floats
from coterie.core.errors import ParameterError
from coterie.core.protocols import Engine, Source
from coterie.seeding.costs import SQUARES, Cost
from coterie.seeding.farthest import farthest
from coterie.seeding.plusplus import plusplus
from coterie.seeding.rows import forgy, random_partition
from coterie.seeding.scalable import scalable

__all__ = ["METHODS", "check_start", "farthest", "forgy", "plusplus", "random_partition", "scalable", "start", "starts"]

METHODS: dict[str, Callable[..., np.ndarray[Any, Any]]] = {
    "k-means++": plusplus,
    "forgy": forgy,
    "random": forgy,  # scikit-learn's word
    "random_partition": random_partition,
    "farthest": farthest,
    "k-means||": scalable,
}


def start(
    init: Any,
    source: Source,
    engine: Engine,
    rng: np.random.Generator,
    k: int,
    unit: float,
    chosen: Any = None,
    cost: Cost = SQUARES,
) -> np.ndarray[Any, Any]:
    """`k` centers (k, d) in the data's type: by the name of a method, a function, or the centers themselves.

    They come beside those already `chosen` (f, d): methods that keep away from other centers keep away from these.
    Methods that go by distances go by `cost`, which is what the model minimises.
    """
    if k == 0:
        return np.empty((0, source.shape[1]), source.dtype)
    if isinstance(init, str):
        method = METHODS[check_start(init, source, k)]
        beside = {"chosen": chosen} if chosen is not None and method in (plusplus, farthest, scalable) else {}
        return method(source, engine, rng, k, unit, cost=cost, **beside).astype(source.dtype, copy=False)
    if callable(init):
        init = init(getattr(source, "X", None), k, np.random.RandomState(rng.integers(2**32)))
    given = 0 if chosen is None else len(chosen)
    return np.array(check_start(init, source, k, given), dtype=source.dtype, order="C")


def check_start(init: Any, source: Source, k: int, given: int = 0) -> Any:
    """`init` if it can be a start: a name, a function, or `k` finite centers beside those `given`."""
    if isinstance(init, str):
        if init not in METHODS:
            known = ", ".join(map(repr, METHODS))
            raise ParameterError(f"init must be one of {known}, an array or a callable; got {init!r}")
        return init
    if callable(init):
        return init
    wanted = (k, source.shape[1])
    try:
        centers = as_floats(init)
    except (TypeError, ValueError):
        raise ParameterError(f"init must be the name of a method, a callable or numbers; got {init!r}") from None
    if centers.shape != wanted:
        many = f"n_clusters={k}" if not given else f"{k}, n_clusters={k + given} less {given} frozen"
        raise ParameterError(
            f"init must be {many} centers of {wanted[1]} columns, shape {wanted}; its shape is {centers.shape}"
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
