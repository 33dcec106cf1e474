"""A cluster in this process: three holders of parts, which lose rows and memos as workers do."""

from __future__ import annotations

import pickle
import weakref

import numpy as np

from coterie.engines.passes import ClusterEngine, HeldParts, Ledger, Reply


class FakePlacement:
    def __init__(self, source, loses, seed):
        self.source, self.ledger, self.loses = weakref.ref(source), Ledger(), loses
        self.n_parts, self.rng, self.n_lost = len(source.parts()), np.random.default_rng(seed), 0
        self.held = {}
        for part in range(self.n_parts):
            self._give(part, f"w{part * 3 // self.n_parts}")

    def _give(self, part, name):
        self.held.setdefault(name, HeldParts({})).places[part] = self.source().parts()[part]()

    def holders(self):
        return {name: sorted(held.places) for name, held in self.held.items()}

    def ask(self, order, parts):
        return {name: self._reply(name, order, mine) for name, mine in parts.items()}

    def _reply(self, name, order, mine) -> Reply | None:
        if self._happens("memo"):
            for memos in self.held[name].memos.values():
                memos.pop(int(self.rng.choice(mine)), None)
        if self._happens("repeat"):  # the reply is lost, and the order is run again
            self._run(name, order, mine)
        if self._happens("worker") and len(self.held) > 1:
            self._run(name, order, mine)
            del self.held[name]
            return None
        return self._run(name, order, mine)

    def _run(self, name, order, mine):
        return self.held[name].run(pickle.loads(pickle.dumps(order)), mine, lambda chunk: chunk, 1)

    def _happens(self, what):
        happens = what in self.loses and self.rng.random() < 0.2
        self.n_lost += happens
        return happens

    def recover(self, parts):
        names = list(self.held)
        new = {}
        for part in parts:
            name = names[part % len(names)]
            self._give(part, name)
            new.setdefault(name, []).append(part)
        return new

    def values(self, replies):
        values = {part: value for _, reply in replies for part, value in reply.values.items()}
        return [values[part] for part in range(self.n_parts)]


class FakeCluster(ClusterEngine):
    """`loses` are the faults that happen at random: 'memo', 'repeat' and 'worker'."""

    def __init__(self, loses=(), seed=0):
        self.loses, self.seed = loses, seed

    def _new_placement(self, source):
        return FakePlacement(source, self.loses, self.seed)
