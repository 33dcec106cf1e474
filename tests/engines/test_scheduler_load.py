"""A simulated cluster: what the scheduler sees of a pass depends on the number of workers, not on that of parts."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from coterie.core.placement import choose_workers
from coterie.core.stats import FAN_IN, WeightedSums, tree_sum
from coterie.engines.passes import HeldParts, Ledger, Order, Reply, _sum, replies

FACTORS = np.array([0.1, 0.7, 1.3, 1 / 3])


class CountingPlacement:
    """Workers without rows, whose messages are counted; the chunk of a part is its number."""

    def __init__(self, n_parts, n_workers):
        self.n_parts, self.ledger, self.sent, self.received = n_parts, Ledger(), [], []
        names = choose_workers([1] * n_parts, {f"w{i}": 1 for i in range(n_workers)}, [None] * n_parts)
        self.held = {name: HeldParts({}) for name in names}
        for part, name in enumerate(names):
            self.held[name].places[part] = part

    def holders(self):
        return {name: list(held.places) for name, held in self.held.items()}

    def ask(self, order, parts):
        return {name: self._reply(name, pickle.dumps(order)) for name in parts}

    def _reply(self, name, payload) -> Reply:
        self.sent.append(len(payload))
        reply = self.held[name].run(pickle.loads(payload), None, lambda place: place, 1)
        self.received.append(len(pickle.dumps(reply)))
        return reply


def step(part):
    values = FACTORS * (part + 0.1)
    return WeightedSums(values[0], values)


@pytest.mark.parametrize("n_workers", [1, 8, 100])
def test_messages_of_a_pass_do_not_grow_with_the_parts(n_workers):
    sizes = {}
    for n_parts in (200, 10_000):
        placement = CountingPlacement(n_parts, n_workers)
        total = _sum(replies(placement, Order(step), None))
        expected = tree_sum(map(step, range(n_parts)))
        np.testing.assert_array_equal(total.sum_x, expected.sum_x)
        assert len(placement.sent) == len(placement.received) == n_workers
        sizes[n_parts] = max(placement.sent), max(placement.received)
    node = len(pickle.dumps(step(0)))
    assert sizes[10_000][0] == sizes[200][0]  # an order names no parts
    assert sizes[10_000][1] <= sizes[200][1] + 2 * FAN_IN * node  # at most one more level of the tree at both ends


def test_ten_thousand_parts_on_a_thousand_workers_are_few_nodes():
    placement = CountingPlacement(10_000, 1_000)
    nodes = [len(reply.nodes) for _, reply in replies(placement, Order(step), None)]
    assert len(nodes) == 1_000
    assert max(nodes) <= 2 * FAN_IN
