"""The cheapest clusters for groups of rows that stay together or apart, with all other rows divided around them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from coterie import kernels

EXACT = 1e-6  # of what a group can gain or lose on average, and of all that sizes cost: what is not told apart

INFEASIBLE = 2  # in the words of scipy.optimize.milp


class Placing(NamedTuple):
    """A cluster for every group, and the cheapest division of the other rows beside them."""

    cost: float  # of all
    groups: np.ndarray  # (m,)
    labels: np.ndarray  # (n,) of the other rows
    prices: np.ndarray  # (k,) of a place in each cluster, which prove that division
    bound: float  # no placing costs less, as far as these prices can tell


class Search:
    r"""For the cheapest placing: an integer program that knows the other rows by what prices say of them.

    At whatever prices p, to divide the rows so that cluster a gets :math:`m_a` of them costs no less than
    :math:`\sum_i \min_a (c_{ia} + p_a) - \sum_a p_a m_a`, and just that at the prices that prove the division.
    Every placing that is tried adds its prices to the program, whose optimum is a lower bound until it is reached [1]_.

    .. [1] Benders (1962), Partitioning procedures for solving mixed-variables programming problems, Numer. Math. 4.
    """

    def __init__(
        self,
        group_costs: np.ndarray,  # (m, k)
        sizes: np.ndarray,  # (m,) places that a group takes
        apart: np.ndarray,  # (e, 2) groups that cannot share a cluster
        row_costs: np.ndarray,  # (n, k) of the other rows
        labels: np.ndarray,  # (n,) of the other rows, to begin with
        least: np.ndarray,  # (k,) places of a cluster that are taken at least
        most: np.ndarray,  # (k,) and at most
    ):
        self.group_costs, self.sizes, self.apart = group_costs, sizes, apart
        self.row_costs, self.labels = row_costs, labels
        self.least, self.most = least, most
        self.cheapest_groups = group_costs.min(axis=1, keepdims=True)
        self.cheapest_rows = self._at(np.zeros(len(least)))
        self.scale = float(np.ptp(group_costs, axis=1).mean()) or 1.0
        self.tried: dict[bytes, Placing] = {}

    def best(self, prices: np.ndarray, before: np.ndarray | None) -> Placing:
        """No worse than the placing `before`, which is tried first, then the one that is the cheapest at the prices."""
        at_prices = (self.group_costs + self.sizes[:, None] * prices).argmin(axis=1)
        for groups in (before, at_prices):
            if groups is not None and self._allowed(groups):
                self._try(groups, prices)
        bound = -np.inf
        while True:
            best = min(self.tried.values(), key=lambda placing: placing.cost, default=None)
            if best is not None and self._close(best, max(bound, *(placing.bound for placing in self.tried.values()))):
                return best
            groups, bound = self._program()
            if best is not None and groups.tobytes() in self.tried:
                return best
            self._try(groups, prices if best is None else best.prices)

    def _close(self, best: Placing, bound: float) -> bool:
        above = best.cost - float(self.cheapest_groups.sum()) - self.cheapest_rows  # what links and sizes cost
        return best.cost <= bound + EXACT * max(self.scale, 1e-3 * above)

    def _allowed(self, groups: np.ndarray) -> bool:
        first, second = groups[self.apart].T
        taken, n = self._taken(groups), len(self.labels)
        fits = (taken <= self.most).all() and np.maximum(self.least - taken, 0).sum() <= n <= (self.most - taken).sum()
        return bool(fits and (first != second).all())

    def _taken(self, groups: np.ndarray) -> np.ndarray:
        return np.bincount(groups, self.sizes, len(self.least)).astype(np.int64)

    def _try(self, groups: np.ndarray, prices: np.ndarray) -> None:
        taken, labels, prices = self._taken(groups), self.labels.copy(), prices.copy()
        ops = kernels.select("transport", *self.row_costs.shape)
        ops.transport(self.row_costs, np.maximum(self.least - taken, 0), self.most - taken, prices, labels)
        rows = self.row_costs[np.arange(len(labels)), labels].sum()
        cost = float(self.group_costs[np.arange(len(groups)), groups].sum() + rows)
        paid = (np.maximum(prices, 0) * self.most + np.minimum(prices, 0) * self.least).sum()
        bound = (self.group_costs + self.sizes[:, None] * prices).min(axis=1).sum() + self._at(prices) - paid
        self.tried[groups.tobytes()] = Placing(cost, groups, labels, prices, float(bound))

    def _at(self, prices: np.ndarray) -> float:
        """What the other rows cost if each is in its cheapest cluster at these prices."""
        return float((self.row_costs + prices).min(axis=1).sum())

    def _program(self) -> tuple[np.ndarray, float]:
        """The groups of the cheapest placing as far as is known, and a lower bound of the cost of all placings."""
        costs = (self.group_costs - self.cheapest_groups) / self.scale
        cuts = [
            (placing.prices / self.scale, (self._at(placing.prices) - self.cheapest_rows) / self.scale)
            for placing in self.tried.values()
        ]
        found = program(self.apart, self.sizes, len(self.labels), self.least, self.most, costs, cuts)
        assert found is not None  # links and sizes were found to agree before the first pass
        groups, value = found
        return groups, value * self.scale + float(self.cheapest_groups.sum()) + self.cheapest_rows


def program(
    apart: np.ndarray,  # (e, 2)
    sizes: np.ndarray,  # (m,)
    rows: int,  # that are in no group
    least: np.ndarray,  # (k,)
    most: np.ndarray,  # (k,)
    costs: np.ndarray,  # (m, k)
    cuts: list[tuple[np.ndarray, float]],  # prices (k,), and what all rows cost at them
) -> tuple[np.ndarray, float] | None:
    """A cluster for each group (m,) and the cost of the cheapest placing; None if there is no placing at all.

    Unknown are whether group g is in cluster a, how many other rows cluster a gets, and what those cost, from 0 up.
    """
    (m, k), e = costs.shape, len(apart)
    clusters = sparse.eye_array(k)
    pairs = sparse.csr_array((np.ones(2 * e), (np.repeat(np.arange(e), 2), apart.ravel())), shape=(e, m))
    lines = sparse.block_array(
        [
            [sparse.kron(sparse.eye_array(m), np.ones((1, k))), None, None],
            [sparse.kron(pairs, clusters), None, None],
            [sparse.kron(sizes[None, :], clusters), clusters, None],
            [None, np.ones((1, k)), np.zeros((1, 1))],
            *([None, prices[None, :], np.ones((1, 1))] for prices, _ in cuts),
        ],
        format="csr",
    )
    values = [value for _, value in cuts]
    low = np.concatenate([np.ones(m), np.zeros(e * k), least, [rows], values])
    high = np.concatenate([np.ones(m), np.ones(e * k), most, [rows], np.full(len(cuts), np.inf)])
    found = milp(
        np.concatenate([costs.ravel(), np.zeros(k), [1.0]]),
        constraints=LinearConstraint(lines, low, high),
        integrality=np.concatenate([np.ones(m * k), np.zeros(k + 1)]),
        bounds=Bounds(0.0, np.concatenate([np.ones(m * k), np.full(k + 1, np.inf)])),
        options={"mip_rel_gap": 0.0},
    )
    if found.status == INFEASIBLE:
        return None
    if found.x is None:
        raise RuntimeError(f"the integer program of the links was given up: {found.message}")
    return found.x[: m * k].reshape(m, k).argmax(axis=1), float(found.fun)
