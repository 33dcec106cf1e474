"""`verbose`: a progress bar in terminals and files. Notebooks are in tests/notebooks."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from coterie import AgglomerativeClustering, GaussianMixture, KMeans, choose_k, diagnose
from coterie.core.progress import Progress
from coterie.core.progress_bar import ERASE, ProgressBar, print_step
from coterie.hierarchy import linkage
from coterie.selection import g_means, gap_statistic, mixture_table, stability, sweep, tendency, x_means

X = np.random.default_rng(0).normal(size=(80, 2)) + 9 * (np.arange(80) < 40)[:, None]
CALLS = {
    "fit": lambda **options: KMeans(3, random_state=0, **options).fit(X),
    "fit of a mixture": lambda **options: GaussianMixture(2, init_params="kmeans", random_state=0, **options).fit(X),
    "fit of a tree": lambda **options: AgglomerativeClustering(2, **options).fit(X),
    "sweep": lambda **options: sweep(KMeans(random_state=0), X, [2, 3], **options),
    "choose_k": lambda **options: choose_k(X, [2, 3], criteria=["silhouette", "elbow"], random_state=0, **options),
    "stability": lambda **options: stability(KMeans(), X, [2, 3], n_resamples=2, random_state=0, **options),
    "gap_statistic": lambda **options: gap_statistic(X, [1, 2], n_references=2, random_state=0, **options),
    "mixture_table": lambda **options: mixture_table(X, [1, 2], structures=["EII"], random_state=0, **options),
    "tendency": lambda **options: tendency(X, [2, 3], n_references=2, random_state=0, **options),
    "x_means": lambda **options: x_means(X, random_state=0, **options),
    "g_means": lambda **options: g_means(X, random_state=0, **options),
    "diagnose": lambda **options: diagnose(X, random_state=0, **options),
    "linkage": lambda **options: linkage(X, "average", **options),
}


class Now:
    """A clock that is set by hand."""

    def __init__(self):
        self.time = 0.0

    def __call__(self):
        return self.time


@pytest.fixture
def terminal(capsys, monkeypatch):
    """Standard error is a terminal; returns what was written to it, and to standard output."""
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True)
    return capsys.readouterr


@pytest.mark.parametrize("name", CALLS)
def test_verbose_shows_one_line_in_a_terminal(name, terminal):
    CALLS[name](verbose=1)
    out, text = terminal()
    assert text.startswith(ERASE)
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert out == ""


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_shown_by_default(name, terminal):
    CALLS[name]()
    assert terminal() == ("", "")


@pytest.mark.parametrize("name", ["sweep", "diagnose", "linkage"])
def test_two_prints_every_step(name, capsys):
    CALLS[name](verbose=2)
    assert "(" in capsys.readouterr().out


def test_the_callback_of_the_user_still_stops_the_work(terminal):
    result = stability(KMeans(), X, [2, 3, 4], n_resamples=2, callback=lambda progress: progress.done == 2, verbose=1)
    assert result.ks.tolist() == [2, 3]
    assert "K = 3 (2 of 3)" in terminal().err


def test_a_bar_is_updated_ten_times_a_second_and_ends_with_the_last_step(terminal):
    now = Now()
    bar = ProgressBar(now)
    for done in range(1, 101):
        bar(Progress("K = 3", done, 100, 12.0 if done < 100 else 0.0))
        now.time += 0.0101
    bar.close()
    lines = terminal().err.split(ERASE)[1:]
    assert len(lines) == 11
    assert lines[0] == "[....................]   1% K = 3 (1 of 100), about 12 s left"
    assert lines[-1] == "[####################] 100% K = 3 (100 of 100)\n"


def test_a_file_gets_a_line_a_second(capsys):
    now = Now()
    bar = ProgressBar(now)
    for iteration in range(31):
        bar(Progress("iteration", iteration, left=12.0 if iteration > 9 else None, objective=5.0))
        now.time += 0.125
    bar.close()
    assert capsys.readouterr().err.splitlines() == [
        "restart 1, iteration 0: objective 5",
        "restart 1, iteration 8: objective 5",
        "restart 1, iteration 16: objective 5, about 12 s left",
        "restart 1, iteration 24: objective 5, about 12 s left",
        "restart 1, iteration 30: objective 5, about 12 s left",
    ]


def test_a_line_is_not_longer_than_the_terminal(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    bar = ProgressBar()
    bar(Progress("a step with a very long name that does not fit", 1, 2))
    bar.close()
    assert len(terminal().err.removeprefix(ERASE).rstrip("\n")) == 39


def test_a_step_printer_prints_the_objective(capsys):
    print_step(Progress("iteration", 3, objective=2.5, run=1))
    assert capsys.readouterr().out == "restart 2, iteration 3: objective 2.5\n"
