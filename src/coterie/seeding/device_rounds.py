"""k-means++ of rows on one GPU: the rounds of `plusplus` without copies between host and device."""

from functools import partial
from typing import Any

import numpy as np

from coterie import interrupts, kernels
from coterie.core.protocols import Chunk, Engine, Source
from coterie.seeding.costs import WORK

ROUNDS = 64  # that the device runs before the host looks at their results


def on_device(
    source: Source, engine: Engine, rng: np.random.Generator, k: int, unit: float, size: int, chosen: Any
) -> np.ndarray[Any, Any] | None:
    """Centers (k, d) as those of `plusplus`; None if rows are not on one GPU, or its kernels do not support them."""
    if source.engine != "cuda" or len(source.parts()) > 1:
        return None
    centers: np.ndarray[Any, Any] | None = engine.map(partial(_centers, rng, k, unit, size, chosen), source)[0]
    return centers


def _centers(
    rng: np.random.Generator, k: int, unit: float, size: int, chosen: Any, chunk: Chunk
) -> np.ndarray[Any, Any] | None:
    X, w, ops = chunk.X, chunk.w, kernels.for_centers(chunk.X, WORK)
    wanted = k - (chosen is None)
    rounds = ops.plusplus_rounds(X, w, wanted, size, unit, chosen)
    if rounds is None:
        return None
    first = X[ops.draw(ops.row_values(X, 1, X.dtype), w, rng.random(1))[1]] if chosen is None else chosen
    fixed = first.astype(X.dtype, copy=False)
    for center in fixed[:-1]:
        rounds.add(center)
    rounds.start(fixed[-1])
    found, is_done = 0, wanted == 0
    while not is_done:
        interrupts.check()
        rounds.run(rng.random((min(wanted - found + 1, ROUNDS), 2, 2 * size + 6)))
        found, is_done = rounds.progress()
    missing = np.repeat(fixed[:1], wanted - found, axis=0)  # X has fewer distinct rows than centers: repeat one
    return np.concatenate([*([fixed] if chosen is None else []), X[rounds.rows(found)], missing])
