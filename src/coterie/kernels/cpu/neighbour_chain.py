"""Nearest-neighbour chain (Murtagh 1983): each cluster is followed by its nearest neighbour, until two are mutual.

Distances along the chain decrease strictly, and the distance of a pair is the same number from both ends. So rounding
cannot cause a cycle.
"""

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.cpu.jit import jit


class Chain(NamedTuple):
    """A chain of clusters, of which a prefix is in use."""

    cluster: Any  # (n,) int64, in the order of the chain
    link: Any  # (n,) float64, distance to the previous cluster, infinite for the first
    position: Any  # (n,) int64, position of each cluster in the chain; -1 if it is not in it


def new_chain(n: int) -> Chain:
    return Chain(np.empty(n, np.int64), np.empty(n), np.full(n, -1))


@jit
def push(chain, length, cluster, link):
    """Append a cluster; return the new length."""
    chain.cluster[length] = cluster
    chain.link[length] = link
    chain.position[cluster] = length
    return length + 1


@jit
def truncate(chain, length, new_length):
    """Remove all clusters after the first `new_length`; return the new length."""
    for i in range(new_length, length):
        chain.position[chain.cluster[i]] = -1
    return new_length


@jit
def follow(chain, length, neighbour, link):
    """Append the nearest `neighbour` of the last cluster, at a distance `link` below the previous one.

    If it is in the chain already, which only rounding can cause, the two nearest clusters become the end of the chain.
    Returns the new length.
    """
    index = chain.position[neighbour]
    if index < 0:
        return push(chain, length, neighbour, link)
    last = chain.cluster[length - 1]
    return push(chain, truncate(chain, length, index + 1), last, link)
