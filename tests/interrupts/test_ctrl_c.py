"""Real signals at random moments: a result is kept, or Ctrl-C is raised as what it is, and nothing is left behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).with_name("ctrl_c.py")
FEW = ("KMeans", "KMeans missing", "FuzzyCMeans", "HDBSCAN", "sweep")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a process cannot send SIGINT to another there")


def press(times, n_jobs, *names):
    command = [sys.executable, str(HARNESS), str(times), str(n_jobs), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        result = json.loads(line)
        assert set(result["outcomes"]) <= {"kept", "KeyboardInterrupt", "complete"}, (line, done.stderr)
        assert sum(result["outcomes"].values()) == times
        assert result["left_behind"] == {}, line
        assert result["same"], line
    return done.stdout


@pytest.mark.parametrize("n_jobs, names", [(1, ("KMeans", "linkage")), (2, FEW)])
def test_ctrl_c_at_a_few_moments(n_jobs, names):
    printed = press(4, n_jobs, *names)
    assert '"kept"' in printed
    assert '"KeyboardInterrupt"' in printed


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_ctrl_c_at_hundreds_of_moments_of_every_computation(n_jobs):
    press(200, n_jobs)
