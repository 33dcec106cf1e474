"""Initialisation of kernel K-means. A method returns the mean that each row belongs to, or -1."""

from typing import Any, NamedTuple

import numpy as np

from coterie.errors import ParameterError

TIE = 1e-9  # relative difference of potentials that counts as a tie


class FeatureSpace(NamedTuple):
    """Rows in the feature space of a kernel."""

    diagonal: np.ndarray  # (n,) k(x, x)
    counts: np.ndarray  # (n,) weights
    columns: Any = None  # function: kernel values of all rows with some rows (n, m)
    mean_products: Any = None  # function: inner product of every row with the mean of all rows (n,)

    def squares_to(self, rows: np.ndarray) -> np.ndarray:
        """Squared distances of all rows to some rows (n, m)."""
        squares = self.diagonal[:, None] - 2 * self.columns(rows).astype(np.float64) + self.diagonal[rows]
        squares = np.maximum(squares, 0)
        squares[rows, np.arange(len(rows))] = 0
        return squares

    def first_farthest(self, squares: np.ndarray) -> int:
        """First of the farthest rows of positive weight."""
        weighted = np.where(self.counts > 0, squares, -np.inf)
        largest = weighted.max()
        return int(np.argmax(weighted >= largest - TIE * abs(largest)))


def plusplus(space: FeatureSpace, rng: np.random.Generator, k: int) -> np.ndarray:
    """Greedy k-means++ [1]_: sample rows by their squared distance to the chosen rows, and choose the best of a few.

    .. [1] Arthur & Vassilvitskii (2007), k-means++: the advantages of careful seeding, SODA.
    """
    chosen = draw(space.counts, rng, 1)
    closest = space.squares_to(chosen)[:, 0]
    while len(chosen) < k:
        candidates = np.unique(draw(space.counts * closest, rng, 2 + int(np.log(k))))
        if len(candidates) == 0:
            break  # every row equals a chosen row
        squares = np.minimum(closest[:, None], space.squares_to(candidates))
        potential = space.counts @ squares
        best = int(np.argmax(potential <= potential.min() * (1 + TIE)))
        chosen, closest = np.append(chosen, candidates[best]), squares[:, best]
    return labels_of_rows(chosen, len(closest))


def forgy(space: FeatureSpace, rng: np.random.Generator, k: int) -> np.ndarray:
    """A random sample of `k` different rows, in proportion to their weights."""
    return labels_of_rows(draw_distinct(space.counts, rng, k), len(space.counts))


def random_partition(space: FeatureSpace, rng: np.random.Generator, k: int) -> np.ndarray:
    """A random cluster for every row."""
    return rng.integers(k, size=len(space.counts))


def farthest(space: FeatureSpace, rng: np.random.Generator, k: int) -> np.ndarray:
    """The row farthest from the mean, then the row farthest from the chosen rows, and so on. It is deterministic."""
    chosen = np.array([space.first_farthest(space.diagonal - 2 * space.mean_products())])
    closest = space.squares_to(chosen)[:, 0]
    while len(chosen) < k:
        row = space.first_farthest(closest)
        if closest[row] <= 0:
            break
        chosen = np.append(chosen, row)
        closest = np.minimum(closest, space.squares_to(chosen[-1:])[:, 0])
    return labels_of_rows(chosen, len(closest))


METHODS = {
    "k-means++": plusplus,
    "forgy": forgy,
    "random": forgy,  # scikit-learn's name
    "random_partition": random_partition,
    "farthest": farthest,
}


def labels_of_rows(rows: np.ndarray, n: int) -> np.ndarray:
    """Labels for means that consist of one row each."""
    labels = np.full(n, -1)
    labels[rows] = np.arange(len(rows))
    return labels


def draw(mass: np.ndarray, rng: np.random.Generator, size: int) -> np.ndarray:
    """Draw rows in proportion to `mass`; none if the mass is zero."""
    cumulative = np.cumsum(mass)
    if not cumulative[-1] > 0:
        return np.zeros(0, np.int64)
    rows = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
    return np.minimum(rows, np.flatnonzero(mass)[-1])


def draw_distinct(mass: np.ndarray, rng: np.random.Generator, limit: int) -> np.ndarray:
    """Draw at most `limit` different rows in proportion to `mass`."""
    keys = rng.standard_exponential(len(mass)) / np.where(mass > 0, mass, 1)
    return np.argsort(np.where(mass > 0, keys, np.inf), kind="stable")[: min(limit, np.count_nonzero(mass))]


def initial_labels(init: Any, n: int, k: int, rng: np.random.Generator, counts: np.ndarray | None) -> np.ndarray:
    """Initial labels from an array, or from a function of k and a `RandomState`."""
    labels = init(k, np.random.RandomState(rng.integers(2**32))) if callable(init) else init
    return check_labels(labels, n, k, counts)


def check_labels(init: Any, n: int, k: int, counts: np.ndarray | None = None) -> np.ndarray:
    """`init` as labels (n,); every cluster must have a row of positive weight."""
    labels = np.asarray(init)
    if labels.dtype.kind not in "iu" or labels.shape != (n,):
        raise ParameterError(
            f"init must be one of {', '.join(map(repr, METHODS))}, a callable, or a label of type int for each of the "
            f"{n} rows; got an array of {labels.dtype} of shape {labels.shape}"
        )
    present = np.unique(labels if counts is None else labels[counts > 0])
    if not np.array_equal(present, np.arange(k)):
        listed = f"{present[:10].tolist()}{' ...' if len(present) > 10 else ''}"
        raise ParameterError(
            f"init must have a row of weight above 0 in each cluster from 0 to {k - 1}; it has {listed}"
        )
    return labels


def check_start(init: Any, n: int, k: int) -> None:
    """Raise an error if `init` is invalid, before any work."""
    if isinstance(init, str):
        if init not in METHODS:
            known = ", ".join(map(repr, METHODS))
            raise ParameterError(f"init must be one of {known}, a callable or labels; got {init!r}")
    elif not callable(init):
        check_labels(init, n, k)
