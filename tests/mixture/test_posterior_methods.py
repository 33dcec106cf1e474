"""What a fitted Gaussian mixture says of rows, against the formulas; rows with gaps; rows of every kind of table."""

import numpy as np
import pytest
from scipy.special import entr, logsumexp
from scipy.stats import norm

from coterie import GaussianMixture
from coterie.errors import InputError
from mixture.rows import groups, log_joint, matrices, theta

FORMS = pytest.mark.parametrize("name", ["VVV", "EEE", "VVI", "VII"])
# Little work is done by NumPy, more by compiled kernels.
SIZES = pytest.mark.parametrize("n", [150, 6000], ids=["small", "large"])


def gappy(X, share=0.2, seed=1):
    """`X` with values missing at random, at least one left in each row."""
    rng = np.random.default_rng(seed)
    gaps = rng.random(X.shape) < share
    gaps[np.arange(len(X)), rng.integers(X.shape[1], size=len(X))] = False
    return np.where(gaps, np.nan, X)


# answers


@FORMS
@SIZES
def test_answers_are_those_of_the_formulas(name, n):
    X, labels = groups(n, d=3, k=2)
    weight = np.random.default_rng(3).uniform(0, 2, n)
    model = GaussianMixture(2, covariance_type=name, init_params=labels).fit(X, sample_weight=weight)
    few = X[:40]
    joint = log_joint(few, *theta(model))
    density = logsumexp(joint, axis=1)
    r = np.exp(joint - density[:, None])
    np.testing.assert_allclose(model.score_samples(few), density, rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(few), r, atol=1e-9)
    np.testing.assert_array_equal(model.predict(few), joint.argmax(axis=1))
    np.testing.assert_allclose(model.uncertainty(few), 1 - r.max(axis=1), atol=1e-9)
    np.testing.assert_allclose(model.entropy(few), entr(r).sum(axis=1), atol=1e-8)
    assert model.score(few) == pytest.approx(density.mean(), rel=1e-9)
    p, w = model.n_parameters_, weight[:40]
    assert model.aic(few) == pytest.approx(-2 * density.sum() + 2 * p, rel=1e-9)
    assert model.bic(few) == pytest.approx(-2 * density.sum() + p * np.log(40), rel=1e-9)
    assert model.icl(few) == pytest.approx(-2 * joint.max(axis=1).sum() + p * np.log(40), rel=1e-9)
    assert model.score(few, sample_weight=w) == pytest.approx(w @ density / w.sum(), rel=1e-9)
    assert model.aic(few, sample_weight=w) == pytest.approx(-2 * w @ density + 2 * p, rel=1e-9)
    assert model.bic(few, sample_weight=w) == pytest.approx(-2 * w @ density + p * np.log(w.sum()), rel=1e-9)
    assert model.icl(few, sample_weight=w) == pytest.approx(-2 * w @ joint.max(axis=1) + p * np.log(w.sum()), rel=1e-9)


@FORMS
@SIZES
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_attributes_belong_together(name, n, dtype):
    X = groups(n, d=3, k=2)[0].astype(dtype)
    weight = np.random.default_rng(3).uniform(0, 2, n)
    model = GaussianMixture(2, covariance_type=name, init_params="k-means++", random_state=0)
    labels = model.fit_predict(X, sample_weight=weight)
    rounding = 1e-9 if dtype == np.float64 else 1e-5
    np.testing.assert_array_equal(labels, model.labels_)
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_array_equal(labels, model.predict_proba(X).argmax(axis=1))
    assert labels.dtype == np.int32
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=rounding)
    assert model.weights_.sum() == pytest.approx(1, rel=rounding)
    assert model.log_likelihood_ == pytest.approx(weight @ model.score_samples(X).astype(float), rel=rounding)
    assert model.lower_bound_ == pytest.approx(model.score(X, sample_weight=weight), rel=rounding)
    assert model.history_.log_likelihood[-1] == model.log_likelihood_
    for attribute in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        assert getattr(model, attribute).dtype == dtype
    assert model.predict_proba(X).dtype == model.score_samples(X).dtype == dtype
    if model.means_.dtype == np.float64:
        factor = model.precisions_cholesky_
        again = factor @ factor.swapaxes(-1, -2) if name in ("VVV", "EEE") else factor**2
        np.testing.assert_allclose(again, model.precisions_, rtol=1e-12)


@pytest.mark.parametrize("name", ["VVV", "EEE", "VVI", "VII", "VEV", "EVE"])
def test_rows_drawn_from_a_mixture_are_fitted_by_that_mixture(name):
    X, labels = groups(300, d=3, k=2)
    model = GaussianMixture(2, covariance_type=name, init_params=labels, random_state=0).fit(X)
    rows, drawn = model.sample(40_000)
    assert rows.shape == (40_000, 3)
    again = GaussianMixture(2, covariance_type=name, init_params=drawn).fit(rows)
    off = 5 / np.sqrt(40_000 * model.weights_.min())  # five standard errors of a mean of unit variance
    np.testing.assert_allclose(again.weights_, model.weights_, atol=off)
    np.testing.assert_allclose(again.means_, model.means_, atol=off * np.sqrt(matrices(model.covariances_, 2, 3).max()))
    np.testing.assert_allclose(
        matrices(again.covariances_, 2, 3),
        matrices(model.covariances_, 2, 3),
        atol=3 * off * matrices(model.covariances_, 2, 3).max(),
    )


def test_a_sample_is_of_the_type_of_the_rows_and_drawn_by_the_random_state():
    X = groups(100, d=3, k=2)[0].astype(np.float32)
    model = GaussianMixture(2, random_state=3).fit(X)
    rows, labels = model.sample(7)
    assert rows.dtype == np.float32
    assert labels.shape == (7,)
    np.testing.assert_array_equal(model.sample(7)[0], rows)
    assert not np.array_equal(model.set_params(random_state=4).sample(7)[0], rows)


# one column


@pytest.mark.parametrize("name", ["E", "V", "full", "tied", "diag", "EVE"])
@pytest.mark.parametrize("unit", [1.0, 1e-12, 1e9])
def test_cdf_and_quantile_are_those_of_the_components_together(name, unit):
    rng = np.random.default_rng(2)
    X = np.r_[rng.normal(-2, 1, 80), rng.normal(3, 0.5, 40)][:, None] * unit
    model = GaussianMixture(2, covariance_type=name, random_state=0).fit(X)
    x = np.linspace(-6, 6, 25) * unit
    each = zip(model.weights_, model.means_[:, 0], np.sqrt(matrices(model.covariances_, 2, 1)[:, 0, 0]), strict=True)
    np.testing.assert_allclose(model.cdf(x), sum(p * norm(m, s).cdf(x) for p, m, s in each), rtol=1e-12)
    np.testing.assert_allclose(model.quantile(model.cdf(x)), x, rtol=1e-6, atol=1e-9 * unit)
    q = np.array([[0.001, 0.2, 0.5], [0.7, 0.9, 0.999]])
    assert model.quantile(q).shape == (2, 3)
    np.testing.assert_allclose(model.cdf(model.quantile(q)), q, rtol=1e-9)
    assert model.quantile([0.0, 1.0]).tolist() == [-np.inf, np.inf]
    assert np.ndim(model.quantile(0.3)) == np.ndim(model.cdf(0.3)) == 0


def test_quantiles_of_components_that_all_but_coincide_are_found():
    x = np.random.default_rng(0).normal(size=(200, 1))
    means = [[0.1], [0.1 + 1e-15], [0.1 - 1e-15]]
    model = GaussianMixture(
        3, covariance_type="E", means_init=means, precisions_init=np.ones(3), fixed=["means", "covariances", "weights"]
    ).fit(x)
    q = np.linspace(0.001, 0.999, 400)
    np.testing.assert_allclose(model.quantile(q), norm(0.1, 1).ppf(q), atol=1e-12)


def test_one_column_has_one_variance_or_one_each():
    x = np.r_[np.random.default_rng(2).normal(-3, 1, 80), np.random.default_rng(3).normal(3, 2, 40)][:, None]
    for alias, names, p in (("E", ("EII", "EEI", "EEE"), 4), ("V", ("VII", "VVI", "VVV", "VEV", "VVE"), 5)):
        fits = [
            GaussianMixture(2, covariance_type=name, init_params=(x[:, 0] > 0).astype(int)).fit(x)
            for name in (alias, *names)
        ]
        for other in fits:
            assert other.n_parameters_ == p
            assert other.log_likelihood_ == pytest.approx(fits[0].log_likelihood_, rel=1e-9)


# values that are missing


@FORMS
def test_a_table_without_gaps_is_fitted_the_same(name):
    X, labels = groups(400, d=3, k=2)
    plain, able = (
        GaussianMixture(2, covariance_type=name, init_params=labels, missing=missing).fit(X)
        for missing in ("error", "ignore")
    )
    np.testing.assert_allclose(able.means_, plain.means_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(able.covariances_, plain.covariances_, rtol=1e-10, atol=1e-12)
    assert able.n_iter_ == plain.n_iter_ > 1


@FORMS
def test_rows_with_gaps_have_the_density_of_what_is_there_and_it_never_falls(name):
    X, labels = groups(300, d=3, k=2)
    holes = gappy(X)
    model = GaussianMixture(2, covariance_type=name, missing="ignore", init_params=labels).fit(holes)
    joint = log_joint(holes, *theta(model))
    density = logsumexp(joint, axis=1)
    assert model.log_likelihood_ == pytest.approx(density.sum(), rel=1e-9)
    np.testing.assert_allclose(model.score_samples(holes), density, rtol=1e-8)
    np.testing.assert_allclose(model.predict_proba(holes), np.exp(joint - density[:, None]), atol=1e-8)
    np.testing.assert_array_equal(model.predict(holes), joint.argmax(axis=1))
    np.testing.assert_array_equal(model.labels_, model.predict(holes))
    objective = model.history_.lower_bound + model.history_.log_prior
    assert (np.diff(objective) >= -1e-9 * abs(objective[-1])).all()
    assert model.n_iter_ > 2


@pytest.mark.parametrize("init", ["auto", "kmeans", "k-means++", "random", "random_from_data", "hierarchical"])
def test_using_what_is_there_beats_filling_in_means(init):
    X, _ = groups(300, d=3, k=2)
    holes = gappy(X, share=0.4)
    filled = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
    able = GaussianMixture(2, missing="ignore", init_params=init, random_state=0).fit(holes)
    naive = GaussianMixture(2, missing="ignore", random_state=0).fit(filled)
    assert able.score(holes) > naive.score(holes)
    gaps = np.isnan(holes)
    off = np.abs((able.impute(holes) - X)[gaps]).mean()
    assert off < np.abs((filled - X)[gaps]).mean()


def test_gaps_are_filled_with_what_the_rest_of_the_row_says():
    X, labels = groups(200, d=3, k=2)
    holes = gappy(X)
    model = GaussianMixture(2, missing="ignore", init_params=labels).fit(holes)
    filled = model.impute(holes)
    np.testing.assert_array_equal(filled[~np.isnan(holes)], holes[~np.isnan(holes)])
    np.testing.assert_array_equal(model.impute(X), X)
    r = model.predict_proba(holes)
    for i in np.flatnonzero(np.isnan(holes).any(axis=1))[:20]:
        h, o = np.isnan(holes[i]), ~np.isnan(holes[i])
        expected = sum(
            p * (mean[h] + S[np.ix_(h, o)] @ np.linalg.solve(S[np.ix_(o, o)], holes[i, o] - mean[o]))
            for p, mean, S in zip(r[i], model.means_, matrices(model.covariances_, 2, 3), strict=True)
        )
        np.testing.assert_allclose(filled[i, h], expected, rtol=1e-8, atol=1e-8)


def test_a_single_row_with_a_gap_is_answered():
    X, labels = groups(200, d=3, k=2)
    model = GaussianMixture(2, missing="ignore", init_params=labels).fit(X)
    row = X[:1].copy()
    row[0, 1] = np.nan
    joint = log_joint(row, *theta(model))
    assert model.predict(row) == joint.argmax()
    assert model.score_samples(row)[0] == pytest.approx(logsumexp(joint), rel=1e-9)
    assert np.isfinite(model.impute(row)).all()


def test_a_row_or_column_of_missing_values_alone_is_rejected():
    X = gappy(groups(50, d=3, k=2)[0])
    nothing = X.copy()
    nothing[7] = np.nan
    with pytest.raises(InputError, match=r"row 7 of X is NaN in every column.*drop"):
        GaussianMixture(2, missing="ignore").fit(nothing)
    with pytest.raises(InputError, match=r"NaN in every row: column 3.*Drop"):
        GaussianMixture(2, missing="ignore").fit(np.c_[X, np.full(50, np.nan)])


# tables of every kind


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_fitted_like_arrays_and_their_columns_are_kept(library):
    frames = pytest.importorskip(library)
    X, labels = groups(150, d=3, k=2)
    frame = frames.DataFrame({name: X[:, j] for j, name in enumerate(("a", "b", "c"))})
    array, model = (GaussianMixture(2, init_params=labels).fit(rows) for rows in (X, frame))
    np.testing.assert_array_equal(model.means_, array.means_)
    np.testing.assert_array_equal(model.predict(frame), array.labels_)
    np.testing.assert_array_equal(model.predict_proba(frame), array.predict_proba(X))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 3
    assert not hasattr(array, "feature_names_in_")


@FORMS
@pytest.mark.parametrize("shift", [0.0, 1e4], ids=["near", "far"])
@SIZES
def test_single_precision_comes_close_to_double_near_and_far_from_the_origin(name, shift, n):
    X, labels = groups(n, d=3, k=2)
    single = (X / X.std(axis=0) + shift).astype(np.float32)
    wide, narrow = (
        GaussianMixture(2, covariance_type=name, init_params=labels).fit(single.astype(dtype))
        for dtype in (np.float64, np.float32)
    )
    np.testing.assert_allclose(narrow.weights_, wide.weights_, rtol=2e-3)
    np.testing.assert_allclose(narrow.means_ - shift, wide.means_ - shift, atol=2e-3)  # single precision of 1e4
    np.testing.assert_allclose(narrow.covariances_, wide.covariances_, rtol=5e-3, atol=1e-3)
    assert (narrow.labels_ == wide.labels_).mean() > 0.995
