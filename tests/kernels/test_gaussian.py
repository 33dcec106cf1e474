"""The compiled EM kernels against their NumPy twin, on random, tiny, far, skewed and hostile rows."""

from __future__ import annotations

import platform
import tracemalloc

import numpy as np
import pytest
from test_vector_widths import narrow_registers, run

from coterie.kernels import cpu, plain
from coterie.kernels.plain import Gaussians
from loop_over import loop_over

FORMS = ["full", "tied", "diag", "spherical"]
TOLERANCE = {np.float64: 1e-10, np.float32: 1e-4}


def mixture(form, n, d, k, dtype=np.float64, shift=0.0, condition=10.0, seed=0):
    """Rows of a mixture, and components near those they were drawn from."""
    rng = np.random.default_rng(seed)
    deviations = np.geomspace(1.0, condition**-0.5, d)
    turns = np.linalg.qr(rng.normal(size=(k, d, d)))[0]
    means = 2.0 * rng.normal(size=(k, d)) * deviations + shift
    roots = turns * deviations if form in ("full", "tied") else np.eye(d) * deviations * np.ones((k, 1, 1))
    labels = rng.integers(k, size=n)
    X = (means[labels] + np.einsum("nij,nj->ni", roots[labels], rng.normal(size=(n, d)))).astype(dtype)
    covariances = np.einsum("kij,klj->kil", roots, roots)
    factors = np.linalg.inv(np.linalg.cholesky(covariances)).transpose(0, 2, 1)
    diagonals = 1.0 / np.sqrt(np.einsum("kii->ki", covariances))
    factor = {"full": factors, "tied": factors[0], "diag": diagonals, "spherical": diagonals.mean(axis=1)}[form]
    if form in ("full", "tied"):
        logs = np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
    else:
        logs = np.log(factor).sum(axis=1) if form == "diag" else d * np.log(factor)
    offset = np.log(rng.dirichlet(np.full(k, 5.0))) - 0.5 * d * np.log(2 * np.pi) + logs
    moved = means + 0.1 * rng.normal(size=means.shape) * deviations
    return X, Gaussians(form, offset, moved, factor, np.full(d, float(shift)))


def assert_same(found, wanted, rtol):
    """Sums agree relative to the largest of their kind."""
    for name, got, want in zip(wanted._fields, found, wanted, strict=True):
        assert np.shape(got) == np.shape(want), name
        reach = np.abs(want).max()
        if name == "sum_dx":  # differences from the means nearly cancel
            reach = np.sqrt(np.abs(wanted.sum_dxx).max() * wanted.weight.max())
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * reach, err_msg=name)


@loop_over("dtype", [np.float32, np.float64])
@loop_over("k", [1, 2, 5, 17])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 8, 13, 33])
@pytest.mark.parametrize("form", FORMS)
def test_sums_and_log_joints_are_those_of_numpy(form, d, k, dtype):
    for n in (1, 700):
        X, g = mixture(form, n, d, k, dtype)
        assert_same(cpu.em(X, None, g), plain.em(X, None, g), TOLERANCE[dtype])
        found, wanted = cpu.log_joint(X, g), plain.log_joint(X, g)
        assert found.dtype == wanted.dtype == dtype
        np.testing.assert_allclose(found, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@loop_over("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("e_step", ["soft", "hard", "stochastic"])
@loop_over("informed", [False, True])
@loop_over("weighted", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_every_e_step_with_weights_and_known_rows(form, weighted, informed, e_step, dtype):
    X, g = mixture(form, 1500, 5, 4, dtype)
    rng = np.random.default_rng(1)
    w = rng.exponential(size=len(X)) * (rng.random(len(X)) > 0.2) if weighted else None
    known = np.where(rng.random(len(X)) < 0.3, rng.integers(4, size=len(X)), -1) if informed else None
    u = rng.random(len(X)) if e_step == "stochastic" else None
    X, w, known, u = without_close_calls(g, X, w, known, u)
    assert_same(cpu.em(X, w, g, e_step, known, u), plain.em(X, w, g, e_step, known, u), TOLERANCE[dtype])


def without_close_calls(g, X, *others):
    """The rows that rounding cannot give to another component."""
    joint = plain.log_joint(X.astype(np.float64), g)
    r = np.exp(joint - joint.max(axis=1, keepdims=True))
    until = (r / r.sum(axis=1, keepdims=True)).cumsum(axis=1)
    best = np.sort(joint, axis=1)
    clear = best[:, -1] - best[:, -2] > 1e-4
    if others[-1] is not None:
        clear &= np.abs(until - others[-1][:, None]).min(axis=1) > 1e-5
    assert clear.mean() > 0.95
    return [X[clear]] + [None if a is None else a[clear] for a in others]


@pytest.mark.parametrize("form", FORMS)
def test_sums_add_up_over_chunks(form):
    X, g = mixture(form, 3000, 6, 5)
    w = np.random.default_rng(0).exponential(size=len(X))
    parts = [cpu.em(X[part], w[part], g) for part in (slice(0, 1), slice(1, 1234), slice(1234, 3000))]
    assert_same(plain.SoftSums(*map(sum, zip(*parts, strict=True))), cpu.em(X, w, g), 1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_a_weight_of_two_is_the_row_twice(form):
    X, g = mixture(form, 600, 3, 4)
    w = np.random.default_rng(0).integers(0, 4, size=len(X))
    assert_same(cpu.em(X, w.astype(float), g), cpu.em(np.repeat(X, w, axis=0), None, g), 1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_rows_far_from_zero_lose_nothing_where_the_origin_is_among_them(form):
    X, g = mixture(form, 2000, 7, 5, shift=1e4)
    centred = g._replace(means=g.means - 1e4, origin=g.origin - 1e4)
    assert_same(cpu.em(X, None, g), plain.em(X - 1e4, None, centred), 1e-10)


@pytest.mark.parametrize("form", ["full", "diag"])
def test_sums_are_about_the_means_and_not_the_means_as_float32_has_them(form):
    X, g = mixture(form, 4000, 3, 1, np.float32, shift=1000.0)
    far = g._replace(origin=np.zeros(3))
    found, wanted = cpu.em(X, None, far).sum_dx, plain.em(X, None, far).sum_dx
    rounding = len(X) * np.abs(g.means - g.means.astype(np.float32)).max()
    np.testing.assert_allclose(found, wanted, atol=0.01 * rounding)


@pytest.mark.parametrize("form", FORMS)
def test_components_far_apart_keep_their_spread(form):
    X, g = mixture(form, 5000, 4, 3, np.float32)
    apart = np.random.default_rng(1).normal(size=g.means.shape) * 1000
    labels = plain.log_joint(X, g).argmax(axis=1)
    X, g = (X + apart[labels]).astype(np.float32), g._replace(means=g.means + apart)
    found, wanted = cpu.em(X, None, g), plain.em(X, None, g)
    np.testing.assert_allclose(found.sum_dxx, wanted.sum_dxx, rtol=1e-4, atol=1e-4 * np.abs(wanted.sum_dxx).max())


@pytest.mark.parametrize("dtype, rtol", [(np.float32, 2e-3), (np.float64, 1e-9)])
@pytest.mark.parametrize("form", FORMS)
def test_a_condition_of_a_million(form, dtype, rtol):
    X, g = mixture(form, 2000, 9, 3, dtype, condition=1e6)
    found, wanted = cpu.em(X, None, g), plain.em(X, None, g)
    assert_same(found, wanted, rtol)
    if form in ("full", "tied"):
        np.testing.assert_allclose(found.sum_dxx, np.swapaxes(found.sum_dxx, -1, -2), rtol=0)
        assert np.linalg.eigvalsh(found.sum_dxx).min() > 0


@pytest.mark.parametrize("e_step", ["soft", "hard", "stochastic"])
@pytest.mark.parametrize("form", FORMS)
def test_a_component_without_weight_gets_none(form, e_step):
    X, g = mixture(form, 500, 4, 5)
    g.offset[4] = -np.inf
    u = np.random.default_rng(0).random(len(X)) if e_step == "stochastic" else None
    found = cpu.em(X, None, g, e_step, None, u)
    assert_same(found, plain.em(X, None, g, e_step, None, u), 1e-10)
    assert found.weight[4] == 0
    assert np.all(cpu.log_joint(X, g)[:, 4] == -np.inf)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", FORMS)
def test_an_outlier_beyond_every_density_has_a_likelihood_all_the_same(form, dtype):
    X, g = mixture(form, 300, 3, 4, dtype)
    X[17] = 1e5
    found, wanted = cpu.em(X, None, g), plain.em(X, None, g)
    assert np.isfinite(found.log_likelihood)
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-4)
    assert found.weight.sum() == pytest.approx(300)


@pytest.mark.parametrize("e_step", ["soft", "hard"])
@pytest.mark.parametrize("form", FORMS)
def test_rows_whose_squares_overflow_are_done_in_float64(form, e_step):
    X, g = mixture(form, 3000, 3, 4, np.float32)
    X[17] = 1e25
    found = cpu.em(X, None, g, e_step)
    assert_same(found, plain.em(X, None, g, e_step), 1e-6)
    assert all(np.isfinite(part).all() for part in found)
    joint = cpu.log_joint(X, g)
    assert joint.dtype == np.float64  # those of float32 would be minus infinity for all components
    np.testing.assert_allclose(joint, plain.log_joint(X.astype(np.float64), g), rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-25, 1e25])
@pytest.mark.parametrize("form", FORMS)
def test_any_scale_will_do(form, scale):
    X, g = mixture(form, 1000, 3, 4)
    base = plain.em(X, None, g)
    moved = g._replace(means=g.means * scale, factor=g.factor / scale, origin=g.origin * scale)
    found = cpu.em((X * scale).astype(np.float32), None, moved)
    scaled = base._replace(sum_dx=base.sum_dx * scale, sum_dxx=base.sum_dxx * scale**2)
    assert_same(found, scaled, 1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_memory_does_not_grow_with_the_rows(form):
    X, g = mixture(form, 20000, 8, 40)
    cpu.em(X, None, g)
    tracemalloc.start()
    cpu.em(X, None, g)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.15 * X.nbytes


def test_shapes_and_types_may_alternate_on_one_thread():
    for form, d, k, dtype in [("full", 5, 3, np.float64), ("diag", 2, 9, np.float32), ("full", 5, 3, np.float64)]:
        X, g = mixture(form, 100, d, k, dtype)
        assert_same(cpu.em(X, None, g), plain.em(X, None, g), TOLERANCE[dtype])


PROGRAM = """
import numpy as np
from test_gaussian import FORMS, TOLERANCE, assert_same, mixture
from coterie.kernels import cpu, plain
from coterie.kernels.cpu.vectors import REGISTER
assert REGISTER == {register}, REGISTER
for dtype in (np.{dtype},):
    for form in FORMS:
        for d, k in ((1, 1), (5, 3), (19, 6)):
            X, g = mixture(form, 300, d, k, dtype, shift=100)
            assert_same(cpu.em(X, None, g), plain.em(X, None, g), TOLERANCE[dtype])
            joint, wanted = cpu.log_joint(X, g), plain.log_joint(X, g)
            np.testing.assert_allclose(joint, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names x86 processors")
@narrow_registers("sse", "float64")
def test_narrow_registers_give_the_same_sums(width, dtype):
    run(PROGRAM, width, dtype)
