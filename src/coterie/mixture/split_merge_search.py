"""The number of components of a Dirichlet process mixture: splits and merges that raise the evidence lower bound.

The search needs rows in memory and a family with a conjugate prior: its statistics, their log evidence, and expected
log densities under the posterior.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import special

from coterie.core.nested_arrays import by_array, select
from coterie.core.protocols import Chunk
from coterie.core.stored import stored
from coterie.kernels.plain.gaussian import posterior
from coterie.mixture.family_em import stats_around
from coterie.mixture.variational import StickBreaking

TRIALS = 4  # pairs of rows from which the halves of a split component start
HALF_STEPS = 12  # maximum number of steps in which the halves of a component are fitted
MIN_SHARE = 1e-3  # minimum responsibility for a row to be moved when its component is split
MIN_GAIN = 0.1  # minimum estimated gain of a split, in nats
MAX_LOSS = 10.0  # maximum estimated loss of a merge that is tried nevertheless, in nats
UNCERTAIN_MERGES = 3  # maximum number of merges with an estimated loss that are tried
ALL_PAIRS = 30  # maximum number of components for which all pairs are candidates for a merge
NEIGHBOURS = 10  # with more components, the number of candidates for each
MAX_STEPS = 200  # maximum number of variational steps between two moves
MAX_ROUNDS = 100


class State(NamedTuple):
    """Responsibilities, and quantities that follow from them."""

    resp: np.ndarray  # (n, k)
    counts: np.ndarray  # (k,) of w r
    parts: Any  # statistics of the components, by the family
    bound: float


@stored("mixture.Move")
class Move(NamedTuple):
    """A change of the number of components that raised the lower bound."""

    what: str  # "split" or "merge"; "start" for the initial components
    n_components: int  # after the move
    lower_bound: float  # after the move


class SplitMergeSearch:
    """Search for the number of components, on rows in memory."""

    def __init__(self, family: Any, sticks: StickBreaking, chunk: Chunk, tol: float = 1e-3):
        self.family, self.sticks = family, sticks
        self.X, self.w = chunk.X, np.ones(chunk.X.shape[0]) if chunk.w is None else chunk.w
        self.features, self.base = family.features(chunk.X), family.row_base(chunk.X)
        self.threshold = tol * (1 + float(self.w.sum()) / 1000)  # smallest gain that counts

    def state(self, resp: np.ndarray) -> State:
        """The state with these responsibilities (n, k). Larger components come first: this maximises the bound."""
        counts = self.w @ resp
        order = np.argsort(-counts, kind="stable")
        resp, counts = resp[:, order], counts[order]
        parts = self.family.statistics(None, self.features, self.w[:, None] * resp)
        evidence = self.family.log_evidence(parts).sum() + self.sticks.log_evidence(counts)
        entropy = self.w @ special.entr(resp).sum(axis=1)
        return State(resp, counts, parts, float(evidence + entropy + self.w @ self.base))

    def step(self, state: State) -> State:
        """The state after one variational step."""
        offset = self.sticks.expected_log(self.sticks.posterior(state.counts))
        scores = self.family.scores(self.family.expected(state.parts), self.features)
        return self.state(posterior(scores + offset)[0])

    def converged(self, state: State) -> State:
        """The state after variational steps, until the gain is below the threshold."""
        for _ in range(MAX_STEPS):
            before, state = state, self.step(state)
            if state.bound - before.bound < self.threshold:
                break
        return state

    def without_empty(self, state: State) -> State:
        """The state without the components whose weight is below that of one row."""
        is_filled = state.counts >= 1.0
        if is_filled.all() or not is_filled.any():
            return state
        resp = state.resp[:, is_filled]
        total = resp.sum(axis=1, keepdims=True)
        share = state.counts[is_filled] / state.counts[is_filled].sum()
        return self.converged(self.state(np.where(total > 0, resp / np.where(total > 0, total, 1.0), share)))

    # moves

    def ascend(self, state: State, rng: np.random.Generator) -> tuple[State, list[Move]]:
        """Alternate merges and splits until none raises the lower bound; return the state and the moves."""
        moves = [Move("start", len(state.counts), state.bound)]
        rejected: list[np.ndarray] = []  # responsibilities of components that no split improved
        for _ in range(MAX_ROUNDS):
            state = self._merge(state, moves)
            result = self._split(state, rng, rejected)
            if result is None:
                break
            state = result
            moves.append(Move("split", len(state.counts), state.bound))
        return state, moves

    def _merge(self, state: State, moves: list[Move]) -> State:
        """Merge pairs until the bound does not rise: all with an estimated gain at once, or the best of them alone.

        If no pair has an estimated gain, a few with a small estimated loss are tried.
        """
        while len(state.counts) > 1:
            candidates = self._merge_candidates(state)
            gaining = [(a, b) for gain, a, b in candidates if gain > 0]
            trials = [gaining, gaining[:1]] if gaining else [[(a, b)] for _, a, b in candidates[:UNCERTAIN_MERGES]]
            for pairs in trials:
                result = self.converged(self.state(_merged(state.resp, pairs)))
                if result.bound > state.bound:
                    break
            else:
                break
            state = result
            moves.append(Move("merge", len(state.counts), state.bound))
        return state

    def _merge_candidates(self, state: State) -> list[tuple[float, int, int]]:
        """Disjoint pairs of components with the estimated gain of their merge, the largest first.

        A merge also loses the entropy of the responsibilities between the two components. So pairs whose loss is above
        `MAX_LOSS` without this term are not considered.
        """
        a, b = self._neighbours(state)
        separate = self.family.log_evidence(state.parts)
        gain = self.family.log_evidence(select(state.parts, a) + select(state.parts, b)) - separate[a] - separate[b]
        stick_evidence = self.sticks.log_evidence(state.counts)
        logs = special.xlogy(state.resp, state.resp)
        for i in np.flatnonzero(gain > -MAX_LOSS):
            first, second = a[i], b[i]
            counts = np.append(np.delete(state.counts, [first, second]), state.counts[first] + state.counts[second])
            gain[i] += self.sticks.log_evidence(np.sort(counts)[::-1]) - stick_evidence
            union = state.resp[:, first] + state.resp[:, second]
            gain[i] -= self.w @ (special.xlogy(union, union) - logs[:, first] - logs[:, second])
        used: set[int] = set()
        candidates = []
        for i in np.argsort(-gain, kind="stable"):
            pair = int(a[i]), int(b[i])
            if gain[i] > -MAX_LOSS and used.isdisjoint(pair):
                candidates.append((float(gain[i]), *pair))
                used.update(pair)
        return candidates

    def _neighbours(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """All pairs of components; if there are many, for each component the pairs that share most rows."""
        k = len(state.counts)
        a, b = np.triu_indices(k, 1)
        if k <= ALL_PAIRS:
            return a, b
        mass = np.sqrt(self.w)[:, None] * state.resp
        shared = mass.T @ mass
        np.fill_diagonal(shared, -1.0)
        is_near = shared >= np.sort(shared, axis=1)[:, -NEIGHBOURS][:, None]
        is_candidate = (is_near | is_near.T)[a, b]
        return a[is_candidate], b[is_candidate]

    def _split(self, state: State, rng: np.random.Generator, rejected: list[np.ndarray]) -> State | None:
        """The state after all splits with an estimated gain, or the best of these; None if the bound does not rise."""
        splits = []
        for j, resp in enumerate(state.resp.T):
            if any(_is_same_component(self.w, resp, other) for other in rejected):
                continue
            gain, half = self._best_split(state, j, rng)
            if gain > MIN_GAIN:
                splits.append((gain, j, half))
            else:
                rejected.append(resp)
        splits.sort(key=lambda split: -split[0])
        while splits:
            resp = state.resp
            for _, j, half in splits:
                resp = np.concatenate([resp, half[:, None]], axis=1)
                resp[:, j] -= half
            result = self.converged(self.state(np.maximum(resp, 0.0)))
            if result.bound > state.bound:
                return result
            splits = splits[: len(splits) // 2]
        return None

    def _best_split(self, state: State, j: int, rng: np.random.Generator) -> tuple[float, np.ndarray]:
        """The best of several splits of a component: its estimated gain, and the responsibilities of its new half."""
        resp = state.resp[:, j]
        rows = np.flatnonzero((resp > MIN_SHARE) & (self.w > 0))
        mass = self.w[rows] * resp[rows]
        if len(rows) < 2 or mass.sum() < 2:
            return -np.inf, resp
        X = self.X[rows]
        features, component = self.family.features(X), select(state.parts, [j])
        rest = component + self.family.statistics(None, features, mass[:, None]).scaled(-1.0)
        halves = self._halves(X, features, mass, component, rng)
        sums = self.family.statistics(None, features, mass[:, None] * halves) + by_array(_for_first_halves, rest)
        evidence = self.family.log_evidence(sums).reshape(TRIALS, 2).sum(axis=1)
        gain = evidence - self.family.log_evidence(component)[0]
        gain += mass @ special.entr(halves).reshape(len(rows), TRIALS, 2).sum(axis=2)
        others, stick_evidence = np.delete(state.counts, j), self.sticks.log_evidence(state.counts)
        second = mass @ halves[:, 1::2]
        for t in range(TRIALS):
            counts = np.append(others, [state.counts[j] - second[t], second[t]])
            gain[t] += self.sticks.log_evidence(np.sort(counts)[::-1]) - stick_evidence
        best = int(np.argmax(gain))
        half = np.zeros_like(resp)
        half[rows] = resp[rows] * halves[:, 2 * best + 1]
        return float(gain[best]), half

    def _halves(self, X: Any, features: Any, mass: np.ndarray, component: Any, rng: np.random.Generator) -> np.ndarray:
        """Shares of the rows in both halves of each trial (m, 2 TRIALS), after short fits from pairs of rows.

        The rows of the first pair are far from each other, the other pairs are random.
        """
        average = component.scaled(1 / float(mass.sum()))
        seeds = rng.choice(len(mass), 2 * TRIALS, p=mass / mass.sum())
        for i in (0, 1):  # the farthest row from a random row, then the farthest row from that
            seeds[1 - i] = np.argmin(self._scores_around(X[seeds[i : i + 1]], average, features)[:, 0])
        scores = self._scores_around(X[seeds], average, features).reshape(len(mass), TRIALS, 2)
        halves = (scores.argmax(axis=2)[..., None] == [0, 1]).astype(np.float64).reshape(len(mass), -1)
        for _ in range(HALF_STEPS):
            before = halves
            shares = mass[:, None] * halves
            sums = self.family.statistics(None, features, shares)
            counts = np.maximum(shares.sum(axis=0), np.finfo(np.float64).tiny)
            scores = self.family.scores(self.family.expected(sums), features) + np.log(counts)
            halves = posterior(scores.reshape(-1, 2))[0].reshape(halves.shape)
            if np.abs(halves - before).max() < 1e-3:
                break
        return halves

    def _scores_around(self, X: Any, average: Any, features: Any) -> np.ndarray:
        """Expected log densities of rows under a component for each row of `X`: that row and an average row."""
        return self.family.scores(self.family.expected(stats_around(self.family, X, average)), features)


def _for_first_halves(array: np.ndarray) -> np.ndarray:
    """An array of one component (1, ...) for the first half of each trial, and 0 for the second (2 TRIALS, ...)."""
    result = np.zeros((2 * TRIALS, *array.shape[1:]))
    result[::2] = array
    return result


def _merged(resp: np.ndarray, pairs: list[tuple[int, int]]) -> np.ndarray:
    """Responsibilities after the second component of each pair was merged into the first."""
    resp = resp.copy()
    for first, second in pairs:
        resp[:, first] += resp[:, second]
    return np.delete(resp, [second for _, second in pairs], axis=1)


def _is_same_component(w: np.ndarray, a: np.ndarray, b: np.ndarray) -> bool:
    """Whether the responsibilities of two components differ by at most one percent of the weight."""
    return bool(w @ np.abs(a - b) < 0.01 * (w @ a))
