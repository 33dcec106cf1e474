"""Initial centers. Each method uses only passes of an engine, so that it works on every source."""

from collections.abc import Callable
from typing import Any

import numpy as np

from coterie.core.arguments import as_numbers, is_integer
from coterie.core.protocols import Engine, Source
from coterie.errors import ParameterError
from coterie.seeding.costs import SQUARES, Cost
from coterie.seeding.plusplus import farthest, forgy, greedy, greedy_rows, random_partition
from coterie.seeding.scalable import plusplus, runs_on_all_rows, scalable

__all__ = [
    "METHODS", "check_start", "farthest", "forgy", "greedy", "greedy_rows", "plusplus", "random_partition",
    "runs_on_all_rows", "scalable", "start", "starts",
]  # fmt: skip

METHODS: dict[str, Callable[..., np.ndarray[Any, Any]]] = {
    "auto": plusplus,
    "k-means++": plusplus,
    "forgy": forgy,
    "random": forgy,  # scikit-learn's name
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
    """Compute `k` initial centers (k, d) in the dtype of the data.

    Parameters
    ----------
    init : str, function or array (k, d)
        The name of a method in `METHODS`; a function of X, k and a `RandomState` that
        returns centers; or the centers.
    source, engine
        The rows, and the engine that computes on them.
    rng : Generator
        Random generator.
    k : int
        Number of centers.
    unit : float
        Scale of the rows: costs are computed in this unit.
    chosen : array (f, d), optional
        Centers that are already fixed. They are not returned. 'k-means++', 'farthest' and 'k-means||' choose the new
        centers far from them.
    cost : Cost
        The cost that the model minimises; methods based on distances use it.
    """
    if k == 0:
        return np.empty((0, source.shape[1]), source.dtype)
    if isinstance(init, str):
        check_start(init, source, k)
        method = METHODS[init]
        options = {"chosen": chosen} if chosen is not None and method in (plusplus, farthest, scalable) else {}
        return method(source, engine, rng, k, unit, cost=cost, **options).astype(source.dtype, copy=False)
    if callable(init):
        init = init(getattr(source, "X", source), k, np.random.RandomState(rng.integers(2**32)))
    n_frozen = 0 if chosen is None else len(chosen)
    return np.array(check_start(init, source, k, n_frozen), dtype=source.dtype, order="C")


def check_start(init: Any, source: Source, k: int, n_frozen: int = 0) -> Any:
    """Return `init` if it is valid: a name, a function, or `k` finite centers in addition to `n_frozen` fixed ones."""
    if isinstance(init, str):
        if init not in METHODS:
            names = ", ".join(map(repr, METHODS))
            raise ParameterError(f"init must be one of {names}, an array or a callable; got {init!r}")
        return init
    if callable(init):
        return init
    shape = (k, source.shape[1])
    centers = as_numbers("init", init, "the name of a method, a callable or an array of numbers")
    if centers.shape != shape:
        count = f"n_clusters={k}" if not n_frozen else f"{k}, n_clusters={k + n_frozen} minus {n_frozen} frozen"
        raise ParameterError(
            f"init must be {count} centers of {shape[1]} columns, shape {shape}; its shape is {centers.shape}"
        )
    if not np.isfinite(centers).all():
        raise ParameterError("init contains NaN or infinity: all coordinates of the centers must be finite")
    return init


def starts(init: Any, n_init: Any, if_random: int) -> int:
    """The number of initialisations; 'auto' is `if_random` for random methods and functions, and 1 for others."""
    if n_init == "auto":
        is_random = callable(init) or (isinstance(init, str) and METHODS.get(init) in (forgy, random_partition))
        return if_random if is_random else 1
    if not is_integer(n_init) or n_init < 1:
        raise ParameterError(f"n_init must be 'auto' or a whole number of at least 1; got {n_init!r}")
    return int(n_init)
