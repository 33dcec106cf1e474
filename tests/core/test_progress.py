"""Estimates of the remaining time of long computations."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import KMeans, choose_k
from coterie.core import clock
from coterie.core.progress import reported
from coterie.selection import gap_statistic, mixture_table, stability, sweep

X = np.random.default_rng(0).normal(size=(80, 2))

WORK = {
    "sweep": lambda tell: sweep(KMeans(random_state=0), X, [2, 3, 5], callback=tell),
    "gap": lambda tell: gap_statistic(X, [1, 2, 3], n_references=4, random_state=0, callback=tell),
    "stability": lambda tell: stability(KMeans(), X, [2, 3], n_resamples=3, random_state=0, callback=tell),
    "mixtures": lambda tell: mixture_table(X, [1, 2], structures=["EII", "VVI"], random_state=0, callback=tell),
    "choose_k": lambda tell: choose_k(
        X, [2, 3], criteria=["silhouette", "elbow", "gap"], callback=tell, random_state=0
    ),
}


@pytest.mark.parametrize("name", WORK)
def test_time_left_is_reported_and_ends_at_zero(name, monkeypatch):
    monkeypatch.setattr(clock, "MIN_ELAPSED", 0.0)
    reports = []
    WORK[name](reports.append)
    assert [step.done for step in reports] == list(range(1, len(reports) + 1))
    assert all(step.left is not None and 0 <= step.left < np.inf for step in reports)
    assert reports[-1].left == 0.0
    assert all(step.left > 0 for step in reports[:-1])


def test_large_pieces_count_for_more(monkeypatch):
    time = [0.0]
    monkeypatch.setattr("coterie.core.progress.Clock", lambda: clock.Clock(lambda: time[0]))
    reports = []

    def work():
        for seconds in (10.0, 30.0, 60.0):
            time[0] += seconds
            yield seconds

    assert list(reported(work(), ["a", "b", "c"], reports.append, [1, 3, 6])) == [10.0, 30.0, 60.0]
    assert [step.left for step in reports] == pytest.approx([90.0, 60.0, 0.0])
