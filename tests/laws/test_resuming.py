"""A fit that is cut short after any iteration, and gone on with, is the fit that was not."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import zoo
from coterie.core import loop
from coterie.core.checkpoint import Checkpointer
from coterie.data.memory import MemorySource
from coterie.engines.local import Serial, Threads
from coterie.kmeans.kernel_lloyd import KernelLloyd
from coterie.persistence import container
from coterie.persistence.decode import Decoder
from coterie.persistence.encode import Encoder
from coterie.persistence.rules import Lengths

MODELS = [each for each in zoo.MODELS if not isinstance(each.values[0], KernelLloyd)]  # whose memos are its state


class CutShortError(Exception):
    pass


class Memory:
    """A store that is a file in all but its place."""

    def __init__(self, clock=None):
        self.states = {}
        self.left = False

    def read(self, name, model):
        if name not in self.states:
            return None
        content, tensors = self.states[name]
        return Decoder(tensors, for_checkpoint=True).value(container.parse(content), Lengths())

    def write(self, name, make, at_once=False):
        encoder = Encoder(for_checkpoint=True)
        content = container.json.dumps(encoder.value(make(), "state"), allow_nan=False)
        self.states[name] = content, {key: array.copy() for key, array in encoder.tensors.items()}

    def initial_rng(self, rng):
        return copy.deepcopy(rng)

    def stop_writing(self):
        self.left = True


def cut_after(iterations):
    calls = []

    def callback(progress):
        calls.append(progress)
        if len(calls) > iterations:
            raise CutShortError

    return callback


def fit(model, src, store, callback, engine, **how):
    rng = np.random.default_rng(1)
    checkpointer = None if store is None else Checkpointer(store)
    return loop.fit(model, src, engine, rng=rng, n_init=2, callback=callback, checkpointer=checkpointer, **how)


def in_pieces(model, src, engines, **how):
    """The fit, cut short after every iteration; the engines take turns."""
    store, pieces = Memory(), 0
    while True:
        try:
            return fit(model, src, store, cut_after(1), engines[pieces % len(engines)], **how), pieces
        except CutShortError:
            pieces += 1


def assert_same_fit(found, whole):
    assert found.history == whole.history
    assert (found.run, found.passes, found.converged) == (whole.run, whole.passes, whole.converged)
    for x, y in zip(zoo.leaves(found.params), zoo.leaves(whole.params), strict=True):
        np.testing.assert_array_equal(x, y)
    for x, y in zip(zoo.leaves(found.stats)[:1], zoo.leaves(whole.stats)[:1], strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("model, X, part_rows", MODELS)
def test_a_fit_in_pieces_is_the_whole_fit(model, X, part_rows):
    src = MemorySource(X, chunk_rows=part_rows)
    whole = fit(model, src, None, None, Serial(), max_iter=3)
    found, pieces = in_pieces(model, src, (Serial(), Threads(2)), max_iter=3)
    assert pieces >= 2
    assert_same_fit(found, whole)


ACCELERATED = [each for each in MODELS if hasattr(each.values[0], "to_vector") and "small" in each.id]


@pytest.mark.parametrize("model, X, part_rows", ACCELERATED)
def test_an_accelerated_fit_in_pieces_is_the_whole_fit(model, X, part_rows):
    src = MemorySource(X, chunk_rows=part_rows)
    whole = fit(model, src, None, None, Serial(), max_iter=9, accelerate=True)
    found, _ = in_pieces(model, src, (Serial(),), max_iter=9, accelerate=True)
    assert_same_fit(found, whole)


def test_a_stop_by_the_callback_leaves_the_state_and_a_new_fit_goes_on():
    model, X, part_rows = MODELS[0].values
    src, store = MemorySource(X, chunk_rows=part_rows), Memory()
    stopped = fit(model, src, store, lambda progress: progress.iteration == 2, Serial())
    assert stopped.stopped
    assert store.left
    assert_same_fit(fit(model, src, store, None, Serial()), fit(model, src, None, None, Serial()))
