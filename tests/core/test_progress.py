"""What long work tells of the time it will still take."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import KMeans, choose_k
from coterie.core import clock
from coterie.core.progress import reported
from coterie.selection import gap_statistic, mixture_table, stability, sweep

X = np.random.default_rng(0).normal(size=(80, 2))

WORK = {
    "sweep": lambda tell: sweep(KMeans(random_state=0), [2, 3, 5], X, callback=tell),
    "gap": lambda tell: gap_statistic(X, [1, 2, 3], n_references=4, random_state=0, callback=tell),
    "stability": lambda tell: stability(KMeans(), X, [2, 3], n_resamples=3, random_state=0, callback=tell),
    "mixtures": lambda tell: mixture_table(X, [1, 2], ["EII", "VVI"], random_state=0, callback=tell),
    "choose_k": lambda tell: choose_k(X, [2, 3], ["silhouette", "elbow", "gap"], callback=tell),
}


@pytest.mark.parametrize("name", WORK)
def test_time_left_is_told_and_ends_at_nothing(name, monkeypatch):
    monkeypatch.setattr(clock, "SILENT", 0.0)
    told = []
    WORK[name](told.append)
    assert [step.done for step in told] == list(range(1, len(told) + 1))
    assert all(step.left is not None and 0 <= step.left < np.inf for step in told)
    assert told[-1].left == 0.0
    assert all(step.left > 0 for step in told[:-1])


def test_large_pieces_count_for_more(monkeypatch):
    time = [0.0]
    monkeypatch.setattr("coterie.core.progress.Clock", lambda: clock.Clock(lambda: time[0]))
    told = []

    def work():
        for seconds in (10.0, 30.0, 60.0):
            time[0] += seconds
            yield seconds

    assert list(reported(work(), ["a", "b", "c"], told.append, [1, 3, 6])) == [10.0, 30.0, 60.0]
    assert [step.left for step in told] == pytest.approx([90.0, 60.0, 0.0])
