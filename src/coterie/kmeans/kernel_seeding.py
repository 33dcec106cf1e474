"""Starts in a space without coordinates: every start says of each row which mean it counts for, -1 for none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from coterie.core.errors import ParameterError

ALIKE = 1e-9  # potentials that differ by less are those of equal rows


class Space(NamedTuple):
    """Rows of which the products are known."""

    diagonal: np.ndarray  # (n,) k(x, x)
    counts: np.ndarray  # (n,) weights
    columns: Callable[[np.ndarray], np.ndarray]  # the products of all rows with some (n, m)
    middle: Callable[[], np.ndarray]  # the product of every row with the mean of all (n,)

    def squares_to(self, rows: np.ndarray) -> np.ndarray:
        """The squared distances of all rows to some (n, m)."""
        found = self.diagonal[:, None] - 2 * self.columns(rows).astype(np.float64) + self.diagonal[rows]
        found = np.maximum(found, 0)
        found[rows, np.arange(len(rows))] = 0
        return found

    def first_farthest(self, squares: np.ndarray) -> int:
        """The first of the farthest rows that count."""
        counted = np.where(self.counts > 0, squares, -np.inf)
        most = counted.max()
        return int(np.argmax(counted >= most - ALIKE * abs(most)))


def plusplus(space: Space, rng: np.random.Generator, k: int) -> np.ndarray:
    """Greedy k-means++ [1]_: rows drawn by their squared distance to those there are, the best of a few a round.

    .. [1] Arthur & Vassilvitskii (2007), k-means++: the advantages of careful seeding, SODA.
    """
    chosen = drawn(space.counts, rng, 1)
    closest = space.squares_to(chosen)[:, 0]
    while len(chosen) < k:
        candidates = np.unique(drawn(space.counts * closest, rng, 2 + int(np.log(k))))
        if len(candidates) == 0:
            break  # every row is on a mean
        squares = np.minimum(closest[:, None], space.squares_to(candidates))
        potential = space.counts @ squares
        best = int(np.argmax(potential <= potential.min() * (1 + ALIKE)))
        chosen, closest = np.append(chosen, candidates[best]), squares[:, best]
    return at_rows(chosen, len(closest))


def forgy(space: Space, rng: np.random.Generator, k: int) -> np.ndarray:
    """`k` different rows, drawn in proportion to their weights."""
    keys = rng.standard_exponential(len(space.counts))
    keys = np.where(space.counts > 0, keys / np.where(space.counts > 0, space.counts, 1), np.inf)
    return at_rows(np.argsort(keys, kind="stable")[:k], len(keys))


def random_partition(space: Space, rng: np.random.Generator, k: int) -> np.ndarray:
    """Every row in a cluster by chance."""
    return rng.integers(k, size=len(space.counts))


def farthest(space: Space, rng: np.random.Generator, k: int) -> np.ndarray:
    """The row farthest from the mean, then the one farthest from that, ... Without chance."""
    chosen = np.array([space.first_farthest(space.diagonal - 2 * space.middle())])
    closest = space.squares_to(chosen)[:, 0]
    while len(chosen) < k:
        row = space.first_farthest(closest)
        if closest[row] <= 0:
            break
        chosen = np.append(chosen, row)
        closest = np.minimum(closest, space.squares_to(chosen[-1:])[:, 0])
    return at_rows(chosen, len(closest))


METHODS = {
    "k-means++": plusplus,
    "forgy": forgy,
    "random": forgy,  # scikit-learn's word
    "random_partition": random_partition,
    "farthest": farthest,
}


def at_rows(rows: np.ndarray, n: int) -> np.ndarray:
    """Means that are one row each."""
    labels = np.full(n, -1)
    labels[rows] = np.arange(len(rows))
    return labels


def drawn(mass: np.ndarray, rng: np.random.Generator, size: int) -> np.ndarray:
    """Rows drawn in proportion to `mass`; none where there is no mass."""
    until = np.cumsum(mass)
    if not until[-1] > 0:
        return np.zeros(0, np.int64)
    rows = np.searchsorted(until, rng.random(size) * until[-1], side="right")
    return np.minimum(rows, np.flatnonzero(mass)[-1])


def check_labels(init: Any, n: int, k: int, counts: np.ndarray | None = None) -> np.ndarray:
    """`init` as labels (n,), each of the k clusters with a row that counts."""
    labels = np.asarray(init)
    if labels.dtype.kind not in "iu" or labels.shape != (n,):
        raise ParameterError(
            f"init must be one of {', '.join(map(repr, METHODS))}, a callable, or a label of type int for each of the "
            f"{n} rows; got an array of {labels.dtype} of shape {labels.shape}"
        )
    seen = np.unique(labels if counts is None else labels[counts > 0])
    if not np.array_equal(seen, np.arange(k)):
        found = f"{seen[:10].tolist()}{' ...' if len(seen) > 10 else ''}"
        raise ParameterError(
            f"init must have a row of weight above 0 in each cluster from 0 to {k - 1}; it has {found}"
        )
    return labels


def check_start(init: Any, n: int, k: int) -> None:
    """Refuses what cannot be a start, before any work is done."""
    if isinstance(init, str):
        if init not in METHODS:
            known = ", ".join(map(repr, METHODS))
            raise ParameterError(f"init must be one of {known}, a callable or labels; got {init!r}")
    elif not callable(init):
        check_labels(init, n, k)
