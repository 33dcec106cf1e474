"""A family as a user writes it, in a few lines, on every engine."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
import pytest
from scipy import sparse, stats

from coterie import Mixture
from coterie.errors import InputError
from coterie.families import ExponentialFamily, Product
from many_parts import many_parts


class Chance(NamedTuple):
    p: np.ndarray  # (k, d)


class Geometric(ExponentialFamily):
    """Failures before the first success, columns independent."""

    by_column = takes_sparse = True
    support = "integers >= 0"

    def supports(self, values):
        return (values >= 0) & (values == np.floor(values))

    def natural(self, params):
        return np.log1p(-params.p)

    def log_normalizer(self, params):
        return -np.log(params.p)

    def from_means(self, mean):
        return Chance(np.clip(1 / (1 + mean), 1e-10, 1 - 1e-10))

    def draw(self, params, j, n, rng):
        return rng.geometric(params.p[j], (n, params.p.shape[1])) - 1.0


TRUTH = np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.8]])


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=3000)
    return rng.geometric(TRUTH[labels]) - 1.0, labels


def test_its_density_is_geometric(rows):
    X, _ = rows
    family = Geometric().fit(X)
    np.testing.assert_allclose(family.p_, 1 / (1 + X.mean(axis=0)))
    np.testing.assert_allclose(family.log_prob(X), stats.geom(family.p_, loc=-1).logpmf(X).sum(axis=1))
    np.testing.assert_allclose(family.sample(50_000, random_state=0).mean(axis=0), X.mean(axis=0), rtol=0.05)


@pytest.mark.whole_search
def test_engines_agree_and_the_truth_is_found(rows, monkeypatch):
    X, _ = rows
    many_parts(monkeypatch, X)
    threads = Mixture(2, Geometric(), random_state=0, n_jobs=3).fit(X)
    serial = Mixture(2, Geometric(), random_state=0, engine="serial").fit(X)
    np.testing.assert_array_equal(threads.components_.p, serial.components_.p)
    order = np.argsort(serial.components_.p[:, 0])
    np.testing.assert_allclose(serial.components_.p[order], TRUTH, atol=0.05)


def test_weights_known_rows_missing_values_sparse_rows_and_groups_come_for_free(rows):
    X, labels = rows
    times = np.random.default_rng(1).integers(1, 4, size=len(X))
    weighted = Mixture(2, Geometric(), init_params=labels).fit(X, sample_weight=times)
    repeated = Mixture(2, Geometric(), init_params=np.repeat(labels, times)).fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(weighted.components_.p, repeated.components_.p, rtol=1e-8)
    known = Mixture(2, Geometric()).fit(X, known_labels=labels)
    np.testing.assert_allclose(known.components_.p[1], 1 / (1 + X[labels == 1].mean(axis=0)))
    incomplete = X.copy()
    incomplete[::3, 0] = np.nan
    model = Mixture(2, Geometric(), missing="ignore").fit(incomplete, known_labels=labels)
    np.testing.assert_allclose(model.components_.p[0, 0], 1 / (1 + np.nanmean(incomplete[labels == 0, 0])))
    thin = Mixture(2, Geometric(), init_params=labels).fit(sparse.csr_array(X))
    dense = Mixture(2, Geometric(), init_params=labels).fit(X)
    assert thin.log_likelihood_ == pytest.approx(dense.log_likelihood_, rel=1e-10)
    grouped = Mixture(2, Product([(Geometric(), [0, 1]), ("poisson", [2])]), random_state=0).fit(X)
    assert set(grouped.components_) == {"Geometric", "poisson"}


def test_values_off_its_support_are_rejected(rows):
    with pytest.raises(InputError, match=r"Geometric does not support: column 0 \(1, such as -1\).*integers >= 0"):
        Mixture(1, Geometric()).fit([[-1.0], [2.0]])


class Rates(NamedTuple):
    rate: np.ndarray  # (k, d)


class Waiting(ExponentialFamily):
    """The exponential distribution, whose rate has the inverse unit of the rows."""

    by_column = True
    powers: ClassVar[dict[str, int]] = {"rate": -1}

    def natural(self, params):
        return -params.rate

    def log_normalizer(self, params):
        return -np.log(params.rate)

    def from_means(self, mean):
        return Rates(1.0 / mean)


def test_rows_out_of_range_are_rescaled_if_the_units_of_parameters_are_known():
    X = np.random.default_rng(2).exponential([[1.0, 30.0], [30.0, 1.0]] * 100)
    labels = np.arange(200) % 2
    plain = Mixture(2, Waiting(), init_params=labels).fit(X)
    large = Mixture(2, Waiting(), init_params=labels).fit(np.ldexp(X, 600))
    np.testing.assert_allclose(np.ldexp(large.components_.rate, 600), plain.components_.rate, rtol=1e-12)
    shift = X.size * 600 * np.log(2.0)
    assert large.log_likelihood_ == pytest.approx(plain.log_likelihood_ - shift, rel=1e-12)
