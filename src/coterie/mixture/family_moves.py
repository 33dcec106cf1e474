"""Past local optima: two components that are nearly one become one, and one that is nearly two becomes two."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from coterie.kernels.plain.gaussian import posterior
from coterie.mixture.family_em import Mix

PAIRS = 60  # pairs that may become one: those that share most rows, or lose least
MOVES = 8  # sets of moves that are tried at a time
SEEDS = 60  # rows among which the halves of a component start
HALVING = 6  # steps in which two halves part
SETTLING = 15  # steps in which a move may show what it is worth
NOTHING = 1e-3  # a share of a row that does not count when its component is halved
WORK = 5e10  # multiply-adds that all moves may cost


def rearranged(trials: Any, leader: Mix, least: float) -> Mix:
    """The leader, the only run of a batch, with components moved about as long as that lowers the objective [1]_.

    What a move gains is first guessed from the statistics alone, then tried.

    .. [1] Ueda, Nakano, Ghahramani & Hinton (2000), SMEM algorithm for mixture models, Neural Computation 12.
    """
    if trials.k < 3 or trials.known is not None:
        return trials.run(leader, 0)
    for _ in range(min(2 * trials.k, int(WORK / (MOVES * SETTLING * trials.work)))):
        moves = _promising(trials, leader)
        if len(moves) == 0:
            break
        found, objective = trials.advance(trials.first(np.stack(moves, axis=1)), SETTLING)
        best = int(np.argmin(objective))
        if objective[best] >= least - 10 * trials.enough:
            break
        leader, least = trials.chosen(found, np.array([best])), float(objective[best])
    return trials.run(leader, 0)


def _promising(trials: Any, leader: Mix) -> list[np.ndarray]:
    """Posteriors (n, k) after the moves that seem to gain most."""
    prepared, resp, _ = trials.posterior(leader)
    resp = resp[:, 0]
    mass = trials.w[:, None] * resp
    pairs, loss = _merges(trials, prepared, mass)
    halves, gain = _splits(trials, mass)
    net = gain[None, :] - loss[:, None]
    order = sorted(product(range(len(pairs)), range(trials.k)), key=lambda move: -net[move])
    moves = [(*pairs[p], c) for p, c in order if c not in pairs[p] and net[p, c] > 0]
    return [_moved(resp, halves, some) for some in _sets(moves)]


def _sets(moves: list[tuple[int, int, int]]) -> list[list[tuple[int, int, int]]]:
    """Moves to try together: all that do not touch one another, the better half of them, ...; then the next best."""
    apart: list[tuple[int, int, int]] = []
    touched: set[int] = set()
    for move in moves:
        if touched.isdisjoint(move):
            apart.append(move)
            touched.update(move)
    sets = []
    while apart:
        sets.append(apart)
        apart = apart[: len(apart) // 2]
    return [*sets, *([move] for move in moves[1:])][:MOVES]


def _moved(resp: np.ndarray, halves: np.ndarray, moves: list[tuple[int, int, int]]) -> np.ndarray:
    """Posteriors (n, k) after the second of each move went into the first, and the third gave it a half."""
    moved = resp.copy()
    for kept, lost, parted in moves:
        moved[:, kept] += moved[:, lost]
        moved[:, lost] = resp[:, parted] * halves[:, parted]
        moved[:, parted] = resp[:, parted] - moved[:, lost]
    return moved


def _merges(trials: Any, prepared: Any, mass: np.ndarray) -> tuple[list[tuple[int, int]], np.ndarray]:
    """Pairs of components, and what log-likelihood is lost if each becomes one."""
    first, second = np.triu_indices(trials.k, 1)
    length = np.sqrt((mass**2).sum(axis=0) + np.finfo(np.float64).tiny)
    shared = (mass.T @ mass / np.outer(length, length))[first, second]
    near = _exchange(trials, prepared, mass)[first, second]
    ranks = np.minimum(np.argsort(np.argsort(-shared)), np.argsort(np.argsort(near)))
    few = np.argsort(ranks, kind="stable")[:PAIRS]
    pairs = [(int(first[i]), int(second[i])) for i in few]
    together = np.stack([mass[:, a] + mass[:, b] for a, b in pairs], axis=1)
    joined = _own_likelihood(trials, together)
    alone = _own_likelihood(trials, mass)
    loss = np.array([alone[a] + alone[b] for a, b in pairs]) - joined
    # A merge also loses the entropy of responsibilities in both components.
    entropy = np.array([_entropy(mass[:, a], mass[:, b]) for a, b in pairs])
    return pairs, loss + entropy


def _exchange(trials: Any, prepared: Any, mass: np.ndarray) -> np.ndarray:
    """What rows of each component lose a row under each other one, both ways added (k, k)."""
    scores = trials.family.scores(prepared, trials.features)
    total = np.maximum(mass.sum(axis=0), np.finfo(np.float64).tiny)
    mean = mass.T @ scores / total[:, None]  # rows of the first under the second
    loss = np.diagonal(mean)[:, None] - mean
    return loss + loss.T


def _splits(trials: Any, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The share of each row that goes with the second half of each component (n, k), and what halving gains."""
    n, k = mass.shape
    halves = np.zeros((n, k, 2))
    halves[:, :, 0] = 1.0
    for c in range(k):
        mine = np.flatnonzero(mass[:, c] > NOTHING * trials.w)
        if len(mine) < 2:
            continue
        chance = mass[mine, c] / mass[mine, c].sum()
        rows = trials.rng.choice(len(mine), min(SEEDS, len(mine)), replace=False, p=chance)
        scores = trials.scores_around(mine[rows], mine)
        seeds = trials.apart(scores[rows], np.ones(len(rows)), 2)
        halves[mine, c] = scores[:, seeds].argmax(axis=1)[:, None] == np.arange(2)
    for _ in range(HALVING):
        shares = (mass[:, :, None] * halves).reshape(n, -1)
        made = trials.family.estimate(trials.family.statistics(None, trials.features, shares))
        weight = np.maximum(shares.sum(axis=0), np.finfo(np.float64).tiny)
        joint = trials.family.scores(trials.family.prepare(made), trials.features) + np.log(weight)
        halves, per_row, _ = posterior(joint.reshape(-1, 2))
        halves = halves.reshape(n, k, 2)
    whole = mass.sum(axis=0)
    whole = _own_likelihood(trials, mass) + whole * np.log(np.maximum(whole, np.finfo(np.float64).tiny))
    return halves[:, :, 1], (mass * per_row.reshape(n, k)).sum(axis=0) - whole


def _own_likelihood(trials: Any, mass: np.ndarray) -> np.ndarray:
    """The log-likelihood of the rows of each component under its own estimate (k,), less what is the same for all."""
    parts = trials.family.estimate(trials.family.statistics(None, trials.features, mass))
    return (mass * trials.family.scores(trials.family.prepare(parts), trials.features)).sum(axis=0)


def _entropy(a: np.ndarray, b: np.ndarray) -> float:
    """The entropy of responsibilities in two components."""
    total = a + b
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(x > 0, -x * np.log(x / total), 0.0) for x in (a, b)]
    return float(terms[0].sum() + terms[1].sum())
