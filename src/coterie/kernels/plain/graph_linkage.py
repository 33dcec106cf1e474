"""Agglomerative clustering along the edges of a graph, in NumPy. See `kernels.cpu.graph_linkage`."""

from typing import Any

import numpy as np

from coterie.kernels.plain.linkage import AVERAGE as AVERAGE
from coterie.kernels.plain.linkage import COMPLETE, WARD
from coterie.kernels.plain.linkage import kruskal as kruskal

Array = np.ndarray[Any, Any]


def merge_shortest_edges(ends: Array, method: int, length: Array, weight: Array, means: Array, Z: Array) -> None:
    n = len(means)
    size, mass, center = dict.fromkeys(range(n), 1), dict(enumerate(weight.tolist())), dict(enumerate(means))
    edges = {(max(pair), min(pair)): value for pair, value in zip(ends.tolist(), length.tolist(), strict=True)}

    def ward_cost(a: int, b: int) -> float:
        return float(((center[a] - center[b]) ** 2).sum()) * mass[a] * mass[b] / (mass[a] + mass[b])

    if method == WARD:
        edges = {pair: ward_cost(*pair) for pair in edges}
    for new in range(n, 2 * n - 1):
        (b, a), value = min(edges.items(), key=lambda edge: (edge[1], edge[0]))
        size[new], mass[new] = size[a] + size[b], mass[a] + mass[b]
        Z[new - n] = a, b, value, size[new]
        share = mass[b] / mass[new]
        center[new] = center[a] + (center[b] - center[a]) * share
        to_a, to_b = (_neighbours(edges, part) for part in (a, b))
        edges = {pair: value for pair, value in edges.items() if a not in pair and b not in pair}
        for other in (to_a.keys() | to_b.keys()) - {a, b}:
            one, two = to_a.get(other, to_b.get(other)), to_b.get(other, to_a.get(other))
            if method == WARD:
                edges[new, other] = ward_cost(new, other)
            else:
                edges[new, other] = max(one, two) if method == COMPLETE else one + (two - one) * share


def _neighbours(edges: dict[tuple[int, int], float], part: int) -> dict[int, float]:
    """Lengths of the edges of a cluster, by the cluster at the other end."""
    return {x + y - part: value for (x, y), value in edges.items() if part in (x, y)}
