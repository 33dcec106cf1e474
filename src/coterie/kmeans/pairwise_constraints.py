"""Rows that must be in one cluster, rows that cannot: groups of rows, and the cheapest clusters for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from coterie.core.errors import ParameterError
from coterie.kmeans.constrained_assignment import Search, program

SHOWN = 8  # rows that a message names at most


@dataclass(frozen=True)
class Links:
    """Groups of rows that belong together; a row that is only kept from others is a group of its own."""

    group: np.ndarray  # (n,) of each row; -1: it has no links
    apart: np.ndarray  # (e, 2) groups that cannot share a cluster

    @property
    def count(self) -> int:
        return int(self.group.max()) + 1

    def rows(self, group: int) -> np.ndarray:
        return np.flatnonzero(self.group == group)

    def sizes(self, counted: np.ndarray) -> np.ndarray:
        """How many rows that count (n,) each group has."""
        return np.bincount(self.group[counted & (self.group >= 0)], minlength=self.count)

    def divide(
        self,
        costs: np.ndarray,  # in  (n, k) 0 for rows that do not count
        counted: np.ndarray,  # in  (n,) rows that take a place
        least: np.ndarray,  # in  (k,)
        most: np.ndarray,  # in  (k,)
        prices: np.ndarray,  # i/o (k,)
        labels: np.ndarray,  # i/o (n,) rows that neither count nor have links are left alone
    ) -> None:
        """Gives every row a cluster, at the least total cost with sizes within bounds and all links kept."""
        linked, free = np.flatnonzero(self.group >= 0), np.flatnonzero((self.group < 0) & counted)
        group, first = self.group[linked], np.unique(self.group[linked], return_index=True)[1]
        together = sparse.csr_array((np.ones(len(linked)), (group, linked)), shape=(self.count, len(costs)))
        search = Search(together @ costs, self.sizes(counted), self.apart, costs[free], labels[free], least, most)
        before = labels[linked[first]]
        found = search.best(prices, None if (before < 0).any() else before)
        prices[:], labels[free], labels[linked] = found.prices, found.labels, found.groups[group]


def as_links(must_link: Any, cannot_link: Any, n: int) -> Links | None:
    """The groups that pairs of rows make; None where there are no pairs."""
    together, apart = as_pairs("must_link", must_link, n), as_pairs("cannot_link", cannot_link, n)
    if len(together) + len(apart) == 0:
        return None
    graph = sparse.csr_array((np.ones(len(together)), (together[:, 0], together[:, 1])), shape=(n, n))
    _, member = csgraph.connected_components(graph, directed=False)
    for i, j in apart:
        if member[i] == member[j]:
            _, before = csgraph.breadth_first_order(graph, i, directed=False)
            path = [int(j)]
            while path[-1] != i:
                path.append(int(before[path[-1]]))
            raise ParameterError(
                f"cannot_link ({i}, {j}) contradicts must_link: rows {_shown(path[::-1])} are linked; drop one of them"
            )
    linked = np.unique(np.concatenate([together.ravel(), apart.ravel()]))
    group = np.full(n, -1)
    group[linked] = np.unique(member[linked], return_inverse=True)[1]
    return Links(group, np.unique(np.sort(group[apart].reshape(-1, 2), axis=1), axis=0))


def as_pairs(name: str, pairs: Any, n: int) -> np.ndarray:
    """Pairs of row numbers (m, 2)."""
    if pairs is None:
        return np.empty((0, 2), np.int64)
    try:
        found = np.asarray(pairs)
    except ValueError:
        raise ParameterError(f"{name} must be None or pairs of row numbers (m, 2); got {pairs!r}") from None
    if found.size == 0:
        return np.empty((0, 2), np.int64)
    if found.dtype.kind not in "iu" or found.ndim != 2 or found.shape[1] != 2:
        raise ParameterError(
            f"{name} must be None or pairs of row numbers (m, 2); got {found.dtype} of shape {found.shape}"
        )
    outside = found[(found < 0) | (found >= n)]
    if len(outside):
        raise ParameterError(f"{name} names row {outside[0]}, but the rows of X are 0 to {n - 1}")
    alone = found[found[:, 0] == found[:, 1]]
    if len(alone):
        raise ParameterError(f"{name} must pair different rows; got ({alone[0, 0]}, {alone[0, 1]})")
    return found.astype(np.int64)


def check_links(links: Links | None, counted: np.ndarray, least: np.ndarray, most: np.ndarray) -> None:
    """Whether any division keeps the links and the sizes; `counted` (n,) are the rows that take a place."""
    if links is None:
        return
    sizes, k = links.sizes(counted), len(most)
    largest = int(sizes.argmax())
    if sizes[largest] > most.max():
        raise ParameterError(
            f"must_link joins {sizes[largest]} rows ({_shown(links.rows(largest))}), "
            f"and size_max={most.max()} is all that a cluster may have: raise it, or drop some links"
        )
    rows = [int(links.rows(group)[0]) for group in clique(links.apart, links.count)]
    if len(rows) > k or not colourable(links.apart, links.count, k):
        why = f": rows {_shown(rows)} exclude each other" if len(rows) > k else ""
        raise ParameterError(f"cannot_link needs more than n_clusters={k} clusters{why}; ask for more, or drop some")
    rows_left = int(np.count_nonzero(counted & (links.group < 0)))
    if program(links.apart, sizes, rows_left, least, most, np.zeros((links.count, k)), []) is None:
        raise ParameterError(
            "must_link, cannot_link, size_min and size_max cannot all hold: no clusters of these sizes keep the links; "
            "widen the sizes, or drop some links"
        )


def clique(apart: np.ndarray, m: int) -> list[int]:
    """Groups that all exclude each other: as many as are found by taking the most excluded first."""
    excluded = _excluded(apart, m)
    kept: list[int] = []
    for g in sorted(range(m), key=lambda g: -len(excluded[g])):
        if all(g in excluded[other] for other in kept):
            kept.append(g)
    return kept


def colourable(apart: np.ndarray, m: int, k: int) -> bool:
    """Whether `k` clusters are enough: the most excluded group takes the first that it can, or else all is tried."""
    excluded, chosen = _excluded(apart, m), np.full(m, -1)
    for g in sorted(range(m), key=lambda g: -len(excluded[g])):
        taken = {int(chosen[other]) for other in excluded[g]}
        chosen[g] = next(a for a in range(len(taken) + 1) if a not in taken)
    if chosen.max() < k:
        return True
    return program(apart, np.zeros(m), 0, np.zeros(k), np.zeros(k), np.zeros((m, k)), []) is not None


def _excluded(apart: np.ndarray, m: int) -> list[set[int]]:
    excluded: list[set[int]] = [set() for _ in range(m)]
    for g, h in apart.tolist():
        excluded[g].add(h)
        excluded[h].add(g)
    return excluded


def _shown(rows: Any) -> str:
    more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    return ", ".join(str(int(row)) for row in rows[:SHOWN]) + more
