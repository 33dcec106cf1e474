"""Mixtures, fuzzy and spherical clusters and mini-batches on a device, with CPU tensors in place of a GPU."""

import numpy as np
import pytest
from sklearn.base import clone

from coterie import (
    BayesianGaussianMixture,
    FuzzyCMeans,
    GaussianMixture,
    KMeans,
    MiniBatchKMeans,
    Mixture,
    SphericalKMeans,
)
from coterie.errors import ParameterError
from coterie.families.structures import STRUCTURES
from coterie.kernels import plain
from coterie.kernels.plain.gaussian import Gaussians, posterior
from coterie.selection import sweep

torch = pytest.importorskip("torch", reason="rows on a device need PyTorch: pip install 'coterie[gpu]'")

from coterie.data import tensors  # noqa: E402
from coterie.kernels import cuda  # noqa: E402
from coterie.kernels.cuda import posteriors, products  # noqa: E402

rng = np.random.default_rng(0)
GROUPS = rng.integers(3, size=300)
X = rng.normal(size=(300, 3)) + 3 * rng.normal(size=(3, 3))[GROUPS] + 20
COUNTS = rng.poisson(np.array([1.0, 4.0, 9.0])[GROUPS][:, None] * [1, 2, 3]).astype(float)
ROWS = {
    "poisson": COUNTS,
    "multinomial": COUNTS + np.array([1, 0, 0]),
    "bernoulli": (COUNTS > 3).astype(float),
    "categorical": np.minimum(COUNTS, 5) * 2,
    "exponential": COUNTS + 0.5,
    "gamma": COUNTS + 0.5,
    "von_mises_fisher": X,
    "student_t": X,
    "gaussian": X,
}


@pytest.fixture(autouse=True)
def device(monkeypatch):
    """The CPU takes the place of the GPU, and rows are in two parts."""
    monkeypatch.setattr(tensors, "DEVICE", "cpu")
    monkeypatch.setattr(tensors, "device_problem", lambda: "")
    monkeypatch.setattr(tensors, "PART_ROWS", 150)


def on_cpu(array):
    return cuda.DeviceArray(torch.from_numpy(np.ascontiguousarray(array)))


def fits(estimator, rows=X, **options):
    return [estimator.set_params(device=device).fit(rows, **options).__dict__.copy() for device in ("cpu", "cuda")]


@pytest.mark.parametrize("structure", STRUCTURES)
def test_every_covariance_structure_is_fitted_on_a_device(structure):
    model = GaussianMixture(3, covariance_type=structure, init_params=GROUPS, max_iter=30)
    cpu, gpu = fits(model)
    np.testing.assert_array_equal(gpu["labels_"], cpu["labels_"])
    np.testing.assert_allclose(gpu["covariances_"], cpu["covariances_"], rtol=1e-6, atol=1e-8)
    assert gpu["log_likelihood_"] == pytest.approx(cpu["log_likelihood_"], rel=1e-9)
    results = [getattr(model, name)(X) for name in ("predict_proba", "score_samples", "entropy", "score", "bic", "icl")]
    model.set_params(device="cpu")
    expected = [
        getattr(model, name)(X) for name in ("predict_proba", "score_samples", "entropy", "score", "bic", "icl")
    ]
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:Mixture did not converge")
@pytest.mark.parametrize("family", ROWS)
def test_every_family_is_fitted_on_a_device(family):
    w = rng.integers(0, 3, size=300).astype(float)
    known = np.where(np.arange(300) < 30, GROUPS, -1)
    model = Mixture(3, family, init_params=GROUPS, max_iter=20)
    cpu, gpu = fits(model, ROWS[family], sample_weight=w, known_labels=known)
    np.testing.assert_array_equal(gpu["labels_"], cpu["labels_"])
    np.testing.assert_allclose(gpu["weights_"], cpu["weights_"], rtol=1e-7)
    assert gpu["log_likelihood_"] == pytest.approx(cpu["log_likelihood_"], rel=1e-9)
    densities = model.score_samples(ROWS[family])
    np.testing.assert_allclose(model.set_params(device="cpu").score_samples(ROWS[family]), densities, rtol=1e-8)


@pytest.mark.parametrize("options", [{"e_step": "hard"}, {"e_step": "stochastic", "max_iter": 4}, {"accelerate": True}])
def test_other_steps_of_em_run_on_a_device(options):
    cpu, gpu = fits(GaussianMixture(3, init_params=GROUPS, random_state=0, **options))
    # the random numbers of a stochastic step belong to parts, which are other ones on a device
    tolerance = 1e-1 if "stochastic" in options.values() else 1e-8
    np.testing.assert_allclose(gpu["means_"], cpu["means_"], rtol=tolerance)


@pytest.mark.parametrize("form", ["full", "tied", "diag", "spherical"])
def test_bayesian_mixtures_are_fitted_on_a_device(form):
    cpu, gpu = fits(BayesianGaussianMixture(4, covariance_type=form, init_params=GROUPS))
    np.testing.assert_allclose(gpu["counts_"], cpu["counts_"], rtol=1e-6, atol=1e-6)
    assert gpu["lower_bound_"] == pytest.approx(cpu["lower_bound_"], rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [SphericalKMeans, FuzzyCMeans])
def test_spherical_and_fuzzy_clusters_are_fitted_on_a_device(kind, weighted):
    w = rng.integers(1, 3, size=300).astype(float) if weighted else None
    cpu, gpu = fits(kind(3, init=X[:3]), sample_weight=w)
    np.testing.assert_array_equal(gpu["labels_"], cpu["labels_"])
    np.testing.assert_allclose(gpu["cluster_centers_"], cpu["cluster_centers_"], rtol=1e-9)
    model = kind(3, random_state=0, device="cuda").fit(X, sample_weight=w)  # with the search
    np.testing.assert_allclose(model.transform(X), model.set_params(device="cpu").transform(X), rtol=1e-9, atol=1e-12)


def test_mini_batches_are_drawn_on_a_device():
    cpu, gpu = fits(MiniBatchKMeans(3, batch_size=50, max_iter=5, random_state=0))
    np.testing.assert_allclose(gpu["cluster_centers_"], cpu["cluster_centers_"], rtol=1e-9)
    np.testing.assert_array_equal(gpu["labels_"], cpu["labels_"])
    cpu, gpu = (MiniBatchKMeans(3, random_state=0, device=device) for device in ("cpu", "cuda"))
    for batch in np.split(X, 3):
        np.testing.assert_allclose(
            cpu.partial_fit(batch).cluster_centers_, gpu.partial_fit(batch).cluster_centers_, rtol=1e-9
        )
    mixture = GaussianMixture(3, init_params=GROUPS[:150], device="cuda").partial_fit(X[:150]).partial_fit(X[150:])
    other = GaussianMixture(3, init_params=GROUPS[:150]).partial_fit(X[:150]).partial_fit(X[150:])
    np.testing.assert_allclose(mixture.means_, other.means_, rtol=1e-8)


@pytest.mark.parametrize("options", [{"missing": "ignore"}, {"checkpoint": "fit.ckpt"}])
def test_options_of_mixtures_that_need_main_memory_are_rejected_by_name(options):
    (name, value), *_ = options.items()
    with pytest.raises(ParameterError, match=f"{name}={value!r} is not supported on a GPU: use {name}="):
        GaussianMixture(2, device="cuda", **options).fit(X)
    with pytest.raises(ParameterError, match="fit_trace is not supported on a GPU"):
        GaussianMixture(2, device="cuda").fit_trace(X)


@pytest.mark.parametrize("form", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("e_step", ["soft", "hard", "stochastic"])
def test_sums_of_gaussians_are_those_of_numpy(form, e_step, monkeypatch):
    monkeypatch.setattr("coterie.kernels.cuda.gaussian.BLOCK", 1)  # blocks of 256 rows
    k, d = 4, 3
    means = rng.normal(size=(k, d)) + 20
    shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[form]
    factor = np.abs(rng.normal(size=shape)) + 0.5
    g = Gaussians(form, rng.normal(size=k), means, np.triu(factor) if form in ("full", "tied") else factor, means[0])
    known, u, w = rng.integers(-1, k, size=300), rng.random(300), rng.random(300)
    for values in ((None, None), (w, known)):
        expected = plain.em(X, values[0], g, e_step, values[1], u)
        for a, b in zip(cuda.em(on_cpu(X), values[0], g, e_step, values[1], u), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(np.asarray(cuda.log_joint(on_cpu(X), g)), plain.log_joint(X, g), rtol=1e-10)
    resp = rng.random((300, k))
    for a, b in zip(cuda.weighted_sums(on_cpu(X), resp, g), plain.weighted_sums(X, resp, g), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("m", [1.05, 2.0, 20.0])
def test_sums_and_memberships_of_fuzzy_clusters_are_those_of_numpy(m):
    centers, w = np.concatenate([X[:2], X[:1] + 3]), rng.random(300)  # two rows are at a center
    for weights in (None, w):
        for a, b in zip(cuda.fuzzy(on_cpu(X), weights, centers, m), plain.fuzzy(X, weights, centers, m), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8 * np.abs(b).max())
    expected = plain.memberships(X, centers, m)
    np.testing.assert_allclose(np.asarray(cuda.memberships(on_cpu(X), centers, m)), expected, rtol=1e-8, atol=1e-300)


@pytest.mark.parametrize("e_step", ["soft", "hard", "stochastic"])
def test_posteriors_and_products_are_those_of_numpy(e_step):
    scores, offset, u = rng.normal(size=(300, 4)), rng.normal(size=4), rng.random(300)
    scores[5] = scores[5, 0]  # of equally probable components, the first is chosen
    offset[1] = -np.inf
    resp, likelihood, bound = posteriors.posteriors(on_cpu(scores), offset, None, e_step, None, u)
    expected, per_row, bounds = posterior(scores + offset, e_step, None, u)
    np.testing.assert_allclose(np.asarray(resp), expected, rtol=1e-12)
    assert (likelihood, bound) == pytest.approx((per_row.sum(), bounds.sum()))
    table = rng.normal(size=(4, 3))
    np.testing.assert_allclose(np.asarray(products.products(on_cpu(X), table)), X @ table.T)
    np.testing.assert_allclose(products.weighted_sums(on_cpu(X), expected), expected.T @ X)


@pytest.mark.parametrize(
    "estimator",
    [
        KMeans(random_state=0),
        SphericalKMeans(random_state=0, search="none"),
        FuzzyCMeans(random_state=0, search="none"),
        MiniBatchKMeans(random_state=0, batch_size=100, max_iter=3),
        GaussianMixture(random_state=0, init_params="k-means++"),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_sweeps_run_on_a_device(estimator):
    cpu, gpu = (sweep(clone(estimator).set_params(device=device), X, [2, 3]) for device in ("cpu", "cuda"))
    assert len(np.unique(gpu.labels[1])) == 3
    for model, other in zip(gpu.models, cpu.models, strict=True):
        assert gpu_score(model) >= gpu_score(other) - 0.05 * abs(gpu_score(other))  # random starts differ


def gpu_score(model):
    return model.set_params(device="cpu").score(X)
