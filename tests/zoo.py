"""One instance of every model, with rows to fit, and the engines: the tests of `tests/laws` run over all of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from coterie.core.stats import Stats
from coterie.data.memory import MemorySource
from coterie.distances.windows import Itakura, SakoeChiba
from coterie.engines.local import Serial, Threads
from coterie.families import Bernoulli, Categorical, DirichletPrior, GammaPrior, Gaussian, Multinomial, Poisson, Product
from coterie.families.normal_prior import Prior, as_penalty
from coterie.families.structures import as_structure
from coterie.kmeans.dtw_lloyd import DTWLloyd
from coterie.kmeans.fuzzy_c_means import Fuzzy
from coterie.kmeans.kernel_functions import Linear, Rbf
from coterie.kmeans.kernel_lloyd import KernelLloyd
from coterie.kmeans.lloyd import Lloyd
from coterie.kmeans.median_models import Euclidean, Manhattan
from coterie.kmeans.missing_lloyd import MissingLloyd
from coterie.kmeans.spherical_kmeans import Spherical, unit_rows
from coterie.mixture.dirichlet_process import DirichletProcess, PosteriorFamily, with_conjugate_prior
from coterie.mixture.family_em import MixtureEM
from coterie.mixture.gaussian_em import GaussianEM
from coterie.mixture.starts import Start
from coterie.mixture.variational import Dirichlet, NormalWishart, StickBreaking, VariationalGaussians
from families.cases import learned

rng = np.random.default_rng(0)


def blobs(n, d, k, spread=3.0, dtype=np.float64):
    centers = rng.normal(size=(k, d)) * spread
    return (centers[rng.integers(k, size=n)] + rng.normal(size=(n, d))).astype(dtype)


SMALL = blobs(1200, 3, 3, spread=6.0)  # for NumPy kernels
LARGE = blobs(6000, 30, 20, spread=0.5)  # for compiled kernels, in parts of 1500 rows
FEW = SMALL[:600].copy()  # for models that use all pairs of rows
COUNTS = sparse.random_array((4000, 60), density=0.1, rng=rng, format="csr") * 10.0

HOLES = np.where(rng.random(SMALL.shape) < 0.1, np.nan, SMALL)
HOLES = HOLES[~np.isnan(HOLES).all(axis=1)]
MANY_HOLES = np.where(np.random.default_rng(1).random(LARGE.shape) < 0.3, np.nan, LARGE)

_waves = np.random.default_rng(2)
WAVES = np.sin(np.linspace(0, 6, 18) * _waves.integers(1, 4, size=(160, 1)) + _waves.normal(0, 0.5, (160, 1)))
WAVES += _waves.normal(0, 0.3, WAVES.shape)
RAGGED = np.where(np.arange(18) < 18 - 2 * _waves.integers(0, 4, size=(160, 1)), WAVES, np.nan)


def observed(k, X, start="k-means++", **options):
    """K-means for rows with missing values like `X`, as the estimator would construct it."""
    return MissingLloyd(k, start, bounds=False, fill=np.nanmean(X, axis=0), **options)


def mixture(k, structure, X, start="k-means++", reg_covar=1e-6, prior=None, **options):
    """A Gaussian mixture for rows like `X`, as the estimator would construct it."""
    mean, variance = np.nanmean(X, axis=0, dtype=np.float64), np.nanvar(X, axis=0, dtype=np.float64)
    return GaussianEM(
        k,
        as_structure(structure),
        as_penalty(prior, reg_covar, k, mean, variance),
        origin=mean,
        unit=np.sqrt(variance),
        start=Start(start),
        precision=float(np.finfo(X.dtype).eps),
        **options,
    )


def bayesian(k, form, X, mixing, start="kmeans"):
    """A variational Gaussian mixture for rows like `X`."""
    plain = mixture(k, form, X, start)
    component_prior = NormalWishart(form, plain.origin, 1.0, float(X.shape[1]), plain.unit**2)
    return VariationalGaussians(**vars(plain), mixing=mixing, component_prior=component_prior)


def family_mixture(k, family, X, start="k-means++", has_missing=False, **options):
    """A mixture of that family for rows like `X`, as the estimator would construct it."""
    return MixtureEM(k, learned(family, X, has_missing), start=Start(start), **options)


def process(k, family, X, start="k-means++", has_missing=False):
    """A Dirichlet process of that family for rows like `X`, with `k` components at first."""
    posterior = PosteriorFamily(with_conjugate_prior(learned(family, X, has_missing)))
    return DirichletProcess(k, posterior, start=Start(start), sticks=StickBreaking(0.7))


def drawn_of(draw, params, n, seed=3):
    """Rows of a mixture whose components have these parameters (k, ...)."""
    chance = np.random.default_rng(seed)
    return draw(chance, params[chance.integers(len(params), size=n)]).astype(np.float64)


_tastes = np.random.default_rng(4)
EVENTS = drawn_of(lambda rng, p: rng.poisson(p), _tastes.gamma(1.0, 4.0, (4, 6)), 1500)
MANY_EVENTS = drawn_of(lambda rng, p: rng.poisson(p), _tastes.gamma(2.0, 2.0, (8, 20)), 6000)
ANSWERS = drawn_of(lambda rng, p: rng.random(p.shape) < p, _tastes.beta(0.6, 0.6, (4, 12)), 4000)
TEXTS = sparse.csr_array(drawn_of(lambda rng, p: rng.multinomial(25, p), _tastes.dirichlet(np.full(80, 0.1), 5), 4000))
KINDS = drawn_of(lambda rng, p: rng.binomial(3, p), _tastes.beta(0.5, 0.5, (4, 9)), 4000)
LOST_EVENTS = np.where(_tastes.random(EVENTS.shape) < 0.2, np.nan, EVENTS)
LOST_EVENTS = LOST_EVENTS[~np.isnan(LOST_EVENTS).all(axis=1)]
MIXED = np.column_stack([EVENTS, KINDS[:1500, :4], ANSWERS[:1500, :2]])
LOST_KINDS = np.where(_tastes.random(KINDS.shape) < 0.2, np.nan, KINDS)
TABLE = Product([("poisson", range(6)), ("categorical", range(6, 10)), ("bernoulli", [10, 11])])

SINGLE = LARGE.astype(np.float32)
SMALL_STRUCTURES = ("VVV", "EEE", "VVI", "VII", "VEV", "EVE")
LARGE_STRUCTURES = ("VVV", "EEE", "EEI", "EII")
PRIOR = Prior(concentration=3.0, shrinkage=2.0)


_INITIAL = {}


def initial_params(model, X, part_rows):
    """Parameters from which a fit of the model starts, computed once for all tests."""
    key = id(model), id(X)
    if key not in _INITIAL:
        _INITIAL[key] = model.init(MemorySource(X, chunk_rows=part_rows), Serial(), np.random.default_rng(1))
    return _INITIAL[key]


def leaves(params):
    """The arrays and numbers in nested tuples and statistics."""
    if isinstance(params, tuple | Stats):
        return [leaf for each in (params if isinstance(params, tuple) else params.leaves()) for leaf in leaves(each)]
    return [] if params is None else [params]


# model, rows, rows of a part
MIXTURES = [
    *(pytest.param(mixture(3, name, SMALL), SMALL, 300, id=f"gaussian-{name}-small") for name in SMALL_STRUCTURES),
    *(pytest.param(mixture(8, name, LARGE), LARGE, 6000, id=f"gaussian-{name}") for name in LARGE_STRUCTURES),
    pytest.param(mixture(8, "VVV", SINGLE), SINGLE, 6000, id="gaussian-VVV-float32"),
    pytest.param(mixture(3, "VVV", SMALL, e_step_kind="hard"), SMALL, 300, id="gaussian-hard"),
    pytest.param(mixture(3, "VVV", HOLES, missing=True), HOLES, 600, id="gaussian-missing"),
    pytest.param(mixture(3, "EEE", HOLES, missing=True), HOLES, 600, id="gaussian-missing-tied"),
    pytest.param(mixture(3, "VVV", SMALL, prior=PRIOR), SMALL, 300, id="gaussian-prior"),
    pytest.param(mixture(3, "VEV", SMALL, "random_from_data"), SMALL, 300, id="gaussian-random-from-data"),
]
BAYESIAN = [
    pytest.param(bayesian(5, "full", SMALL, StickBreaking(0.2)), SMALL, 300, id="bayesian-full-small"),
    pytest.param(bayesian(5, "tied", SMALL, Dirichlet(0.2)), SMALL, 300, id="bayesian-tied-small"),
    pytest.param(bayesian(5, "diag", SMALL, StickBreaking(2.0), "random"), SMALL, 300, id="bayesian-diag-small"),
    pytest.param(bayesian(5, "spherical", SMALL, Dirichlet(0.01)), SMALL, 300, id="bayesian-spherical-small"),
    pytest.param(bayesian(8, "full", LARGE, StickBreaking(0.2)), LARGE, 6000, id="bayesian-full"),
    pytest.param(bayesian(8, "diag", SINGLE, Dirichlet(0.2)), SINGLE, 6000, id="bayesian-diag-float32"),
]
FAMILIES = [
    pytest.param(family_mixture(4, Poisson(), EVENTS), EVENTS, 300, id="poisson-small"),
    pytest.param(family_mixture(8, Poisson(), MANY_EVENTS), MANY_EVENTS, 3000, id="poisson"),
    pytest.param(family_mixture(8, Poisson(), MANY_EVENTS), MANY_EVENTS.astype(np.float32), 3000, id="poisson-float32"),
    pytest.param(family_mixture(4, Poisson(), EVENTS, e_step_kind="hard"), EVENTS, 300, id="poisson-hard"),
    pytest.param(family_mixture(4, Poisson(GammaPrior(2.0, 1.0)), EVENTS), EVENTS, 300, id="poisson-prior"),
    pytest.param(family_mixture(3, Poisson(), LOST_EVENTS, has_missing=True), LOST_EVENTS, 600, id="poisson-missing"),
    pytest.param(family_mixture(4, Bernoulli(), ANSWERS, "random_from_data"), ANSWERS, 1000, id="bernoulli"),
    pytest.param(family_mixture(5, Multinomial(), TEXTS), TEXTS, 1000, id="multinomial-sparse"),
    pytest.param(
        family_mixture(5, Multinomial(DirichletPrior(1.2)), TEXTS, concentration=2.0),
        TEXTS,
        2000,
        id="multinomial-prior",
    ),
    pytest.param(family_mixture(4, Categorical(), KINDS), KINDS, 1000, id="categorical"),
    pytest.param(
        family_mixture(4, Categorical(), LOST_KINDS, has_missing=True), LOST_KINDS, 1000, id="categorical-missing"
    ),
    pytest.param(family_mixture(4, TABLE, MIXED), MIXED, 500, id="product"),
]
PROCESSES = [
    pytest.param(process(5, Gaussian(), SMALL), SMALL, 300, id="process-gaussian"),
    pytest.param(process(5, Gaussian("diag"), HOLES, has_missing=True), HOLES, 300, id="process-gaussian-missing"),
    pytest.param(process(6, Poisson(), EVENTS), EVENTS, 300, id="process-poisson"),
    pytest.param(process(6, Multinomial(), TEXTS), TEXTS, 1000, id="process-multinomial-sparse"),
    pytest.param(process(6, Categorical(), KINDS, "random_from_data"), KINDS, 1000, id="process-categorical"),
]
MODELS = [
    pytest.param(Lloyd(3), SMALL, 100, id="kmeans-small"),
    pytest.param(Lloyd(20, bounds=False), LARGE, 1500, id="kmeans"),
    pytest.param(Lloyd(20), LARGE, 1500, id="kmeans-bounds"),
    pytest.param(Lloyd(20), LARGE.astype(np.float32), 1500, id="kmeans-bounds-float32"),
    pytest.param(Lloyd(4), LARGE.astype(np.float32), 1500, id="kmeans-few-clusters"),
    pytest.param(Lloyd(5), LARGE[:, :2].copy(), 6000, id="kmeans-few-columns"),
    pytest.param(Lloyd(6), COUNTS, 1000, id="kmeans-sparse"),
    pytest.param(Lloyd(8, "forgy"), SMALL, 100, id="kmeans-forgy"),
    pytest.param(Lloyd(8, "random_partition"), LARGE, 1500, id="kmeans-random-partition"),
    pytest.param(Lloyd(8, "farthest"), LARGE, 1500, id="kmeans-farthest"),
    pytest.param(Lloyd(8, "k-means||"), LARGE, 1500, id="kmeans-scalable"),
    pytest.param(Lloyd(4, frozen=SMALL[:1]), SMALL, 100, id="kmeans-frozen-small"),
    pytest.param(Lloyd(20, frozen=LARGE[:1]), LARGE, 1500, id="kmeans-frozen"),
    pytest.param(observed(3, HOLES), HOLES, 100, id="kmeans-missing-small"),
    pytest.param(observed(4, HOLES, "farthest", frozen=SMALL[:1]), HOLES, 100, id="kmeans-missing-frozen"),
    pytest.param(observed(20, MANY_HOLES), MANY_HOLES, 6000, id="kmeans-missing"),
    pytest.param(observed(7, MANY_HOLES, "forgy"), MANY_HOLES.astype(np.float32), 6000, id="kmeans-missing-float32"),
    pytest.param(Spherical(4), unit_rows(SMALL), 100, id="spherical-small"),
    pytest.param(Spherical(20), unit_rows(LARGE), 1500, id="spherical"),
    pytest.param(Spherical(20), unit_rows(SINGLE), 1500, id="spherical-float32"),
    pytest.param(Spherical(6), unit_rows(COUNTS), 1000, id="spherical-sparse"),
    pytest.param(Fuzzy(3), SMALL, 100, id="fuzzy-small"),
    pytest.param(Fuzzy(20, m=1.3), LARGE, 1500, id="fuzzy"),
    pytest.param(Fuzzy(7), LARGE, 1500, id="fuzzy-squares"),
    pytest.param(Fuzzy(7, m=1.3), SINGLE, 1500, id="fuzzy-float32"),
    pytest.param(Fuzzy(5, m=1.01), LARGE[:, :2].copy(), 6000, id="fuzzy-almost-hard"),
    pytest.param(Fuzzy(5, m=60.0), LARGE[:, :2].copy(), 6000, id="fuzzy-very"),
    pytest.param(Fuzzy(8, "random_partition", m=2.5), SMALL, 100, id="fuzzy-random-partition"),
    pytest.param(Manhattan(3), SMALL, 300, id="medians-small"),
    pytest.param(Manhattan(20), LARGE, 6000, id="medians"),
    pytest.param(Manhattan(9), SINGLE, 6000, id="medians-float32"),
    pytest.param(Euclidean(3), SMALL, 300, id="geometric-medians-small"),
    pytest.param(Euclidean(20), LARGE, 6000, id="geometric-medians"),
    pytest.param(Euclidean(9, "random_partition"), SINGLE, 6000, id="geometric-medians-float32"),
    pytest.param(KernelLloyd(5, Rbf(SMALL.mean(axis=0), 0.02)), FEW, 300, id="kernel-rbf"),
    pytest.param(KernelLloyd(5, Linear(SMALL.mean(axis=0), 4.0), "random_partition"), FEW, 300, id="kernel-linear"),
    pytest.param(KernelLloyd(6, Rbf(None, 0.002)), SINGLE[:600].copy(), 300, id="kernel-rbf-float32"),
    pytest.param(DTWLloyd(3), WAVES, 80, id="series"),
    pytest.param(DTWLloyd(4, "forgy", window=SakoeChiba(3), steps=3), RAGGED, 80, id="series-ragged"),
    pytest.param(
        DTWLloyd(4, channels=2, window=Itakura()), RAGGED.astype(np.float32), 80, id="series-channels-float32"
    ),
    pytest.param(DTWLloyd(3, gamma=0.5, window=SakoeChiba(2)), WAVES[:80].copy(), 80, id="series-soft"),
    *MIXTURES,
    *BAYESIAN,
    *FAMILIES,
    *PROCESSES,
]

ENGINES = [pytest.param(Threads(8), id="8-threads")]  # beside `Serial`
