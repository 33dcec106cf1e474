"""How a fit of a Gaussian mixture runs: weights, threads, batches, acceleration, callbacks and interrupts."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from coterie import GaussianMixture
from coterie.data import as_source
from coterie.errors import FitInterruptedWarning, ParameterError
from coterie.families.structures import STRUCTURES
from coterie.mixture.starts import METHODS
from mixture.rows import far_from_settled, groups

ALL = pytest.mark.parametrize("name", list(STRUCTURES))
FORMS = pytest.mark.parametrize("name", ["VVV", "EEE", "VVI", "VII"])
# Little work is done by NumPy, more by compiled kernels.
SIZES = pytest.mark.parametrize("n", [150, 6000], ids=["small", "large"])
PRECISIONS = {
    "VVV": np.stack([np.eye(3)] * 2),
    "EEE": np.eye(3),
    "VVI": np.ones((2, 3)),
    "VII": np.ones(2),
}


def given(name, X):
    """Everything a start needs, so that chance plays no part."""
    return {
        "covariance_type": name,
        "weights_init": [0.5, 0.5],
        "means_init": X[:2],
        "precisions_init": PRECISIONS[name],
    }


def same(one, other, rtol=1e-8):
    for attribute in ("weights_", "means_", "covariances_"):
        np.testing.assert_allclose(getattr(other, attribute), getattr(one, attribute), rtol=rtol, atol=rtol)
    assert other.n_iter_ == one.n_iter_
    assert other.log_likelihood_ == pytest.approx(one.log_likelihood_, rel=1e-10)


# weights


@FORMS
@SIZES
@pytest.mark.parametrize("e_step", ["soft", "hard"])
def test_weight_two_is_the_row_twice(name, n, e_step):
    X, _ = groups(n, d=3, k=2)
    times = np.random.default_rng(4).integers(1, 4, size=n)
    model = GaussianMixture(2, e_step=e_step, **given(name, X))
    weighted = model.fit(X, sample_weight=times)
    repeated = GaussianMixture(2, e_step=e_step, **given(name, X)).fit(np.repeat(X, times, axis=0))
    assert weighted.n_iter_ > 1
    same(weighted, repeated)
    np.testing.assert_array_equal(np.repeat(weighted.labels_, times), repeated.labels_)


@FORMS
@SIZES
def test_weight_zero_is_no_row(name, n):
    X, _ = groups(n, d=3, k=2)
    counts = np.random.default_rng(4).random(n) < 0.7
    beside = np.where(counts[:, None], X, X + 1000)
    start = given(name, X)
    same(
        GaussianMixture(2, **start).fit(X[counts]),
        GaussianMixture(2, **start).fit(beside, sample_weight=counts.astype(float)),
    )


@pytest.mark.parametrize("init", METHODS)
def test_rows_of_weight_zero_are_no_starts(init):
    X, _ = groups(200, d=3, k=2)
    rows = np.r_[X, X + 1e4]
    weight = np.repeat([1.0, 0.0], 200)
    model = GaussianMixture(2, init_params=init, random_state=0).fit(rows, sample_weight=weight)
    assert np.abs(model.means_).max() < 100
    assert model.log_likelihood_ == pytest.approx(model.score_samples(X).sum(), rel=1e-9)


@FORMS
def test_a_common_factor_of_the_weights_changes_nothing_but_the_likelihoods_unit(name):
    X, _ = groups(150, d=3, k=2)
    one, many = (
        GaussianMixture(2, tol=1e-9, **given(name, X)).fit(X, sample_weight=np.full(150, w)) for w in (1.0, 7.0)
    )
    np.testing.assert_allclose(many.means_, one.means_, atol=1e-5)
    np.testing.assert_allclose(many.covariances_, one.covariances_, atol=1e-5)
    assert many.log_likelihood_ == pytest.approx(7 * one.log_likelihood_, rel=1e-8)
    assert many.lower_bound_ == pytest.approx(one.lower_bound_, rel=1e-8)


# engines


@FORMS
@pytest.mark.parametrize("e_step", ["soft", "hard", "stochastic"])
def test_the_number_of_threads_changes_no_bit(name, e_step):
    X, _ = groups(90_000, d=3, k=2)
    assert len(as_source(X).parts()) > 2  # two come to the same in any order
    options = {"e_step": e_step, "max_iter": 6, "tol": 0, "random_state": 0, **given(name, X)}
    fits = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for how in ({"n_jobs": 3}, {"engine": "serial"}):
            fits.append(GaussianMixture(2, **options, **how).fit(X))
    for other in fits[1:]:
        for attribute in ("weights_", "means_", "covariances_", "labels_", "log_likelihood_"):
            np.testing.assert_array_equal(getattr(other, attribute), getattr(fits[0], attribute))
        np.testing.assert_array_equal(other.history_.lower_bound, fits[0].history_.lower_bound)


@pytest.mark.parametrize("init", METHODS)
def test_a_random_state_gives_one_answer_however_many_threads(init):
    X, _ = groups(90_000, d=3, k=2)
    assert len(as_source(X).parts()) > 2  # two come to the same in any order
    one, two = (
        GaussianMixture(2, covariance_type="VVI", init_params=init, random_state=3, n_jobs=n_jobs).fit(X)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.means_, two.means_)
    np.testing.assert_array_equal(one.labels_, two.labels_)


# batches


@FORMS
def test_many_batches_come_near_the_whole(name):
    X, _ = groups(20_000, d=3, k=2)
    start = given(name, X)
    whole = GaussianMixture(2, **start).fit(X)
    parts = GaussianMixture(2, random_state=0, **start)
    for batch in np.array_split(np.random.default_rng(1).permutation(X), 100):
        parts.partial_fit(batch)
    order = np.argsort(parts.means_[:, 0])[np.argsort(np.argsort(whole.means_[:, 0]))]
    np.testing.assert_allclose(parts.weights_[order], whole.weights_, atol=0.05)
    np.testing.assert_allclose(parts.means_[order], whole.means_, atol=0.2)
    assert parts.score(X) > whole.score(X) - 0.02
    assert parts.n_iter_ == 100
    assert not parts.converged_


def test_a_batch_leaves_labels_and_likelihood_of_the_batch():
    X, _ = groups(300, d=3, k=2)
    model = GaussianMixture(2, random_state=0).partial_fit(X[:200])
    before = model.score(X[200:])
    model.partial_fit(X[200:])
    np.testing.assert_array_equal(model.labels_, model.predict(X[200:]))
    assert model.log_likelihood_ == pytest.approx(100 * before, rel=1e-9)  # taken before the step, as history_ would


def test_known_components_keep_their_numbers_from_batch_to_batch():
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=600)
    X = rng.normal(size=(600, 2)) + 100 * np.array([[0, 0], [1, 0], [0, 1]])[labels]
    y = np.where(rng.random(600) < 0.3, labels, -1)
    model = GaussianMixture(3, random_state=0)
    for part in np.array_split(np.arange(600), 6):
        model.partial_fit(X[part], known_labels=y[part])
    np.testing.assert_array_equal(model.predict(X), labels)


def test_known_components_count_in_the_first_batch_too():
    X, _ = groups(400, d=3, k=2, apart=0.0)
    odd = (X[:, 0] > 0).astype(int)  # known, and not what the rows alone would say
    known = GaussianMixture(2, reg_covar=0).partial_fit(X, known_labels=odd).partial_fit(X, known_labels=odd)
    np.testing.assert_allclose(known.means_, [X[odd == j].mean(axis=0) for j in range(2)], rtol=1e-9)


def test_a_batch_moves_the_fit_before_it_by_its_share_of_all():
    X, labels = groups(1000, d=3, k=2)
    model = GaussianMixture(2, init_params=labels, reg_covar=0).fit(X)
    share, batch = 3**-0.6, X[:50] + 0.5  # the second of all batches
    r, fresh = model.predict_proba(X), model.predict_proba(batch)
    counts = (1 - share) * r.mean(axis=0) + share * fresh.mean(axis=0)
    sums = (1 - share) * r.T @ X / 1000 + share * fresh.T @ batch / 50
    model.partial_fit(batch)
    np.testing.assert_allclose(model.weights_, counts, rtol=1e-9)
    np.testing.assert_allclose(model.means_, sums / counts[:, None], rtol=1e-9)


def test_fit_forgets_what_batches_learned():
    X, _ = groups(200, d=3, k=2)
    fresh = GaussianMixture(2, random_state=0).fit(X)
    used = GaussianMixture(2, random_state=0).partial_fit(X + 50).partial_fit(X + 60).fit(X)
    np.testing.assert_array_equal(used.means_, fresh.means_)
    np.testing.assert_array_equal(used.partial_fit(X[:20]).means_, fresh.partial_fit(X[:20]).means_)


# acceleration


def overlapping():
    """Two strongly overlapping Gaussians of one column, and a start."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(0, 1, 300), rng.normal(2, 1, 300)][:, None]
    return X, {"weights_init": [0.5, 0.5], "means_init": [[-1.0], [2.0]], "precisions_init": np.ones((2, 1, 1))}


def test_acceleration_takes_a_third_of_the_passes_to_the_same_likelihood():
    X, start = overlapping()
    plain, fast = (
        GaussianMixture(2, search="thorough", accelerate=fast, tol=1e-5, max_iter=20_000, **start).fit(X)
        for fast in (False, True)
    )
    assert plain.converged_
    assert fast.converged_
    assert 3 * fast.n_iter_ <= plain.n_iter_
    assert fast.log_likelihood_ == pytest.approx(plain.log_likelihood_, abs=0.01)


@ALL
def test_acceleration_never_falls_and_ends_no_lower(name):
    X, labels = far_from_settled()
    plain, fast = (
        GaussianMixture(2, covariance_type=name, init_params=labels, accelerate=fast, tol=1e-4, max_iter=5000).fit(X)
        for fast in (False, True)
    )
    objective = (fast.history_.lower_bound + fast.history_.log_prior)[fast.history_.step == "E"]
    assert (np.diff(objective) >= -1e-11 * np.abs(objective).max()).all()
    end = (plain.history_.lower_bound + plain.history_.log_prior)[-1]
    assert objective[-1] >= end - 0.01


# callbacks and interrupts


def test_the_callback_sees_every_iteration_and_can_stop_it():
    X, labels = far_from_settled()
    seen = []
    model = GaussianMixture(2, init_params=labels, callback=seen.append).fit(X)
    assert [p.iteration for p in seen] == list(range(model.n_iter_ + 1))
    assert {p.run for p in seen} == {0}
    E = model.history_.step == "E"
    np.testing.assert_allclose([-p.objective for p in seen], (model.history_.lower_bound + model.history_.log_prior)[E])
    np.testing.assert_array_equal(seen[-1].params.means, model.means_)
    stopped = GaussianMixture(2, init_params=labels, callback=lambda p: p.iteration == 2).fit(X)  # and does not warn
    assert stopped.n_iter_ == 2
    assert not stopped.converged_
    np.testing.assert_array_equal(stopped.means_, seen[2].params.means)


def test_an_invalid_callback_is_rejected():
    with pytest.raises(ParameterError, match=r"callback must be None or a function.*got 3"):
        GaussianMixture(2, callback=3).fit(groups(50, d=3, k=2)[0])


def test_verbose_prints_a_line_an_iteration(capsys):
    X, labels = groups(150, d=3, k=2)
    model = GaussianMixture(2, init_params=labels, verbose=2).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_ + 1
    assert lines[1].startswith("restart 1, iteration 1: objective")
    GaussianMixture(2, init_params=labels).fit(X)
    assert capsys.readouterr().out == ""


def test_an_interrupt_keeps_the_best_so_far():
    X, labels = far_from_settled()
    seen = []

    def interrupt(progress):
        seen.append(progress)
        if progress.iteration == 3:
            raise KeyboardInterrupt

    with pytest.warns(FitInterruptedWarning, match="best result so far"):
        model = GaussianMixture(2, init_params=labels, tol=0, callback=interrupt).fit(X)
    np.testing.assert_array_equal(model.means_, seen[-1].params.means)
    assert model.n_iter_ == 3
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert model.history_.log_likelihood[-1] == model.log_likelihood_


def test_running_out_of_iterations_warns_with_the_remedy():
    X, labels = far_from_settled()
    with pytest.warns(ConvergenceWarning, match="GaussianMixture did not converge in max_iter=2.*raise max_iter"):
        model = GaussianMixture(2, init_params=labels, tol=0, max_iter=2).fit(X)
    assert model.n_iter_ == 2
    assert not model.converged_
    assert len(model.history_) == 5


def test_a_smaller_tolerance_goes_further_along_the_same_way():
    X, start = overlapping()
    hasty, patient = (
        GaussianMixture(2, search="thorough", tol=tol, max_iter=20_000, **start).fit(X) for tol in (1e-1, 1e-5)
    )
    assert hasty.n_iter_ < patient.n_iter_
    np.testing.assert_array_equal(hasty.history_.lower_bound, patient.history_.lower_bound[: len(hasty.history_)])
    assert patient.log_likelihood_ - hasty.log_likelihood_ < 2 * 0.1 * (1 + 600 / 1000)  # as tol is explained
