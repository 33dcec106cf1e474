"""Methods that depend on the scale of rows or weights reject rows and weights out of range, and say why."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import GaussianMixture, KernelKMeans, MiniBatchKMeans, Mixture, TimeSeriesKMeans
from coterie.errors import InputError
from laws.scales import ROWS, WEIGHTS, K


@pytest.mark.parametrize(
    "call",
    [
        lambda X: MiniBatchKMeans(3).partial_fit(X),
        lambda X: KernelKMeans(3, kernel=lambda X, Y: X @ Y.T).fit(X),
        lambda X: Mixture(2, "poisson").fit(np.abs(X)),
    ],
)
def test_what_cannot_be_rescaled_says_so(call):
    with pytest.raises(InputError, match=r"X has values up to about 2\^-59\d: .* divide X by a power of two first"):
        call(np.ldexp(ROWS, -600))


def test_batches_after_a_fit_to_divided_rows_say_that_their_scale_is_unknown():
    model = GaussianMixture(3, random_state=0).partial_fit(np.ldexp(ROWS, -400))
    with pytest.raises(InputError, match="partial_fit cannot continue a fit whose rows or weights were rescaled"):
        model.partial_fit(ROWS)


@pytest.mark.parametrize("power", [-600, 600])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
def test_a_gamma_too_far_from_the_unit_of_the_rows_is_an_error(kernel, power):
    with pytest.raises(InputError, match=r"gamma=0.5 times products of rows, .* use gamma='scale'"):
        KernelKMeans(**K, kernel=kernel, gamma=0.5).fit(np.ldexp(ROWS, power))


@pytest.mark.parametrize("power", [-600, -512, -400, 600])
def test_a_gamma_too_far_from_the_unit_of_series_is_an_error(power):
    with pytest.raises(InputError, match="gamma=1 is too far from the squares of the series: set gamma"):
        TimeSeriesKMeans(3, metric="softdtw").fit(np.ldexp(ROWS, power))


def test_a_kernel_of_the_user_sees_rows_as_they_are_and_weights_of_any_scale():
    model = KernelKMeans(**K, kernel=lambda X, Y: np.exp(-np.abs(X[:, None] - Y).sum(axis=2)))
    plain, scaled = model.fit(ROWS, sample_weight=WEIGHTS).labels_, model.fit(ROWS, sample_weight=WEIGHTS * 2.0**900)
    np.testing.assert_array_equal(scaled.labels_, plain)
