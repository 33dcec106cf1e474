"""Must-link and cannot-link constraints: groups of rows, and the cheapest clusters for them."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csgraph

from coterie import kernels
from coterie.errors import ParameterError

SHOWN = 8  # maximum number of rows that a message lists


@dataclass(frozen=True)
class Constraints:
    """Groups of must-linked rows. A row with only cannot-link pairs is a group of one."""

    group: np.ndarray  # (n,) of each row; -1 without constraints
    exclusions: np.ndarray  # (e, 2) groups that cannot share a cluster

    @property
    def n_groups(self) -> int:
        return int(self.group.max()) + 1

    def rows(self, group: int) -> np.ndarray:
        return np.flatnonzero(self.group == group)

    def sizes(self, is_counted: np.ndarray) -> np.ndarray:
        """Number of counted rows of each group."""
        return np.bincount(self.group[is_counted & (self.group >= 0)], minlength=self.n_groups)

    def assign(
        self,
        costs: np.ndarray,  # in  (n, k) 0 for rows that do not count
        is_counted: np.ndarray,  # in  (n,) whether a row counts in the sizes
        size_min: np.ndarray,  # in  (k,)
        size_max: np.ndarray,  # in  (k,)
        prices: np.ndarray,  # i/o (k,)
        labels: np.ndarray,  # i/o (n,) unchanged for rows that neither count nor have constraints
    ) -> None:
        """Assign every row to a cluster at the minimum total cost within the size bounds and constraints."""
        linked, free = np.flatnonzero(self.group >= 0), np.flatnonzero((self.group < 0) & is_counted)
        group, first = self.group[linked], np.unique(self.group[linked], return_index=True)[1]
        membership = sparse.csr_array((np.ones(len(linked)), (group, linked)), shape=(self.n_groups, len(costs)))
        search = AssignmentSearch(
            membership @ costs, self.sizes(is_counted), self.exclusions, costs[free], labels[free], size_min, size_max
        )
        before = labels[linked[first]]
        best = search.best(prices, None if (before < 0).any() else before)
        prices[:], labels[free], labels[linked] = best.prices, best.labels, best.groups[group]


def as_constraints(must_link: Any, cannot_link: Any, n: int) -> Constraints | None:
    """Groups defined by pairs of rows, or None if there are no pairs."""
    must, cannot = as_pairs("must_link", must_link, n), as_pairs("cannot_link", cannot_link, n)
    if len(must) + len(cannot) == 0:
        return None
    graph = sparse.csr_array((np.ones(len(must)), (must[:, 0], must[:, 1])), shape=(n, n))
    _, component = csgraph.connected_components(graph, directed=False)
    for i, j in cannot:
        if component[i] == component[j]:
            _, predecessors = csgraph.breadth_first_order(graph, i, directed=False)
            path = [int(j)]
            while path[-1] != i:
                path.append(int(predecessors[path[-1]]))
            raise ParameterError(
                f"cannot_link ({i}, {j}) contradicts must_link, which links rows {_shown(path[::-1])}: remove one of "
                "these pairs"
            )
    linked = np.unique(np.concatenate([must.ravel(), cannot.ravel()]))
    group = np.full(n, -1)
    group[linked] = np.unique(component[linked], return_inverse=True)[1]
    return Constraints(group, np.unique(np.sort(group[cannot].reshape(-1, 2), axis=1), axis=0))


def as_pairs(name: str, pairs: Any, n: int) -> np.ndarray:
    """Pairs of row indices (m, 2)."""
    if pairs is None:
        return np.empty((0, 2), np.int64)
    try:
        array = np.asarray(pairs)
    except ValueError:
        raise ParameterError(f"{name} must be None or pairs of row indices (m, 2); got {pairs!r}") from None
    if array.size == 0:
        return np.empty((0, 2), np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 2 or array.shape[1] != 2:
        raise ParameterError(
            f"{name} must be None or pairs of row indices (m, 2); got {array.dtype} of shape {array.shape}"
        )
    invalid = array[(array < 0) | (array >= n)]
    if len(invalid):
        raise ParameterError(f"{name} contains row {invalid[0]}, but the rows of X are 0 to {n - 1}: remove that pair")
    equal = array[array[:, 0] == array[:, 1]]
    if len(equal):
        raise ParameterError(f"{name} must pair different rows; got ({equal[0, 0]}, {equal[0, 1]})")
    return array.astype(np.int64)


def check_constraints(
    constraints: Constraints | None, is_counted: np.ndarray, size_min: np.ndarray, size_max: np.ndarray
) -> None:
    """Raise an error if no assignment of the counted rows (n,) satisfies the constraints and the sizes."""
    if constraints is None:
        return
    sizes, k = constraints.sizes(is_counted), len(size_max)
    largest = int(sizes.argmax())
    if sizes[largest] > size_max.max():
        raise ParameterError(
            f"must_link joins {sizes[largest]} rows ({_shown(constraints.rows(largest))}), but a cluster has at most "
            f"size_max={size_max.max()} rows: raise size_max, or remove some pairs"
        )
    rows = [int(constraints.rows(group)[0]) for group in clique(constraints.exclusions, constraints.n_groups)]
    if len(rows) > k or not colourable(constraints.exclusions, constraints.n_groups, k):
        reason = f": rows {_shown(rows)} exclude each other" if len(rows) > k else ""
        raise ParameterError(
            f"cannot_link needs more than n_clusters={k} clusters{reason}; raise n_clusters, or remove some pairs"
        )
    rows_left = int(np.count_nonzero(is_counted & (constraints.group < 0)))
    if (
        integer_program(
            constraints.exclusions, sizes, rows_left, size_min, size_max, np.zeros((constraints.n_groups, k)), []
        )
        is None
    ):
        raise ParameterError(
            "must_link, cannot_link, size_min and size_max cannot all be satisfied: relax the sizes, or remove some "
            "pairs"
        )


def clique(pairs: np.ndarray, m: int) -> list[int]:
    """Groups that all exclude each other, found greedily: groups with the most exclusions first."""
    exclusions = _exclusions(pairs, m)
    members: list[int] = []
    for g in sorted(range(m), key=lambda g: -len(exclusions[g])):
        if all(g in exclusions[other] for other in members):
            members.append(g)
    return members


def colourable(pairs: np.ndarray, m: int, k: int) -> bool:
    """Whether `k` clusters are enough: a greedy colouring, and an integer program if the greedy one fails."""
    exclusions, clusters = _exclusions(pairs, m), np.full(m, -1)
    for g in sorted(range(m), key=lambda g: -len(exclusions[g])):
        used = {int(clusters[other]) for other in exclusions[g]}
        clusters[g] = next(a for a in range(len(used) + 1) if a not in used)
    if clusters.max() < k:
        return True
    return integer_program(pairs, np.zeros(m), 0, np.zeros(k), np.zeros(k), np.zeros((m, k)), []) is not None


def _exclusions(pairs: np.ndarray, m: int) -> list[set[int]]:
    exclusions: list[set[int]] = [set() for _ in range(m)]
    for g, h in pairs.tolist():
        exclusions[g].add(h)
        exclusions[h].add(g)
    return exclusions


def _shown(rows: Any) -> str:
    rest = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    return ", ".join(str(int(row)) for row in rows[:SHOWN]) + rest


# Cheapest clusters for must-linked groups of rows, with all other rows assigned around them.

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
    for presolve in (True, False):  # HiGHS 1.12 fails on some tiny programs that it has simplified
        solution = milp(
            np.concatenate([costs.ravel(), np.zeros(k), [1.0]]),
            constraints=LinearConstraint(lines, lower, upper),
            integrality=np.concatenate([np.ones(m * k), np.zeros(k + 1)]),
            bounds=Bounds(0.0, np.concatenate([np.ones(m * k), np.full(k + 1, np.inf)])),
            options={"mip_rel_gap": 0.0, "presolve": presolve},
        )
        if solution.status == INFEASIBLE or solution.x is not None:
            break
    if solution.status == INFEASIBLE:
        return None
    if solution.x is None:
        raise RuntimeError(f"the integer program of must_link and cannot_link was not solved: {solution.message}")
    return solution.x[: m * k].reshape(m, k).argmax(axis=1), float(solution.fun)
