"""Cheapest clusters for must-linked groups of rows, with all other rows assigned around them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from coterie import kernels

EXACT = 1e-6  # tolerance, relative to the mean cost range of a group and to the extra cost of sizes and constraints

INFEASIBLE = 2  # status of scipy.optimize.milp


class GroupAssignment(NamedTuple):
    """Cluster of every group, and the cheapest assignment of the other rows."""

    cost: float  # of all rows
    groups: np.ndarray  # (m,)
    labels: np.ndarray  # (n,) of the other rows
    prices: np.ndarray  # (k,) dual prices of the clusters, which prove that the labels are optimal
    bound: float  # lower bound of the cost of all assignments, from these prices


@dataclass(eq=False)
class AssignmentSearch:
    r"""Search for the cheapest assignment by Benders decomposition.

    An integer program assigns the groups and bounds the cost of the other rows by prices. For any prices p, an
    assignment of the rows with :math:`m_a` rows in cluster a costs at least :math:`\sum_i \min_a (c_{ia} + p_a) -
    \sum_a p_a m_a`. Equality holds at the optimal dual prices. Every assignment that is tried adds its prices to the
    program as a cut. The optimum of the program is a lower bound until an assignment reaches it [1]_.

    .. [1] Benders (1962), Partitioning procedures for solving mixed-variables programming problems, Numer. Math. 4.
    """

    group_costs: np.ndarray  # (m, k)
    sizes: np.ndarray  # (m,) number of rows of a group
    exclusions: np.ndarray  # (e, 2) groups that cannot share a cluster
    row_costs: np.ndarray  # (n, k) of the other rows
    labels: np.ndarray  # (n,) initial labels of the other rows
    size_min: np.ndarray  # (k,)
    size_max: np.ndarray  # (k,)

    def __post_init__(self) -> None:
        self.cheapest_groups = self.group_costs.min(axis=1, keepdims=True)
        self.cheapest_rows = self._cost_at_prices(np.zeros(len(self.size_min)))
        self.scale = float(np.ptp(self.group_costs, axis=1).mean()) or 1.0
        self.tried: dict[bytes, GroupAssignment] = {}

    def best(self, prices: np.ndarray, before: np.ndarray | None) -> GroupAssignment:
        """Cheapest assignment. It first tries `before`, then the cheapest groups at `prices`."""
        at_prices = (self.group_costs + self.sizes[:, None] * prices).argmin(axis=1)
        for groups in (before, at_prices):
            if groups is not None and self._is_feasible(groups):
                self._try(groups, prices)
        bound = -np.inf
        while True:
            best = min(self.tried.values(), key=lambda assignment: assignment.cost, default=None)
            if best is not None:
                bound = max(bound, *(assignment.bound for assignment in self.tried.values()))
                constraint_cost = best.cost - float(self.cheapest_groups.sum()) - self.cheapest_rows
                if best.cost <= bound + EXACT * max(self.scale, 1e-3 * constraint_cost):
                    return best
            groups, bound = self._solve_program()
            if best is not None and groups.tobytes() in self.tried:
                return best
            self._try(groups, prices if best is None else best.prices)

    def _is_feasible(self, groups: np.ndarray) -> bool:
        first, second = groups[self.exclusions].T
        used, n = self._group_sizes(groups), len(self.labels)
        fits = (used <= self.size_max).all() and np.maximum(self.size_min - used, 0).sum() <= n <= (
            self.size_max - used
        ).sum()
        return bool(fits and (first != second).all())

    def _group_sizes(self, groups: np.ndarray) -> np.ndarray:
        return np.bincount(groups, self.sizes, len(self.size_min)).astype(np.int64)

    def _try(self, groups: np.ndarray, prices: np.ndarray) -> None:
        used, labels, prices = self._group_sizes(groups), self.labels.copy(), prices.copy()
        ops = kernels.select("transport", *self.row_costs.shape)
        ops.transport(self.row_costs, np.maximum(self.size_min - used, 0), self.size_max - used, prices, labels)
        rows = self.row_costs[np.arange(len(labels)), labels].sum()
        cost = float(self.group_costs[np.arange(len(groups)), groups].sum() + rows)
        price_total = (np.maximum(prices, 0) * self.size_max + np.minimum(prices, 0) * self.size_min).sum()
        bound = (
            (self.group_costs + self.sizes[:, None] * prices).min(axis=1).sum()
            + self._cost_at_prices(prices)
            - price_total
        )
        self.tried[groups.tobytes()] = GroupAssignment(cost, groups, labels, prices, float(bound))

    def _cost_at_prices(self, prices: np.ndarray) -> float:
        """Cost of the other rows if each is in its cheapest cluster at these prices."""
        return float((self.row_costs + prices).min(axis=1).sum())

    def _solve_program(self) -> tuple[np.ndarray, float]:
        """Groups of the cheapest assignment according to the cuts so far, and a lower bound of the cost."""
        costs = (self.group_costs - self.cheapest_groups) / self.scale
        cuts = [
            (
                assignment.prices / self.scale,
                (self._cost_at_prices(assignment.prices) - self.cheapest_rows) / self.scale,
            )
            for assignment in self.tried.values()
        ]
        solution = integer_program(
            self.exclusions, self.sizes, len(self.labels), self.size_min, self.size_max, costs, cuts
        )
        assert solution is not None  # `check_constraints` has checked that an assignment exists
        groups, value = solution
        return groups, value * self.scale + float(self.cheapest_groups.sum()) + self.cheapest_rows


def integer_program(
    exclusions: np.ndarray,  # (e, 2)
    sizes: np.ndarray,  # (m,)
    rows: int,  # number of rows without a group
    size_min: np.ndarray,  # (k,)
    size_max: np.ndarray,  # (k,)
    costs: np.ndarray,  # (m, k)
    cuts: list[tuple[np.ndarray, float]],  # prices (k,), and the cost of all other rows at these prices
) -> tuple[np.ndarray, float] | None:
    """Cluster of each group (m,) and the cost of the cheapest assignment; None if no assignment is feasible.

    The variables are: whether group g is in cluster a, how many other rows cluster a gets, and the cost of these rows
    (>= 0).
    """
    (m, k), e = costs.shape, len(exclusions)
    clusters = sparse.eye_array(k)
    pairs = sparse.csr_array((np.ones(2 * e), (np.repeat(np.arange(e), 2), exclusions.ravel())), shape=(e, m))
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
    lower = np.concatenate([np.ones(m), np.zeros(e * k), size_min, [rows], values])
    upper = np.concatenate([np.ones(m), np.ones(e * k), size_max, [rows], np.full(len(cuts), np.inf)])
    solution = milp(
        np.concatenate([costs.ravel(), np.zeros(k), [1.0]]),
        constraints=LinearConstraint(lines, lower, upper),
        integrality=np.concatenate([np.ones(m * k), np.zeros(k + 1)]),
        bounds=Bounds(0.0, np.concatenate([np.ones(m * k), np.full(k + 1, np.inf)])),
        options={"mip_rel_gap": 0.0},
    )
    if solution.status == INFEASIBLE:
        return None
    if solution.x is None:
        raise RuntimeError(f"the integer program of must_link and cannot_link was not solved: {solution.message}")
    return solution.x[: m * k].reshape(m, k).argmax(axis=1), float(solution.fun)
