"""The number of iterations of a long fit that a trace contains."""

from itertools import pairwise

import numpy as np
import pytest

from coterie.core import loop
from coterie.core.progress import Progress
from coterie.errors import ParameterError
from coterie.traces import recorder as recording
from traces.cases import SOFT, X, anew, in_thirds, much, quiet

pytestmark = quiet


def iteration(i, params=None):
    return recording.Iteration(i, np.zeros(3) if params is None else params, -float(i))


def test_the_first_iterations_and_later_pairs_are_recorded():
    run = recording.Run(0)
    for i in range(5000):
        run.add(iteration(i))
        assert len(run.iterations) <= recording.MAX_ITERATIONS + 1
        assert run.iterations[-1].iteration == i
    kept = [each.iteration for each in run.iterations]
    head = recording.MAX_ITERATIONS // 2
    assert kept[:head] == list(range(head))
    assert len(kept) > head
    later = kept[head:-1]
    assert {i for i in later if i % run.stride == 0} == {i - 1 for i in later if i % run.stride == 1}


def test_few_iterations_with_large_parameters_are_recorded():
    run, large = recording.Run(0), np.broadcast_to(np.zeros(1), (recording.MAX_BYTES // 8,))
    for i in range(100):
        run.add(iteration(i, (large, (large, 3))))
    assert len(run.iterations) <= recording.MIN_ITERATIONS + 1
    assert run.iterations[0].iteration == 0


def test_only_the_best_restart_and_the_current_one_are_recorded():
    recorder = recording.Recorder()
    watch = recorder.watching(None, object(), *in_thirds())
    for start, end in enumerate([5.0, 2.0, 3.0]):
        for i in range(4):
            watch(Progress("iteration", i, run=start, params=np.zeros(2), objective=end + 3 - i))
        assert {recorder.current.number, getattr(recorder.best, "number", None)} <= {start, None, 0, 1}
    recorder.chose(loop.Fit(np.zeros(2), 2.0, (), True, 1))
    assert recorder.run.number == 1
    assert len(recorder.run.iterations) == 4


def test_a_best_restart_that_was_not_recorded_is_an_error():
    recorder = recording.Recorder()
    watch = recorder.watching(None, object(), *in_thirds())
    watch(Progress("iteration", 0, run=2, params=np.zeros(2), objective=4.0))
    with pytest.raises(ParameterError, match="checkpoint"):
        recorder.chose(loop.Fit(np.zeros(2), 2.0, (), True, 1))


def test_the_objective_of_a_trace_of_many_iterations_never_falls(monkeypatch):
    monkeypatch.setattr(recording, "MAX_ITERATIONS", 12)
    trace = anew(SOFT["gaussians"][0]).fit_trace(X)
    assert trace.model.n_iter_ > 14
    assert len({step.iteration for step in trace.steps}) < 16
    assert np.all(np.diff(trace.objectives) >= -much(trace))
    for before, step in pairwise(trace.steps[1:]):
        if step.kind == "M":
            assert step.iteration == before.iteration + 1
