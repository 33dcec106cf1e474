"""Convergence, callbacks, verbosity and interruption of a K-means fit."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from coterie import KMeans, MiniBatchKMeans
from coterie.errors import FitInterruptedWarning
from kmeans.kmeans_cases import groups, objective

# iterations


def test_running_out_of_iterations_warns_with_the_remedy():
    X = groups(300, 2, 6, apart=1.0)
    with pytest.warns(ConvergenceWarning, match="KMeans did not converge in max_iter=1.*raise max_iter"):
        model = KMeans(6, init=X[:6], max_iter=1).fit(X)
    assert model.n_iter_ == 1
    assert len(model.history_) == 2
    assert not model.converged_
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert model.inertia_ == pytest.approx(objective(X, model.cluster_centers_), rel=1e-12)


def test_a_large_tolerance_ends_the_fit_earlier():
    X = groups(300, 2, 6, apart=1.0)
    patient, hasty = (KMeans(6, init=X[:6], tol=tol).fit(X) for tol in (0, 10.0))
    assert hasty.converged_
    assert hasty.n_iter_ == 1 < patient.n_iter_
    np.testing.assert_array_equal(hasty.history_, patient.history_[:2])


def test_bounds_change_the_speed_not_the_result():
    X = groups(3000, 8, 20, apart=2.0)
    plain, bounded = (KMeans(20, init=X[:20], algorithm=name).fit(X) for name in ("lloyd", "bounds"))
    assert plain.n_iter_ > 3
    np.testing.assert_array_equal(bounded.labels_, plain.labels_)
    np.testing.assert_array_equal(bounded.cluster_centers_, plain.cluster_centers_)
    np.testing.assert_array_equal(bounded.history_, plain.history_)


# callbacks


def test_the_callback_sees_every_iteration():
    X = groups(100, 2, 4)
    seen = []
    model = KMeans(4, init=X[:4], callback=seen.append).fit(X)
    assert [progress.iteration for progress in seen] == list(range(model.n_iter_ + 1))
    assert [progress.objective for progress in seen] == model.history_.tolist()
    np.testing.assert_array_equal(seen[-1].params, model.cluster_centers_)


@pytest.mark.parametrize("last", [0, 2])
def test_the_callback_can_end_the_fit_without_a_warning(last):
    X = groups(300, 2, 6, apart=1.0)
    model = KMeans(6, init="forgy", n_init=5, random_state=0, callback=lambda progress: progress.iteration == last)
    model.fit(X)
    assert model.n_iter_ == last
    assert not model.converged_
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert model.inertia_ == pytest.approx(objective(X, model.cluster_centers_), rel=1e-12)


def interrupt_at(run, iteration):
    def callback(progress):
        if (progress.run, progress.iteration) == (run, iteration):
            raise KeyboardInterrupt

    return callback


def fit_or_fail(model, X):
    """An interrupt that is passed on fails the test, instead of ending all tests."""
    try:
        model.fit(X)
    except KeyboardInterrupt:
        pytest.fail("the interrupt was passed on")


@pytest.mark.parametrize("iteration", [0, 2])
def test_an_interrupted_fit_keeps_what_it_reached(iteration):
    X = groups(300, 2, 6, apart=1.0)
    whole = KMeans(6, init=X[:6]).fit(X)
    model = KMeans(6, init=X[:6], callback=interrupt_at(0, iteration))
    with pytest.warns(FitInterruptedWarning, match="best result so far is kept"):
        fit_or_fail(model, X)
    assert model.history_.tolist() == whole.history_[: iteration + 1].tolist()
    assert not model.converged_
    assert model.inertia_ == pytest.approx(objective(X, model.cluster_centers_), rel=1e-12)
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_an_interrupted_fit_keeps_the_best_of_the_earlier_starts():
    X = groups(300, 2, 8)
    options = {"init": "forgy", "random_state": 0}
    ends = {}
    KMeans(8, n_init=3, callback=lambda p: ends.__setitem__(p.run, p.objective), **options).fit(X)
    model = KMeans(8, n_init=10, callback=interrupt_at(3, 0), **options)
    with pytest.warns(FitInterruptedWarning):
        fit_or_fail(model, X)
    assert model.inertia_ == min(ends.values())


def test_an_interrupt_before_there_is_any_result_is_passed_on():
    def start(X, k, random_state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        KMeans(3, init=start).fit(groups(30, 2, 3))


def test_other_errors_of_a_callback_are_passed_on():
    def callback(progress):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        KMeans(3, callback=callback).fit(groups(30, 2, 3))


def test_an_interrupted_mini_batch_fit_keeps_what_it_reached():
    X = groups(300, 2, 6)
    model = MiniBatchKMeans(6, batch_size=20, random_state=0, callback=interrupt_at(0, 3))
    with pytest.warns(FitInterruptedWarning):
        fit_or_fail(model, X)
    assert model.n_steps_ == 3
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_verbose_prints_every_iteration(capsys):
    X = groups(100, 2, 4)
    model = KMeans(4, init=X[:4], verbose=2).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_ + 1
    assert lines[0].startswith("restart 1, iteration 0: objective ")
    assert float(lines[-1].split()[-1]) == pytest.approx(model.inertia_, rel=1e-5)
    KMeans(4, init=X[:4]).fit(X)
    assert capsys.readouterr().out == ""
