"""One number of iterations: of the result, of the curve and of the animation."""

import time

import pytest

from coterie.jobs import Job, fit_job
from coterie.jobs import run as run_job
from coterie.plots import ConvergenceDisplay
from coterie.report.build.fit_report import convergence_of
from coterie.report.html import Absent
from report.pages import blobs

JOBS = {
    "kmeans": {"k": 3},
    "kmeans, chosen": {"k": "auto", "budget": "quick"},
    "kmeans, one column": {"k": 3, "columns": ("x0",)},
    "kmedians": {"k": 3, "algorithm": "kmedians"},
    "minibatch": {"k": 3, "algorithm": "minibatch"},
    "minibatch, restarts": {"k": 3, "algorithm": "minibatch", "options": {"n_init": 3}},
    "gmm": {"k": 3, "algorithm": "gmm", "options": {"covariance": "diag"}},
    "bisecting": {"k": 3, "algorithm": "bisecting"},
    "ward": {"k": 3, "algorithm": "ward"},
}
ANIMATED = ("kmeans", "kmeans, chosen", "kmedians", "minibatch", "gmm")


def fitted(monkeypatch, job):
    """The fit of a job, and its result; no files are written."""
    contents = []

    def keeping(job, content, callback):
        contents.append(content)
        return content.result

    monkeypatch.setattr(fit_job, "write_outputs", keeping)
    result = run_job(job)
    return contents[0].fitted, result


@pytest.mark.parametrize("name, is_animated", [*((name, False) for name in JOBS), *((name, True) for name in ANIMATED)])
def test_the_curve_and_the_animation_have_the_iterations_of_the_result(tmp_path, monkeypatch, name, is_animated):
    animate = {"animate": tmp_path / "a.html"} if is_animated else {}
    fit, result = fitted(monkeypatch, Job(blobs(tmp_path, 90, 2, spread=3.0), **JOBS[name], **animate))
    curve = convergence_of(fit)
    if result.iterations is None:
        assert isinstance(curve, Absent)
        assert not is_animated
    else:
        assert isinstance(curve, ConvergenceDisplay)
        assert round(curve.iterations[curve.best][-1]) == result.iterations
    if is_animated:
        assert fit.recording.trace().steps[-1].iteration == result.iterations


def test_the_time_of_a_job_is_that_from_its_first_to_its_last_step(tmp_path):
    start = time.perf_counter()
    result = run_job(Job(blobs(tmp_path), k=3, report=tmp_path / "r.html"))
    waited = time.perf_counter() - start
    assert result.seconds < result.total_seconds <= waited
    assert f" · {result.total_seconds:.2f} s · fit {result.seconds:.2f} s" in str(result)
