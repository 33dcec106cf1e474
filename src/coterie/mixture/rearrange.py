"""New starts from the best runs of a search, which may lead to better local optima: responsibilities (runs, n, k)."""

from itertools import product
from typing import Any

import numpy as np

from coterie.mixture.trials import Trials

PAIRS = 60  # maximum number of pairs of components that may be merged: those that are most similar
SPLIT_STEPS = 6  # EM steps in which a component is divided in two
NO_ROW = 1e-12  # minimum responsibility, so that components without rows have an estimate
TINY = float(np.finfo(np.float64).tiny)

Move = tuple[int, int, int]  # merge the first two components, and split the third one


def split_and_merge(trials: Trials, params: Any, count: int, skip: int = 0) -> np.ndarray:
    """Merge two components of a run, the only one of a batch, and split another [1]_.

    The gain of a move is estimated from components that are fitted alone, so the moves that gain most come first.
    Before them come sets of moves of different components: all that gain, the better half of them, and so on. The first
    `skip` starts are left out.

    .. [1] Ueda, Nakano, Ghahramani & Hinton (2000), SMEM algorithm for mixture models, Neural Computation 12.
    """
    (resp,), (log_density,) = trials.responsibilities(params)
    n, k = resp.shape
    if k < 3:
        return np.empty((0, n, k))
    parts, floored = trials.for_parts(), np.maximum(resp, NO_ROW)
    pairs, losses = _merges(parts, floored, log_density, params.weights[0])
    halves, gains = _splits(parts, floored, trials.halves(resp))
    net = gains[None] - losses[:, None]
    order = sorted(product(range(len(pairs)), range(k)), key=lambda move: -net[move])
    order = [(i, j) for i, j in order if j not in pairs[i]]
    moves = [(*pairs[i], j) for i, j in order]
    n_gains = sum(net[move] > 0 for move in order)
    sets = [*_sets(moves[:n_gains]), *([move] for move in moves)]
    starts = [_moved(resp, halves, some) for some in sets[skip : skip + count]]
    return np.stack(starts) if starts else np.empty((0, n, k))


def _sets(moves: list[Move]) -> list[list[Move]]:
    """Sets of moves: all that have no component in common, the better half of them, and so on."""
    separate: list[Move] = []
    components: set[int] = set()
    for move in moves:
        if components.isdisjoint(move):
            separate.append(move)
            components.update(move)
    sets = []
    while len(separate) > 1:
        sets.append(separate)
        separate = separate[: len(separate) // 2]
    return sets


def _moved(resp: np.ndarray, halves: np.ndarray, moves: list[Move]) -> np.ndarray:
    """Responsibilities (n, k) after these moves."""
    moved = resp.copy()
    for first, second, split in moves:
        moved[:, first] += moved[:, second]
        moved[:, second] = resp[:, split] * halves[:, split]
        moved[:, split] = resp[:, split] - moved[:, second]
    return moved


def _merges(
    trials: Trials, resp: np.ndarray, log_density: np.ndarray, weights: np.ndarray
) -> tuple[list[tuple[int, int]], np.ndarray]:
    """Pairs of similar components, and the log-likelihood that is lost if they are merged."""
    first, second = np.triu_indices(resp.shape[1], 1)
    mass = trials.w[:, None] * resp
    length = np.sqrt((mass**2).sum(axis=0) + TINY)
    shared = (mass.T @ mass / np.outer(length, length))[first, second]
    scores = np.log(resp) + log_density[:, None] - np.log(np.maximum(weights, TINY))
    mean = mass.T @ scores / np.maximum(mass.sum(axis=0), TINY)[:, None]  # rows of the first under the second
    loss = np.diagonal(mean)[:, None] - mean
    exchanged = (loss + loss.T)[first, second]
    ranks = np.minimum(np.argsort(np.argsort(-shared)), np.argsort(np.argsort(exchanged)))
    nearest = np.argsort(ranks, kind="stable")[:PAIRS]
    first, second = first[nearest], second[nearest]
    union = resp[:, first] + resp[:, second]
    separate = _log_likelihoods(trials, resp)
    # rows that both components share lose the entropy of their responsibilities
    entropy = sum(_entropy(mass[:, one], trials.w[:, None] * union) for one in (first, second))
    losses = separate[first] + separate[second] - _log_likelihoods(trials, union) + entropy
    return [(int(a), int(b)) for a, b in zip(first, second, strict=True)], losses


def _entropy(part: np.ndarray, total: np.ndarray) -> np.ndarray:
    share = np.where(part > 0, part, 1.0) / np.where(part > 0, total, 1.0)
    return -(part * np.log(share)).sum(axis=0)


def _splits(trials: Trials, resp: np.ndarray, halves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The share of each row in the second half of each component (n, k), and the log-likelihood that splits gain."""
    for _ in range(SPLIT_STEPS):
        halves, log_density = trials.responsibilities(trials.m_step(resp.T[..., None] * halves))
    whole = (trials.w * resp.T * log_density).sum(axis=1)
    return halves[..., 1].T, whole - _log_likelihoods(trials, resp)


def _log_likelihoods(trials: Trials, resp: np.ndarray) -> np.ndarray:
    """The log-likelihood of the rows of each component (n, m) under its own estimate (m,)."""
    _, log_density = trials.responsibilities(trials.m_step(resp.T[..., None]))
    return (trials.w * resp.T * log_density).sum(axis=1)


def relocate(trials: Trials, parents: Any, runs: int) -> np.ndarray:
    """Move a random component of a random parent to a row and its neighbours.

    Half of the rows are random. The others are sampled in proportion to the square of their log density under the
    parent, relative to the densest row: so two outliers are found among many rows. The number of neighbours is random,
    from a few to an equal share of all rows: so small clusters are found as well as large ones.
    """
    n, k, rng = trials.n, trials.k, trials.rng
    parent, component = rng.integers(len(parents.weights), size=runs), rng.integers(k, size=runs)
    resp, log_density = trials.responsibilities(parents)
    loss = trials.w * (log_density.max(axis=1, keepdims=True) - log_density) ** 2
    loss = np.where(loss.sum(axis=1, keepdims=True) > 0, loss, trials.w)[parent]
    loss[::2] = trials.w
    cumulated = loss.cumsum(axis=1)
    rows = np.minimum((cumulated <= rng.random((runs, 1)) * cumulated[:, -1:]).sum(axis=1), n - 1)
    largest = max(n // k, 2)
    smallest = min(trials.smallest_component, largest)
    size = np.exp(rng.uniform(np.log(smallest), np.log(largest), runs)).astype(int)
    nearness = trials.nearness(parents, parent, rows)
    moved = resp[parent]
    for resp, near, j, m in zip(moved, nearness, component, size, strict=True):
        resp[:, j] = 0.0
        total = resp.sum(axis=1, keepdims=True)
        resp /= np.where(total > 0, total, 1.0)
        resp[total[:, 0] == 0] = (np.arange(k) != j) / (k - 1)  # rows that only the moved component had
        resp[np.argpartition(-near, m - 1)[:m]] = np.arange(k) == j
    return moved


def redivide(trials: Trials, parents: Any, runs: int) -> np.ndarray:
    """Divide the rows of two or three random components of a random parent among these components at random.

    The shares of a row are random numbers in half of the starts; in the others, a row goes to the most similar of as
    many random rows.
    """
    k, rng = trials.k, trials.rng
    resp, _ = trials.responsibilities(parents)
    moved = resp[rng.integers(len(resp), size=runs)]
    for i, each in enumerate(moved):
        components = rng.choice(k, min(k, rng.integers(2, 4)), replace=False)
        total = each[:, components].sum(axis=1, keepdims=True)
        if i % 2 == 0:
            shares = rng.random((trials.n, len(components)))
            shares /= shares.sum(axis=1, keepdims=True)
        else:
            mass = trials.w * (total[:, 0] + NO_ROW)
            rows = rng.choice(trials.n, len(components), replace=False, p=mass / mass.sum())
            shares = trials.scores_around(rows).argmax(axis=1)[:, None] == np.arange(len(components))
        each[:, components] = total * shares
    return moved


def cross(trials: Trials, parents: Any, runs: int) -> np.ndarray:
    """Combine k random components of two parents: each parent may be right in another part of the data."""
    count, k, rng = len(parents.weights), trials.k, trials.rng
    resp, log_density = trials.responsibilities(parents)
    joint = np.log(np.maximum(resp, TINY)) + log_density[..., None]
    first = rng.integers(count, size=runs)
    second = (first + rng.integers(1, count, size=runs)) % count
    components = rng.permuted(np.tile(np.arange(2 * k), (runs, 1)), axis=1)[:, :k]
    parent = np.where(components < k, first[:, None], second[:, None])
    joint = joint.transpose(0, 2, 1)[parent, components % k].transpose(0, 2, 1)
    resp = np.exp(joint - joint.max(axis=-1, keepdims=True))
    return resp / resp.sum(axis=-1, keepdims=True)


def exchange(trials: Trials, parents: Any, runs: int) -> np.ndarray:
    """Move one to three random rows of a random parent to another component.

    With few rows for each component, responsibilities are 0 or 1, and optima differ in single rows.
    """
    n, k, rng = trials.n, trials.k, trials.rng
    resp, _ = trials.responsibilities(parents)
    moved = resp[rng.integers(len(resp), size=runs)]
    for each in moved:
        rows = rng.choice(n, min(n, rng.integers(1, 4)), replace=False)
        target = (each[rows].argmax(axis=1) + rng.integers(1, k, size=len(rows))) % k
        each[rows] = target[:, None] == np.arange(k)
    return moved
