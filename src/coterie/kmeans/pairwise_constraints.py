"""Must-link and cannot-link constraints: groups of rows, and the cheapest clusters for them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from coterie.errors import ParameterError
from coterie.kmeans.constrained_assignment import AssignmentSearch, integer_program

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
