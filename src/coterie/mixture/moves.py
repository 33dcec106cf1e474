"""How many components: two become one, one becomes two, as long as the evidence lower bound rises.

All of it is a function of rows in memory and of a family with a conjugate prior: statistics, their log evidence, and
the expected log densities under the posterior that they make.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import special

from coterie.core.protocols import Chunk
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.kernels.plain.gaussian import posterior
from coterie.mixture.conjugate_priors import StickBreaking
from coterie.mixture.family_em import repeated

TRIES = 4  # pairs of rows about which a component is cut in two
HALVING = 12  # steps in which two halves part
SHARE = 1e-3  # of a row: components that have less of it leave it where it is when they are cut
WORTH = 0.1  # nats that a cut must promise
HOPE = 10.0  # nats that a union may seem to lose and yet be tried,
UNSURE = 3  # so many of them
NEIGHBOURS = 10  # components that each may be joined with
MANY = 30  # components from which on only neighbours are looked at
STEPS = 200  # between two moves
ROUNDS = 100


class State(NamedTuple):
    """Rows divided among components, and what follows from that."""

    resp: np.ndarray  # (n, k)
    counts: np.ndarray  # (k,) of w r
    parts: Any  # the family's statistics of the components
    bound: float


@stored("mixture.Move")
class Move(NamedTuple):
    """A change of the number of components that raised the bound."""

    what: str  # "split" or "merge"; "start" is where the climb began
    n_components: int  # after it
    lower_bound: float  # after it


class Search:
    """Rows in memory, on which the number of components is sought."""

    def __init__(self, family: Any, sticks: StickBreaking, chunk: Chunk, tol: float = 1e-3):
        self.family, self.sticks, self.tol = family, sticks, tol
        self.X, self.w = chunk.X, np.ones(chunk.X.shape[0]) if chunk.w is None else chunk.w
        self.features, self.base = family.features(chunk.X), family.row_base(chunk.X)

    @property
    def enough(self) -> float:
        return self.tol * (1 + float(self.w.sum()) / 1000)

    def whole(self) -> State:
        """All rows in one component."""
        return self.divided(np.ones((self.X.shape[0], 1)))

    def divided(self, resp: np.ndarray) -> State:
        """Rows divided so; the larger components come first, which costs the sticks least."""
        counts = self.w @ resp
        order = np.argsort(-counts, kind="stable")
        resp, counts = resp[:, order], counts[order]
        parts = self.family.statistics(None, self.features, self.w[:, None] * resp)
        evidence = self.family.log_evidence(parts).sum() + self.sticks.log_evidence(counts)
        entropy = self.w @ special.entr(resp).sum(axis=1)
        return State(resp, counts, parts, float(evidence + entropy + self.w @ self.base))

    def settled(self, state: State) -> State:
        """After so many variational steps that another gains next to nothing."""
        for _ in range(STEPS):
            before, state = state, self.step(state)
            if state.bound - before.bound < self.enough:
                break
        return state

    def step(self, state: State) -> State:
        offset = self.sticks.expected_log(self.sticks.posterior(state.counts))
        scores = self.family.scores(self.family.expected(state.parts), self.features)
        return self.divided(posterior(scores + offset)[0])

    def without_empty(self, state: State) -> State:
        """Components that have less than a row are left out."""
        kept = state.counts >= 1.0
        if kept.all() or not kept.any():
            return state
        resp = state.resp[:, kept]
        total = resp.sum(axis=1, keepdims=True)
        share = state.counts[kept] / state.counts[kept].sum()
        return self.settled(self.divided(np.where(total > 0, resp / np.where(total > 0, total, 1.0), share)))

    # the climb

    def climb(self, state: State, rng: np.random.Generator) -> tuple[State, list[Move]]:
        """Splits and merges as long as any raises the bound."""
        moves = [Move("start", len(state.counts), state.bound)]
        futile: list[np.ndarray] = []  # divisions that no cut made better
        for _ in range(ROUNDS):
            state = self._merged(state, moves)
            found = self._split(state, rng, futile)
            if found is None:
                break
            state = found
            moves.append(Move("split", len(state.counts), state.bound))
        return state, moves

    def _merged(self, state: State, moves: list[Move]) -> State:
        """Joins pairs, all at once those that gain most, until none gains; at last some that seem to lose a little."""
        while len(state.counts) > 1:
            pairs = self._promising_pairs(state)
            sure = [(a, b) for gain, a, b in pairs if gain > 0]
            tries = [sure, sure[:1]] if sure else [[(a, b)] for _, a, b in pairs[:UNSURE]]
            for some in tries:
                found = self.settled(self.divided(_joined(state.resp, some)))
                if found.bound > state.bound:
                    break
            else:
                break
            state = found
            moves.append(Move("merge", len(state.counts), state.bound))
        return state

    def _promising_pairs(self, state: State) -> list[tuple[float, int, int]]:
        """Pairs that gain, or lose little, with what they gain; the best first, each component in one pair at most.

        Joining takes away what the rows' division between the two was worth as entropy; so pairs that lose much
        without counting that need not be looked at any further.
        """
        a, b = self._neighbours(state)
        alone = self.family.log_evidence(state.parts)
        both = chosen(state.parts, a) + chosen(state.parts, b)
        gain = self.family.log_evidence(both) - alone[a] - alone[b]
        now = self.sticks.log_evidence(state.counts)
        logs = special.xlogy(state.resp, state.resp)
        for i in np.flatnonzero(gain > -HOPE):
            first, second = a[i], b[i]
            counts = np.append(np.delete(state.counts, [first, second]), state.counts[first] + state.counts[second])
            gain[i] += self.sticks.log_evidence(np.sort(counts)[::-1]) - now
            union = state.resp[:, first] + state.resp[:, second]
            gain[i] -= self.w @ (special.xlogy(union, union) - logs[:, first] - logs[:, second])
        taken: set[int] = set()
        pairs = []
        for i in np.argsort(-gain, kind="stable"):
            pair = int(a[i]), int(b[i])
            if gain[i] > -HOPE and not taken & set(pair):
                pairs.append((float(gain[i]), *pair))
                taken |= set(pair)
        return pairs

    def _neighbours(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """All pairs; of many components, those that share most rows."""
        k = len(state.counts)
        a, b = np.triu_indices(k, 1)
        if k <= MANY:
            return a, b
        mass = np.sqrt(self.w)[:, None] * state.resp
        shared = mass.T @ mass
        np.fill_diagonal(shared, -1.0)
        least = np.sort(shared, axis=1)[:, -NEIGHBOURS][:, None]
        near = shared >= least
        kept = (near | near.T)[a, b]
        return a[kept], b[kept]

    def _split(self, state: State, rng: np.random.Generator, futile: list[np.ndarray]) -> State | None:
        """All cuts at once that promise to gain, or the best of them alone; None if there is none."""
        cuts = []
        for j in range(len(state.counts)):
            mine = state.resp[:, j]
            if any(_alike(self.w, mine, old) for old in futile):
                continue
            gain, half = self._cut(state, j, rng)
            if gain > WORTH:
                cuts.append((gain, j, half))
            else:
                futile.append(mine)
        cuts.sort(key=lambda cut: -cut[0])
        while cuts:
            resp = state.resp
            for _, j, half in cuts:
                resp = np.concatenate([resp, half[:, None]], axis=1)
                resp[:, j] -= half
            found = self.settled(self.divided(np.maximum(resp, 0.0)))
            if found.bound > state.bound:
                return found
            cuts = cuts[: len(cuts) // 2]
        return None

    def _cut(self, state: State, j: int, rng: np.random.Generator) -> tuple[float, np.ndarray]:
        """The best of some cuts of a component in two: what the bound gains, and what goes to the second half (n,)."""
        mine = state.resp[:, j]
        rows = np.flatnonzero((mine > SHARE) & (self.w > 0))
        mass = self.w[rows] * mine[rows]
        if len(rows) < 2 or mass.sum() < 2:
            return -np.inf, mine
        X = self.X[rows]
        features, one = self.family.features(X), chosen(state.parts, [j])
        rest = one + self.family.statistics(None, features, mass[:, None]).scaled(-1.0)
        halves = self._halved(X, features, mass, one, rng)
        sums = self.family.statistics(None, features, mass[:, None] * halves)
        sums = sums + _to_first_halves(rest)
        evidence = self.family.log_evidence(sums).reshape(TRIES, 2).sum(axis=1)
        gain = evidence - self.family.log_evidence(one)[0]
        gain += mass @ special.entr(halves).reshape(len(rows), TRIES, 2).sum(axis=2)
        others, now = np.delete(state.counts, j), self.sticks.log_evidence(state.counts)
        second = mass @ halves[:, 1::2]
        for t in range(TRIES):
            counts = np.append(others, [state.counts[j] - second[t], second[t]])
            gain[t] += self.sticks.log_evidence(np.sort(counts)[::-1]) - now
        best = int(np.argmax(gain))
        moved = np.zeros_like(mine)
        moved[rows] = mine[rows] * halves[:, 2 * best + 1]
        return float(gain[best]), moved

    def _halved(self, X: Any, features: Any, mass: np.ndarray, one: Any, rng: np.random.Generator) -> np.ndarray:
        """Shares of rows in both halves of each try (m, 2 TRIES), from pairs of rows: two far apart, others drawn."""
        average = one.scaled(1 / float(mass.sum()))
        drawn = rng.choice(len(mass), 2 * TRIES, p=mass / mass.sum())
        for end in (0, 1):  # the farthest row from one drawn, then the farthest from that
            near = self._around(X[drawn[:1]] if end == 0 else X[drawn[1:2]], average)
            drawn[1 - end] = np.argmin(self.family.scores(near, features)[:, 0])
        scores = self.family.scores(self._around(X[drawn], average), features).reshape(len(mass), TRIES, 2)
        halves = (scores.argmax(axis=2)[..., None] == [0, 1]).astype(np.float64).reshape(len(mass), -1)
        for _ in range(HALVING):
            before = halves
            shares = mass[:, None] * halves
            sums = self.family.statistics(None, features, shares)
            counts = np.maximum(shares.sum(axis=0), np.finfo(np.float64).tiny)
            scores = self.family.scores(self.family.expected(sums), features) + np.log(counts)
            halves = posterior(scores.reshape(-1, 2))[0].reshape(halves.shape)
            if np.abs(halves - before).max() < 1e-3:
                break
        return halves

    def _around(self, X: Any, average: Any) -> Any:
        """Expected log densities of components of one row each, and an average one."""
        own = self.family.statistics(None, self.family.features(X), np.eye(X.shape[0]))
        return self.family.expected(own + repeated(average, X.shape[0]))


def chosen(stats: Any, which: Any) -> Any:
    """The statistics of some components."""
    return type(stats)(*(chosen(x, which) if isinstance(x, Stats) else x[which] for x in stats.leaves()))


def _to_first_halves(stats: Any) -> Any:
    """Statistics of one component as those of the first half of each try."""

    def placed(x: np.ndarray) -> np.ndarray:
        found = np.zeros((2 * TRIES, *x.shape[1:]))
        found[::2] = x
        return found

    return type(stats)(*(_to_first_halves(x) if isinstance(x, Stats) else placed(x) for x in stats.leaves()))


def _joined(resp: np.ndarray, pairs: list[tuple[int, int]]) -> np.ndarray:
    """Responsibilities in which the second of each pair is part of the first."""
    resp = resp.copy()
    for first, second in pairs:
        resp[:, first] += resp[:, second]
    return np.delete(resp, [second for _, second in pairs], axis=1)


def _alike(w: np.ndarray, a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two components have the same rows, but for one in a hundred."""
    return bool(w @ np.abs(a - b) < 0.01 * (w @ a))
