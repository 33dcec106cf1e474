"""Student's t: outliers have less influence, Gaussians are the limit, the likelihood never falls."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from coterie import Mixture
from coterie.errors import ParameterError
from coterie.families import Gaussian, StudentT, student_t_em
from families.cases import learned
from many_parts import many_parts

rng = np.random.default_rng(11)
STRUCTURES = pytest.mark.parametrize("structure", ["full", "diag"])
CENTERS = np.array([[0.0, 0.0, 0.0], [9.0, 9.0, 0.0], [-9.0, 9.0, 5.0]])


def clouds(n=150, outliers=0):
    local = np.random.default_rng(1)
    rows = [local.normal(size=(n, 3)) + center for center in CENTERS]
    return np.concatenate([*rows, local.uniform(-80, 80, size=(outliers, 3))])


@STRUCTURES
@pytest.mark.parametrize("dof, tolerance", [(np.inf, 1e-9), (1e9, 1e-6)])
def test_a_gaussian_is_the_limit(structure, dof, tolerance):
    X, w = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 3)) + 4.0, rng.uniform(0.5, 2.0, 80)
    t, gaussian = StudentT(dof, structure).fit(X, w), Gaussian(structure).fit(X, w)
    np.testing.assert_allclose(t.location_, gaussian.mean_, rtol=tolerance)
    np.testing.assert_allclose(t.scale_, gaussian.covariance_, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(t.log_prob(X), gaussian.log_prob(X), rtol=tolerance)


def test_one_column_is_the_fit_of_scipy():
    x = stats.t(4.0, 2.0, 3.0).rvs(400, random_state=2)
    found = StudentT().fit(x[:, None])
    dof, location, scale = stats.t.fit(x)
    assert found.dof_ == pytest.approx(dof, rel=1e-3)
    assert found.location_[0] == pytest.approx(location, abs=1e-3)
    assert np.sqrt(found.scale_[0, 0]) == pytest.approx(scale, rel=1e-3)


def test_an_outlier_counts_the_less_the_farther_it_is():
    X = np.concatenate([rng.normal(size=(100, 2)), [[50.0, 0.0]]])
    near, far = StudentT().fit(X), StudentT().fit(np.concatenate([X[:-1], [[5e5, 0.0]]]))
    inner = Gaussian().fit(X[:-1])
    assert np.abs(near.location_ - inner.mean_).max() < 0.1
    assert np.abs(far.location_ - near.location_).max() < 0.02
    assert far.scale_[0, 0] < 2 * inner.covariance_[0, 0]
    assert Gaussian().fit(X).covariance_[0, 0] > 10 * inner.covariance_[0, 0]


def test_rows_without_tails_are_as_good_as_gaussian():
    X = rng.uniform(-1, 1, size=(300, 2))
    found = StudentT().fit(X)
    assert found.dof_ == pytest.approx(200.0)
    assert found.log_prob(X).sum() == pytest.approx(Gaussian().fit(X).log_prob(X).sum(), rel=0.01)


@STRUCTURES
@pytest.mark.parametrize("dof", [None, 3.0, np.inf])
@pytest.mark.parametrize("outliers", [0, 40])
def test_the_likelihood_never_falls(structure, dof, outliers):
    model = Mixture(3, StudentT(dof, structure), init_params="random_from_data", random_state=3, tol=1e-4)
    model.fit(clouds(60, outliers))
    slack = 1e-9 * abs(model.lower_bound_)
    assert len(model.history_.lower_bound) > 8
    assert (np.diff(model.history_.lower_bound + model.history_.log_prior) >= -slack).all()
    assert (model.history_.kl >= -slack).all()


def test_outliers_do_not_move_the_components():
    X = clouds(outliers=45)
    heavy = Mixture(3, StudentT(), random_state=0).fit(X)
    apart = np.linalg.norm(heavy.components_.location[:, None] - CENTERS, axis=2)
    assert sorted(apart.argmin(axis=1)) == [0, 1, 2]
    assert apart.min(axis=1).max() < 0.5
    light = Mixture(3, StudentT(np.inf), random_state=0).fit(X)
    away = np.linalg.norm(light.components_.location[:, None] - CENTERS, axis=2)
    assert away.min(axis=0).max() > 2.0


def test_a_mixture_with_infinite_dof_is_the_gaussian_one():
    X = clouds()
    t, gaussian = (Mixture(3, family, random_state=0).fit(X) for family in (StudentT(np.inf), Gaussian()))
    assert t.log_likelihood_ == pytest.approx(gaussian.log_likelihood_, rel=1e-5)
    assert t.n_parameters_ == gaussian.n_parameters_
    assert Mixture(3, StudentT(), random_state=0).fit(X).n_parameters_ == gaussian.n_parameters_ + 3


def test_threads_change_nothing(monkeypatch):
    X = np.random.default_rng(0).standard_t(3, size=(3000, 6))
    many_parts(monkeypatch, X)
    many, one = (Mixture(2, StudentT(), random_state=0, n_jobs=jobs).fit(X) for jobs in (3, 1))
    for a, b in zip(many.components_, one.components_, strict=True):
        np.testing.assert_array_equal(a, b)


def test_units_and_places_do_not_matter():
    X = rng.standard_t(4, size=(100, 2)).round(4)
    one = StudentT().fit(X)
    for scale, shift in ((1e-150, 0.0), (1e150, 0.0), (1.0, 1e9)):
        other = StudentT().fit(X * scale + shift)
        assert other.dof_ == pytest.approx(one.dof_, rel=1e-4)
        np.testing.assert_allclose((other.location_ - shift) / scale, one.location_, atol=1e-5)
        np.testing.assert_allclose(other.scale_ / scale / scale, one.scale_, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"dof": -1.0}, "dof must be None or a number > 0"),
        ({"dof": "many"}, "dof must be None or a number > 0"),
        ({"structure": "tied"}, "structure must be 'full' or 'diag'; got 'tied'"),
        ({"reg_covar": -1.0}, "reg_covar must be a finite number"),
    ],
)
def test_options_are_rejected_with_what_they_can_be(options, words):
    with pytest.raises(ParameterError, match=words):
        StudentT(**options).fit(clouds())


@pytest.mark.parametrize("dof", [3.0, 300.0, np.inf])
def test_the_bound_is_the_likelihood_after_every_pass(dof):
    """Also for as many degrees of freedom as are ever estimated."""
    X, family = clouds(20), StudentT(dof)
    family = learned(family, X)
    features, resp = family.features(X), np.random.default_rng(2).dirichlet(np.ones(2), len(X))
    params = family.estimate(family.statistics(None, features, resp))
    prepared = family.prepare(params)
    bound = family.expected_log_prob(params, family.statistics(prepared, features, resp))
    assert bound == pytest.approx((resp * family.scores(prepared, features)).sum(), rel=1e-9)


@STRUCTURES
def test_the_maximum_is_the_best_of_light_and_of_heavy_tails(structure):
    """A dense cluster and a wide one: the maximum that starts from equal weights of all rows is not the highest."""
    local = np.random.default_rng(4)
    X = np.concatenate([0.1 * local.normal(size=(20, 2)), 30.0 + 3.0 * local.normal(size=(15, 2))])
    best = StudentT(structure=structure).fit(X).log_prob(X).sum()
    fixed = [StudentT(dof, structure).fit(X).log_prob(X).sum() for dof in (1.0, 2.0, 5.0, 30.0, 200.0)]
    assert best >= max(fixed) - 1e-6 * abs(best)
    assert fixed[0] > fixed[-1] + 1.0  # otherwise this table would not tell


@STRUCTURES
@pytest.mark.parametrize("family", [Gaussian, StudentT])
def test_samples_of_a_singular_scatter_are_rows_of_its_density(family, structure):
    X = np.outer(np.arange(9.0), [1.0, 2.0])
    fitted = family(structure=structure).fit(X)
    params = fitted._params._replace(**{fitted._params._fields[1]: 0.0 * fitted._params[1]})
    rows = fitted._learned.draw(params, 0, 5, np.random.default_rng(0))
    np.testing.assert_allclose(rows, np.broadcast_to(params[0], rows.shape), atol=1e-4)


def groups_of_rows(seed):
    """Several groups of different sizes and spreads: each may be a maximum of the likelihood."""
    local = np.random.default_rng(seed)
    d, k = local.integers(1, 5), local.integers(2, 6)
    spreads = [10.0 ** local.uniform(-2.5, 0.3, size=d if seed % 2 else 1) for _ in range(k)]
    places = 5 * local.normal(size=(k, d))
    return np.concatenate(
        [local.normal(size=(local.integers(3, 25), d)) * s + at for s, at in zip(spreads, places, strict=True)]
    )


def seeds_with_likelier(structure, seeds, rows):
    """Seeds of tables on which a start at some row, with a small or a large scatter, leads to a likelier maximum."""
    lower = []
    for seed in seeds:
        X = groups_of_rows(seed)
        family = StudentT(structure=structure)
        family = learned(family, X)
        family.reg_covar, family._rows, family._finest = 0.0, float(len(X)), 1e-13  # as `fit` does
        features, w = family.features(X), np.ones(len(X))
        first = family.estimate(family.statistics(None, features, w[:, None]))
        best = -np.inf
        for i in np.random.default_rng(seed).permutation(len(X))[:rows]:
            for factor in (0.3, 0.003):
                start = first._replace(location=X[i : i + 1], scale=first.scale * factor, dof=np.ones(1))
                params, _ = student_t_em._maximized(
                    family, features, w, start, True, 60, student_t_em.approximate_best_dof
                )
                if student_t_em._is_wide(params, first):
                    best = max(best, float(family.scores(family.prepare(params), features).sum()))
        params = student_t_em.fit_component(family, features, w)
        if float(family.scores(family.prepare(params), features).sum()) < best - 1e-5 * abs(best):
            lower.append(seed)
    return lower


@STRUCTURES
def test_no_starting_point_leads_to_a_likelier_component(structure):
    assert seeds_with_likelier(structure, (2, 3, 15), 6) == []


@pytest.mark.slow
@STRUCTURES
def test_few_tables_of_groups_have_a_likelier_component(structure):
    assert len(seeds_with_likelier(structure, range(100), 20)) <= 3


def test_known_rows_without_weight_do_not_matter():
    X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0], [9]], 30, axis=0)
    known = np.where(np.arange(60) % 10 == 0, np.arange(60) // 30, -1)
    model = Mixture(2, "student_t", random_state=0).fit(X, known_labels=known, sample_weight=(known < 0).astype(float))
    alone = Mixture(2, "student_t", random_state=0).fit(X[known < 0])
    assert model.log_likelihood_ == pytest.approx(alone.log_likelihood_, abs=0.01)


@pytest.mark.parametrize("structure", ["diag", "full"])
def test_a_fit_has_the_units_of_weighted_rows(structure):
    """A row of weight 0 is no row, also for `reg_covar`, which is in units of the variance."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    w = np.random.default_rng(1).integers(0, 3, size=30)
    X[w == 0] *= 1e4
    weighted = StudentT(structure=structure, reg_covar=0.1).fit(X, w)
    repeated = StudentT(structure=structure, reg_covar=0.1).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.scale_, repeated.scale_, rtol=1e-6)
