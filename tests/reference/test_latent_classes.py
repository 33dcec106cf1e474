"""Latent classes and profiles beside StepMix, and as they were published."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from coterie import Mixture
from coterie.families import Bernoulli, Categorical, Gaussian, Product
from reference.shared_data import load

K, LEVELS = 3, 3

FAMILIES = {
    "binary": Bernoulli(),
    "categorical": Categorical(n_categories=LEVELS),
    "mixed": Product(
        [(Gaussian("diag", reg_covar=0.0), range(2)), (Categorical(LEVELS), range(2, 5)), (Bernoulli(), range(5, 8))]
    ),
}
EACH = pytest.mark.parametrize("kind", FAMILIES)
HOLES = pytest.mark.parametrize("holes", [False, True], ids=["", "holes"])
WEIGHTED = pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])


def planted(kind, n=400, holes=False, seed=0):
    """Rows of overlapping classes, and labels of which a third are wrong."""
    rng = np.random.default_rng(seed)
    z = np.r_[np.arange(K), rng.integers(K, size=n - K)]
    real = rng.normal(size=(n, 2)) * [1.0, 30.0] + 2 * rng.normal(size=(K, 2))[z] * [1.0, 30.0] + [0.0, 500.0]
    until = rng.dirichlet(np.ones(LEVELS), (K, 6)).cumsum(axis=-1)
    kinds = np.minimum((rng.random((n, 6, 1)) > until[z]).sum(axis=-1), LEVELS - 1)
    binary = rng.random((n, 8)) < rng.beta(1.0, 1.0, (K, 8))[z]
    mixed = np.column_stack([real, kinds[:, :3], binary[:, :3]])
    X = {"binary": binary, "categorical": kinds, "mixed": mixed}[kind].astype(np.float64)
    if holes:
        X[rng.random(X.shape) < 0.2] = np.nan
        X[np.isnan(X).all(axis=1), 0] = 0.0
    return X, np.where(np.arange(n) % 3, z, (z + 1) % K)


def weights(n, weighted):
    return np.random.default_rng(5).exponential(size=n) if weighted else np.ones(n)


def measurement(kind, holes=False):
    """What StepMix calls the same."""
    end = "_nan" if holes else ""
    if kind != "mixed":
        return kind + end
    return {
        "real": {"model": f"gaussian_diag{end}", "n_columns": 2, **({} if holes else {"reg_covar": 0.0})},
        "kinds": {"model": f"categorical{end}", "n_columns": 3},
        "binary": {"model": f"binary{end}", "n_columns": 3},
    }


def stepmix(kind, holes=False, start=None, w=None, **options):
    """StepMix, from the M-step that responsibilities `start` (n, k) lead to, or from starts of its own."""
    peer = pytest.importorskip("stepmix.stepmix")

    class Started(peer.StepMix):
        def _initialize_parameters(self, X, random_state):
            super()._initialize_parameters(X, random_state)
            if start is not None:
                self._m_step(X, start, sample_weight=w)

    options = {"abs_tol": 1e-12, "max_iter": 5000, "random_state": 0, **options}
    return Started(K, measurement=measurement(kind, holes), progress_bar=0, **options)


def parameters(model, kind):
    """Those of a mixture, as StepMix has them."""
    parts = model.components_
    if kind == "mixed":
        names = {"real": "gaussian", "kinds": "categorical", "binary": "bernoulli"}
        found = {group: as_theirs(parts[name]) for group, name in names.items()}
    else:
        found = as_theirs(parts)
    return {"weights": model.weights_, "measurement": found, "measurement_in": model.n_features_in_}


def as_theirs(part):
    if hasattr(part, "mean"):
        return {"means": part.mean, "covariances": part.covariance}
    return {"pis": part.probability, "max_n_outcomes": LEVELS, "total_outcomes": part.probability.shape[1]}


def arrays(found):
    """By name, however deep they lie."""
    for name, value in sorted(found.items()):
        if isinstance(value, dict):
            yield from ((f"{name} {inner}", array) for inner, array in arrays(value))
        elif name in ("weights", "means", "covariances", "pis"):
            yield name, value


def assert_same_components(ours, theirs, kind, rtol):
    for (name, mine), (other, yours) in zip(
        arrays(parameters(ours, kind)), arrays(theirs.get_parameters()), strict=True
    ):
        assert name == other
        np.testing.assert_allclose(mine, yours, rtol=rtol, atol=1e-9, err_msg=name)


def mixture(kind, holes, **options):
    return Mixture(K, FAMILIES[kind], missing="ignore" if holes else "error", **options)


@EACH
@HOLES
@WEIGHTED
def test_the_same_parameters_have_the_same_likelihood(kind, holes, weighted):
    X, start = planted(kind, 1200, holes)  # enough for compiled code
    w = weights(len(X), weighted)
    with pytest.warns(match="did not converge"):
        ours = mixture(kind, holes, init_params=start, max_iter=3).fit(X, sample_weight=w)
    with pytest.warns(match="did not converge"):
        theirs = stepmix(kind, holes, max_iter=1).fit(X)  # so that it knows the columns
    theirs.set_parameters(parameters(ours, kind))
    assert theirs.score(X, sample_weight=w) == pytest.approx(ours.log_likelihood_ / w.sum(), rel=1e-12)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-10)
    assert ours.n_parameters_ == theirs.n_parameters
    assert ours.bic(X) == pytest.approx(theirs.bic(X))
    assert ours.aic(X) == pytest.approx(theirs.aic(X))


@EACH
@HOLES
@WEIGHTED
def test_the_same_start_takes_the_same_steps(kind, holes, weighted):
    X, start = planted(kind, 1200, holes)
    w, resp = weights(len(X), weighted), np.eye(K)[start]
    for steps in (1, 6):
        with pytest.warns(match="did not converge"):
            ours = mixture(kind, holes, init_params=start, max_iter=steps).fit(X, sample_weight=w)
        with pytest.warns(match="did not converge"):
            theirs = stepmix(kind, holes, resp, w, max_iter=steps).fit(X, sample_weight=w)
        assert_same_components(ours, theirs, kind, rtol=1e-8)


@EACH
@HOLES
def test_the_same_start_ends_in_the_same_optimum(kind, holes):
    X, start = planted(kind, holes=holes)
    ours = mixture(kind, holes, init_params=start, search="thorough", tol=1e-9, max_iter=5000).fit(X)
    theirs = stepmix(kind, holes, np.eye(K)[start]).fit(X)
    assert ours.log_likelihood_ == pytest.approx(len(X) * theirs.score(X), rel=1e-9)
    np.testing.assert_allclose(ours.weights_, theirs.weights_, atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)


@EACH
@HOLES
def test_one_start_of_ours_is_as_good_as_the_best_of_many(kind, holes):
    X, _ = planted(kind, 200, holes)
    ours = mixture(kind, holes, random_state=0, tol=1e-9, max_iter=5000).fit(X)
    theirs = stepmix(kind, holes, n_init=5, abs_tol=1e-7).fit(X)
    assert ours.log_likelihood_ >= len(X) * theirs.score(X) - 1e-4


@HOLES
def test_a_frame_of_mixed_columns_is_a_latent_profile_model(holes):
    X, start = planted("mixed", holes=holes)
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    for j in range(3):
        frame[f"kind {j}"] = pd.Series(X[:, 2 + j]).map({0.0: "blue", 1.0: "green", 2.0: "red"})
        frame[f"answer {j}"] = pd.Series(X[:, 5 + j]).map({0.0: "no", 1.0: "yes"})
    families = dict.fromkeys("ab", Gaussian("diag", reg_covar=0.0))
    ours = Mixture.from_frame(frame, K, families=families, init_params=start, tol=1e-9, max_iter=5000)
    theirs = stepmix("mixed", holes, np.eye(K)[start]).fit(X)
    assert ours.log_likelihood_ == pytest.approx(len(X) * theirs.score(X), rel=1e-9)
    np.testing.assert_allclose(ours.predict_proba(frame), theirs.predict_proba(X), atol=1e-3)
    assert ours.n_parameters_ == theirs.n_parameters
    plain = Mixture.from_frame(frame, K, random_state=0)
    assert {plain.families_[name].split("(")[0] for name in "ab"} == {"Gaussian"}
    assert {family.split("(")[0] for name, family in plain.families_.items() if name not in "ab"} == {"Categorical"}


def test_votes_in_congress_as_latent_classes():
    X = load("mssc/congress_votes") - 1.0
    ours = Mixture(K, Categorical(LEVELS), random_state=0, tol=1e-6, max_iter=5000).fit(X)
    theirs = stepmix("categorical", n_init=5, abs_tol=1e-7).fit(X)
    assert ours.log_likelihood_ >= len(X) * theirs.score(X) - 1e-4


# published results


ANSWERS = np.array(list(product([1.0, 0.0], repeat=4)))  # to four questions


def deviance(model, counts):
    """2 sum n log(n / expected): how much less likely the table is than if every cell had its own probability."""
    expected = counts.sum() * np.exp(model.score_samples(ANSWERS))
    return 2 * float((counts * np.log(counts / expected)).sum())


def test_role_conflict_has_two_classes():
    """S. A. Stouffer & J. Toby (1951), Am. J. Sociology 56; L. A. Goodman (1974), Biometrika 61, 215-231."""
    counts = np.array([42, 23, 6, 25, 6, 24, 7, 38, 1, 4, 1, 6, 2, 9, 2, 20.0])
    one = Mixture(1, "bernoulli").fit(ANSWERS, sample_weight=counts)
    two = Mixture(2, "bernoulli", random_state=0, tol=1e-8, max_iter=5000).fit(ANSWERS, sample_weight=counts)
    assert deviance(one, counts) == pytest.approx(81.08, abs=0.005)
    assert deviance(two, counts) == pytest.approx(2.72, abs=0.005)
    order = np.argsort(two.weights_)
    np.testing.assert_allclose(two.weights_[order], [0.280, 0.720], atol=0.002)
    found = two.components_.probability[order]
    np.testing.assert_allclose(found, [[0.993, 0.940, 0.927, 0.769], [0.714, 0.330, 0.354, 0.132]], atol=0.002)
