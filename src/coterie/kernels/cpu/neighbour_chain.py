"""The chain of nearest neighbours (Murtagh 1983): each cluster's neighbour follows it, until two are each other's.

Distances along the chain fall strictly, by one number for a pair whichever end it is seen from: so no rounding can lead
the chain in a circle.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.cpu.jit import jit_inner


class Chain(NamedTuple):
    cluster: Any  # (n,) int64, in the order of the chain
    link: Any  # (n,) float64, distance to the one before, infinite for the first
    place: Any  # (n,) int64, where each cluster is in the chain; -1 if it is not


def new_chain(n: int) -> Chain:
    return Chain(np.empty(n, np.int64), np.empty(n), np.full(n, -1))


@jit_inner
def push(chain, length, cluster, link):
    """One more cluster at the end."""
    chain.cluster[length] = cluster
    chain.link[length] = link
    chain.place[cluster] = length
    return length + 1


@jit_inner
def cut(chain, length, keep):
    """Takes all clusters but the first `keep` off the end."""
    for i in range(keep, length):
        chain.place[chain.cluster[i]] = -1
    return keep


@jit_inner
def follow(chain, length, neighbour, link):
    """The chain after the last cluster's nearest `neighbour`, at distance `link`, less than to the one before.

    Is it on the chain already, which rounding alone can bring about, the two nearest become its end.
    """
    before = chain.place[neighbour]
    if before < 0:
        return push(chain, length, neighbour, link)
    last = chain.cluster[length - 1]
    return push(chain, cut(chain, length, before + 1), last, link)
