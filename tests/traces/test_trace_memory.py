"""How much of a long fit a trace keeps."""

from itertools import pairwise

import numpy as np
import pytest

from coterie.core import loop
from coterie.core.errors import ParameterError
from coterie.core.progress import Progress
from coterie.traces import recorder as recording
from traces.cases import SOFT, X, anew, in_thirds, much, quiet

pytestmark = quiet


def moment(i, params=None):
    return recording.Moment(i, np.zeros(3) if params is None else params, -float(i))


def test_of_many_iterations_the_first_are_kept_and_pairs_of_the_others():
    run = recording.Run(0)
    for i in range(5000):
        run.add(moment(i))
        assert len(run.moments) <= recording.MOST + 1
        assert run.moments[-1].iteration == i
    kept = [each.iteration for each in run.moments]
    head = recording.MOST // 2
    assert kept[:head] == list(range(head))
    assert len(kept) > head
    later = kept[head:-1]
    assert {i for i in later if i % run.stride == 0} == {i - 1 for i in later if i % run.stride == 1}


def test_large_parameters_are_kept_of_few_iterations():
    run, large = recording.Run(0), np.broadcast_to(np.zeros(1), (recording.BYTES // 8,))
    for i in range(100):
        run.add(moment(i, (large, (large, 3))))
    assert len(run.moments) <= recording.FEWEST + 1
    assert run.moments[0].iteration == 0


def test_only_the_best_start_and_the_one_under_way_are_kept():
    kept = recording.Recorder()
    watch = kept.watching(None, object(), *in_thirds())
    for start, end in enumerate([5.0, 2.0, 3.0]):
        for i in range(4):
            watch(Progress("iteration", i, run=start, params=np.zeros(2), objective=end + 3 - i))
        assert {kept.now.number, getattr(kept.best, "number", None)} <= {start, None, 0, 1}
    kept.chose(loop.Fit(np.zeros(2), 2.0, (), True, 1))
    assert kept.run.number == 1
    assert len(kept.run.moments) == 4


def test_a_start_that_was_over_before_is_told_about():
    kept = recording.Recorder()
    watch = kept.watching(None, object(), *in_thirds())
    watch(Progress("iteration", 0, run=2, params=np.zeros(2), objective=4.0))
    with pytest.raises(ParameterError, match="checkpoint"):
        kept.chose(loop.Fit(np.zeros(2), 2.0, (), True, 1))


def test_many_iterations_make_a_trace_that_still_climbs(monkeypatch):
    monkeypatch.setattr(recording, "MOST", 12)
    trace = anew(SOFT["gaussians"][0]).fit_trace(X)
    assert trace.model.n_iter_ > 14
    assert len({step.iteration for step in trace.steps}) < 16
    assert np.all(np.diff(trace.objectives) >= -much(trace))
    for before, step in pairwise(trace.steps[1:]):
        if step.kind == "M":
            assert step.iteration == before.iteration + 1
