"""Mixtures of any family: what they find, what they return, and what they reject."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse, special, stats
from sklearn.metrics import adjusted_rand_score

from coterie import GaussianMixture, Mixture
from coterie.errors import InputError, ParameterError
from coterie.families import (
    Bernoulli,
    BetaPrior,
    Categorical,
    DirichletPrior,
    GammaPrior,
    Gaussian,
    Multinomial,
    Poisson,
    Product,
)
from mixture.counts import EACH, FAMILIES, planted
from mixture.rows import climbs, groups


@pytest.fixture(scope="module")
def fitted():
    found = {}
    for family in FAMILIES:
        X, labels = planted(family)
        found[family] = (X, labels, Mixture(4, family, random_state=0).fit(X))
    return found


def log_joint(model, X):
    """By SciPy, one component at a time."""
    c, joint = model.components_, []
    for j, weight in enumerate(model.weights_):
        if model.family == "poisson":
            density = stats.poisson(c.rate[j]).logpmf(X).sum(axis=1)
        elif model.family == "bernoulli":
            density = stats.bernoulli(c.probability[j]).logpmf(X).sum(axis=1)
        elif model.family == "multinomial":
            density = stats.multinomial.logpmf(X.astype(int), X[0].sum().astype(int), c.probability[j])
        else:
            columns = model.family_.split(c.probability)
            density = sum(np.log(p[j, X[:, i].astype(int)]) for i, p in enumerate(columns))
        joint.append(np.log(weight) + density)
    return np.stack(joint, axis=1)


# what is found


@pytest.mark.whole_search
@EACH
@pytest.mark.parametrize("seed", range(4))
def test_planted_components_are_found(family, seed):
    """No start from the truth ends at a higher likelihood."""
    X, labels = planted(family, seed=seed, k=5)
    truth = Mixture(5, family, init_params=labels, tol=1e-6).fit(X)
    found = Mixture(5, family, random_state=seed, tol=1e-6).fit(X)
    assert found.log_likelihood_ >= truth.log_likelihood_ - 0.05
    assert adjusted_rand_score(found.labels_, labels) >= adjusted_rand_score(truth.labels_, labels) - 0.02


@EACH
def test_the_likelihood_climbs_half_step_by_half_step(family):
    X, labels = planted(family)
    start = np.where(np.arange(len(X)) % 3, labels, (labels + 1) % 4)
    for options in ({}, {"concentration": 2.0, "prior": "default"}):
        model = Mixture(4, family, init_params=start, **options).fit(X)
        assert len(model.history_) > 5
        climbs(model.history_, 1e-10)


@EACH
def test_acceleration_ends_at_the_same_likelihood(family):
    X, labels = planted(family, d=3)
    start = np.where(np.arange(len(X)) % 3, labels, (labels + 1) % 4)
    plain, fast = (
        Mixture(4, family, search="thorough", init_params=start, tol=1e-6, max_iter=20_000, accelerate=a).fit(X)
        for a in (False, True)
    )
    assert fast.log_likelihood_ >= plain.log_likelihood_ - 0.01
    assert fast.n_iter_ < max(20, plain.n_iter_)


@pytest.mark.parametrize("structure", ["VVV", "EEE", "VVI", "VII", "VEV"])
def test_gaussians_are_those_of_the_gaussian_mixture(structure):
    X, _ = groups(400)
    some = Mixture(3, Gaussian(structure), random_state=0).fit(X)
    same = GaussianMixture(3, covariance_type=structure, random_state=0).fit(X)
    assert some.log_likelihood_ == same.log_likelihood_
    np.testing.assert_array_equal(some.predict_proba(X), same.predict_proba(X))
    np.testing.assert_array_equal(some.components_.mean, same.means_)
    np.testing.assert_array_equal(some.sample(9)[0], same.sample(9)[0])
    assert (some.bic(X), some.icl(X), some.n_parameters_) == (same.bic(X), same.icl(X), same.n_parameters_)


def test_gaussians_may_have_holes_whatever_their_structure_and_a_prior_of_their_weights():
    X, labels = groups(300)
    X[::7, 1] = np.nan
    some = Mixture(3, Gaussian("VVV"), missing="ignore", random_state=0).fit(X)
    same = GaussianMixture(3, missing="ignore", random_state=0).fit(X)
    assert some.log_likelihood_ == same.log_likelihood_
    pulled = Mixture(3, Gaussian("VVV"), missing="ignore", concentration=50.0).fit(X, known_labels=labels)
    np.testing.assert_allclose(pulled.weights_, (np.bincount(labels) + 49) / (300 + 3 * 49))


# what is answered


@EACH
def test_answers_are_those_of_the_formulas(family, fitted):
    X, _, model = fitted[family]
    joint = log_joint(model, X)
    density = special.logsumexp(joint, axis=1)
    resp = np.exp(joint - density[:, None])
    np.testing.assert_allclose(model.predict_proba(X), resp, rtol=1e-7, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), resp.argmax(axis=1))
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_allclose(model.score_samples(X), density, rtol=1e-9)
    np.testing.assert_allclose(model.uncertainty(X), 1 - resp.max(axis=1), atol=1e-9)
    np.testing.assert_allclose(model.entropy(X), special.entr(resp).sum(axis=1), atol=1e-9)
    assert model.score(X) == pytest.approx(density.mean())
    assert model.log_likelihood_ == pytest.approx(density.sum())
    free = {"poisson": 32, "bernoulli": 32, "multinomial": 28, "categorical": 4 * 8 * 3}[family] + 3
    assert model.n_parameters_ == free
    assert model.bic(X) == pytest.approx(-2 * density.sum() + free * np.log(len(X)))
    assert model.aic(X) == pytest.approx(-2 * density.sum() + 2 * free)
    assert model.icl(X) == pytest.approx(-2 * joint.max(axis=1).sum() + free * np.log(len(X)))


@EACH
def test_samples_look_like_the_mixture(family, fitted):
    X, _, model = fitted[family]
    rows, labels = model.sample(4000)
    assert rows.shape == (4000, X.shape[1])
    np.testing.assert_allclose(np.bincount(labels, minlength=4) / 4000, model.weights_, atol=0.04)
    again = Mixture(4, family, init_params=labels).fit(rows)
    assert again.score(rows) == pytest.approx(model.score(X), abs=0.25)


@EACH
@pytest.mark.parametrize("e_step", ["soft", "hard"])
def test_weight_two_is_the_row_twice(family, e_step):
    X, labels = planted(family, 300)
    times = np.random.default_rng(1).integers(1, 4, size=300)
    weighted = Mixture(4, family, init_params=labels, e_step=e_step).fit(X, sample_weight=times)
    repeated = Mixture(4, family, init_params=np.repeat(labels, times), e_step=e_step).fit(np.repeat(X, times, axis=0))
    for a, b in zip(weighted.components_, repeated.components_, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)
    assert weighted.log_likelihood_ == pytest.approx(repeated.log_likelihood_, rel=1e-10)
    assert weighted.bic(X, times) == pytest.approx(repeated.bic(np.repeat(X, times, axis=0)), rel=1e-10)


@EACH
def test_if_all_components_are_known_the_fit_is_the_estimate_of_each(family):
    X, labels = planted(family, 200)
    w = np.random.default_rng(1).exponential(size=200)
    model = Mixture(4, family).fit(X, sample_weight=w, known_labels=labels)
    for j in range(4):
        mine = labels == j
        alone = type(model.family_)()
        if family == "categorical":
            alone.n_categories = [len(levels) for levels in model.family_.categories]
        alone.fit(X[mine], w[mine])
        field = model.components_._fields[0]
        np.testing.assert_allclose(getattr(model.components_, field)[j], getattr(alone, f"{field}_"), rtol=1e-9)
    np.testing.assert_allclose(model.weights_, np.bincount(labels, w) / w.sum())


@EACH
def test_known_rows_keep_their_component(family):
    X, labels = planted(family, 400)
    y = np.where(np.arange(400) % 5 == 0, labels, -1)
    model = Mixture(4, family, random_state=0).fit(X, known_labels=y)
    assert (model.labels_ == labels).mean() > 0.8  # by number: nothing had to be matched
    with pytest.raises(InputError, match="from 0 to n_components - 1 = 3"):
        Mixture(4, family).fit(X, known_labels=labels + 1)


@EACH
def test_known_rows_without_weight_do_not_matter(family):
    X, labels = planted(family, 200)
    known, others = np.where(np.arange(200) < 20, labels, -1), np.arange(200) >= 20
    weighted = Mixture(4, family, random_state=0).fit(X, known_labels=known, sample_weight=others.astype(float))
    alone = Mixture(4, family, random_state=0).fit(X[others])
    assert weighted.log_likelihood_ == pytest.approx(alone.log_likelihood_, rel=1e-3)


@EACH
def test_hard_and_stochastic_steps_run(family):
    X, labels = planted(family)
    hard = Mixture(4, family, e_step="hard", random_state=0).fit(X)
    assert hard.lower_bound_ * len(X) == pytest.approx(log_joint(hard, X).max(axis=1).sum())
    drawn = Mixture(4, family, e_step="stochastic", max_iter=20, random_state=0).fit(X)
    assert drawn.n_iter_ == 20
    assert adjusted_rand_score(drawn.labels_, labels) > 0.5


# missing values


@pytest.mark.parametrize("family", ["poisson", "bernoulli", "categorical"])
def test_a_missing_value_drops_out_of_its_row(family):
    X, labels = planted(family, 600)
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.25, np.nan, X)
    holes = holes[~np.isnan(holes).all(axis=1)]
    model = Mixture(4, family, missing="ignore", random_state=0).fit(holes)
    x = holes[np.isnan(holes).any(axis=1)][0]
    there = np.flatnonzero(~np.isnan(x))
    if family == "poisson":
        each = stats.poisson(model.components_.rate[:, there]).logpmf(x[there]).sum(axis=1)
    elif family == "bernoulli":
        each = stats.bernoulli(model.components_.probability[:, there]).logpmf(x[there]).sum(axis=1)
    else:
        columns = model.family_.split(model.components_.probability)
        each = sum(np.log(columns[j][:, int(x[j])]) for j in there)
    joint = np.log(model.weights_) + each
    assert model.score_samples(x[None])[0] == pytest.approx(special.logsumexp(joint))
    climbs(model.history_, 1e-10)
    known = labels[: len(holes)]
    means = np.array([np.nanmean(holes[known == j], axis=0) for j in range(4)])
    if family != "categorical":
        np.testing.assert_allclose(
            Mixture(4, family, missing="ignore").fit(holes, known_labels=known).components_[0], means
        )


def test_missing_values_are_rejected_unless_they_are_ignored():
    X, _ = planted("poisson", 100)
    X[3, 2] = np.nan
    with pytest.raises(InputError, match="NaN"):
        Mixture(2, "poisson").fit(X)
    with pytest.raises(ParameterError, match="families with independent columns"):
        Mixture(2, "multinomial", missing="ignore").fit(X)


# what cannot be fitted, and what is put right


@EACH
def test_more_components_than_there_are_different_rows_stay_finite(family):
    X, _ = planted(family, 30)
    X = np.repeat(X[:3], 20, axis=0)
    model = Mixture(6, family, random_state=0).fit(X)
    assert np.isfinite(model.log_likelihood_)
    assert np.isfinite(model.predict_proba(X)).all()
    assert all(np.isfinite(array).all() for array in model.components_)


@EACH
def test_what_a_component_never_saw_is_not_impossible(family):
    X, _ = planted(family, 200)
    X = np.concatenate([np.zeros((50, X.shape[1])), X]) if family != "multinomial" else X
    model = Mixture(3, family, random_state=0).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.score_samples(X[:, ::-1])).all()


def test_a_component_that_lost_its_rows_starts_anew():
    X, labels = planted("poisson", 400)
    resp = np.zeros((400, 4))
    resp[:, :3] = np.eye(3)[labels % 3]
    model = Mixture(4, "poisson", init_params=resp).fit(X)
    assert [event.what for event in model.history_.events][:1] == ["reseeded"]
    assert model.weights_.min() > 0.05
    assert np.isfinite(model.log_likelihood_)


@pytest.mark.parametrize(
    "family, X, message",
    [
        ("poisson", [[1, 2], [3, -1]], r"column 1 \(1, such as -1\).*integers >= 0"),
        ("poisson", [[1, 2], [3.5, 1]], r"column 0 \(1, such as 3.5\)"),
        ("bernoulli", [[1, 0], [0, 2]], r"column 1 \(1, such as 2\).*zeros and ones"),
        ("multinomial", [[1, 0], [0.5, 2]], r"column 0 \(1, such as 0.5\)"),
    ],
)
def test_values_that_a_family_does_not_take_are_named(family, X, message):
    with pytest.raises(InputError, match=message):
        Mixture(1, family).fit(X)
    model = Mixture(1, family).fit([[1, 0], [0, 1]])
    with pytest.raises(InputError, match=message):
        model.predict(X)


def test_a_category_that_no_row_had_is_named():
    model = Mixture(1, "categorical").fit([[0, 5], [1, 7]])
    with pytest.raises(InputError, match=r"column 1 has the value 6, which is not one of its 2 categories"):
        model.predict([[0, 6]])
    roomy = Mixture(1, Categorical(n_categories=3)).fit([[0, 1], [1, 0]])
    assert np.isfinite(roomy.score_samples([[2, 2]])).all()
    with pytest.raises(InputError, match=r"column 0 has the value 3"):
        roomy.predict([[3, 0]])


def test_options_that_cannot_be_are_named():
    X, _ = planted("poisson", 50)
    for options, message in (
        ({"family": "zeta"}, "family must be"),
        ({"n_components": "many"}, "n_components must be"),
        ({"init_params": "kmeans"}, "init_params must be"),
        ({"concentration": 0}, "concentration must be"),
        ({"prior": BetaPrior()}, "prior of Poisson must be"),
        ({"e_step": "fuzzy"}, "e_step must be"),
        ({"missing": "drop"}, "missing must be"),
    ):
        with pytest.raises(ParameterError, match=message):
            Mixture(**{"family": "poisson", "n_components": 2, **options}).fit(X)
    with pytest.raises(InputError, match="Mixture of Categorical needs dense rows"):
        Mixture(2, "categorical").fit(sparse.csr_array(X))
    with pytest.raises(InputError, match="n_components=60 is larger than n_samples="):
        Mixture(60, "poisson").fit(X)


def test_priors_pull_estimates_as_they_say():
    X, labels = planted("poisson", 200)
    model = Mixture(4, Poisson(), prior=GammaPrior(3.0, 5.0)).fit(X, known_labels=labels)
    rate = [(X[labels == j].sum(axis=0) + 2) / ((labels == j).sum() + 5) for j in range(4)]
    np.testing.assert_allclose(model.components_.rate, rate)
    X, labels = planted("multinomial", 200)
    model = Mixture(4, Multinomial(DirichletPrior(2.0)), concentration=3.0).fit(X, known_labels=labels)
    counts = np.array([X[labels == j].sum(axis=0) + 1 for j in range(4)])
    np.testing.assert_allclose(model.components_.probability, counts / counts.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(model.weights_, (np.bincount(labels) + 2) / (200 + 8))


def test_groups_of_columns_have_their_families():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 150)
    X = np.column_stack([rng.poisson([2, 8] @ np.eye(2)[labels].T), rng.random(300) < 0.2 + 0.6 * labels, labels % 2])
    X = np.column_stack([X, rng.normal(size=(300, 2)) + 3 * labels[:, None]])
    family = Product([("poisson", [0]), (Bernoulli(), [1, 2]), (Gaussian(), [3, 4])])
    model = Mixture(2, family).fit(X, known_labels=labels)
    np.testing.assert_allclose(model.components_["poisson"].rate[:, 0], [X[:150, 0].mean(), X[150:, 0].mean()])
    np.testing.assert_allclose(model.components_["gaussian"].mean[0], X[:150, 3:].mean(axis=0))
    free = Mixture(2, family, random_state=0).fit(X)
    assert adjusted_rand_score(free.labels_, labels) == 1.0
    assert model.n_parameters_ == 1 + 2 * (1 + 2 + 2 + 3)
    for wrong in ([("poisson", [0])], [("poisson", [0, 1]), ("bernoulli", [1, 2, 3, 4])]):
        with pytest.raises(ParameterError, match="groups"):
            Mixture(2, Product(wrong)).fit(X)
