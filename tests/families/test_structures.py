"""Laws of the fourteen covariance structures: the constraints hold, and nothing that obeys them is likelier."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import ortho_group

from coterie.errors import ParameterError
from coterie.families.structures import ALIASES, STRUCTURES, Structure, as_structure, covariances
from loop_over import loop_over

NAMES = list(STRUCTURES)
SIZES = [(2, 2), (3, 2), (2, 3), (3, 3)]  # (k, d)
RANK = {"I": 0, "E": 1, "V": 2}  # each letter allows what those before it allow
NESTED = [
    (a, b) for a, b in itertools.permutations(NAMES, 2) if all(RANK[x] <= RANK[y] for x, y in zip(a, b, strict=True))
]


def problem(k, d, seed=0, batch=(), rows=12):
    """Weights (..., k), and scatters (..., k, d, d) of components that differ in all respects."""
    rng = np.random.default_rng([seed, k, d])
    mix = np.eye(d) + 0.4 * rng.normal(size=(*batch, k, d, d))
    X = rng.normal(size=(*batch, k, rows, d)) * np.exp(0.5 * rng.normal(size=(*batch, k, 1, d))) @ mix
    return rng.uniform(0.5, 1.5, (*batch, k)) * rows, X.mT @ X


def by_form(form, scatter):
    if form == "full":
        return scatter
    if form == "tied":
        return scatter.sum(axis=-3)
    diagonals = scatter.diagonal(axis1=-2, axis2=-1)
    return diagonals if form == "diag" else diagonals.sum(axis=-1)


def matrices(form, sigma, k, d):
    """Covariances of any form as (..., k, d, d)."""
    if form == "full":
        return sigma
    if form == "tied":
        return np.repeat(sigma[..., None, :, :], k, axis=-3)
    return (sigma[..., None] if form == "diag" else sigma[..., None, None]) * np.eye(d)


def estimate(name, weight, scatter, orientation=None):
    k, d = scatter.shape[-3:-1]
    form = STRUCTURES[name].form
    sigma, _ = covariances(name, weight, by_form(form, scatter), orientation, d=d)
    assert sigma.shape == by_form(form, scatter).shape
    return matrices(form, sigma, k, d)


def log_likelihood(weight, scatter, sigma):
    fit = np.trace(np.linalg.solve(sigma, scatter), axis1=-2, axis2=-1)
    return -0.5 * (weight * np.linalg.slogdet(sigma)[1] + fit).sum(axis=-1)


def best_found(name, weight, scatter, starts=3):
    """The greatest log-likelihood a general optimiser finds, over free parameters of each letter."""
    k, d = scatter.shape[-3:-1]
    volume, shape, turn = ({"I": 0, "E": 1, "V": k}[letter] for letter in name)
    below = np.tril_indices(d, -1)

    def minus(theta):  # (m, p) -> (m,)
        parts = np.split(theta, np.cumsum([volume, shape * (d - 1)]), axis=1)
        log_volume = parts[0][:, :, None]
        free = parts[1].reshape(len(theta), shape, d - 1)
        log_shape = np.concatenate([free, -free.sum(axis=2, keepdims=True)], axis=2) if shape else 0.0
        skew = np.zeros((len(theta), turn or 1, d, d))
        if turn:
            skew[:, :, *below] = parts[2].reshape(len(theta), turn, -1)
        skew = skew - skew.mT
        D = np.linalg.solve(np.eye(d) - skew, np.eye(d) + skew)  # Cayley's map onto rotations
        log_values = np.broadcast_to(log_volume + log_shape, (len(theta), k, d))
        seen = (D.mT @ scatter @ D).diagonal(axis1=-2, axis2=-1)
        return 0.5 * (weight[:, None] * log_values + seen * np.exp(-log_values)).sum(axis=(1, 2)) / weight.sum()

    def gradient(theta, h=1e-5):
        steps = h * np.eye(len(theta))
        return (minus(theta + steps) - minus(theta - steps)) / (2 * h)

    rng, p = np.random.default_rng(1), volume + shape * (d - 1) + turn * len(below[0])
    found = [
        minimize(lambda t: minus(t[None])[0], rng.normal(size=p), jac=gradient, method="BFGS").fun
        for _ in range(starts)
    ]
    return -min(found) * weight.sum()


def volumes(sigma):
    return np.exp(np.linalg.slogdet(sigma)[1] / sigma.shape[-1])


# constraints


@loop_over("k, d", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_equal_parts_are_equal(name, k, d):
    sigma = estimate(name, *problem(k, d))
    volume, shape, turn = name
    scaled = np.linalg.eigvalsh(sigma) / volumes(sigma)[:, None]
    assert np.array_equal(sigma, sigma.mT)
    if volume == "E":
        np.testing.assert_allclose(volumes(sigma), volumes(sigma)[0], rtol=1e-10)
    if shape == "I":
        np.testing.assert_allclose(scaled, 1, rtol=1e-10)
    if shape == "E":
        np.testing.assert_allclose(scaled, np.broadcast_to(scaled[0], scaled.shape), rtol=1e-9)
    if turn == "I":
        assert np.array_equal(sigma, sigma * np.eye(d))
    if turn == "E":
        products = sigma[:, None] @ sigma[None]
        np.testing.assert_allclose(products, products.mT, atol=1e-10 * np.abs(products).max())


@pytest.mark.parametrize("name", NAMES)
def test_varying_parts_vary(name):
    sigma = estimate(name, *problem(3, 3))
    volume, shape, turn = name
    scaled = np.linalg.eigvalsh(sigma) / volumes(sigma)[:, None]
    product = sigma[0] @ sigma[1]
    assert (np.ptp(volumes(sigma)) > 1e-3) == (volume == "V")
    assert (np.ptp(scaled, axis=0).max() > 1e-3) == (shape == "V")
    assert (np.abs(product - product.T).max() > 1e-3) == (turn == "V")


# maximum likelihood


@loop_over("k, d", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_no_covariances_of_the_structure_are_likelier(name, k, d):
    weight, scatter = problem(k, d)
    ours = log_likelihood(weight, scatter, estimate(name, weight, scatter))
    theirs = best_found(name, weight, scatter)
    assert ours >= theirs - 1e-6
    assert ours <= theirs + 1e-2  # else the optimiser is no judge


@loop_over("seed", range(5))
@pytest.mark.parametrize("small, large", NESTED)
def test_more_parameters_raise_the_likelihood(small, large, seed):
    weight, scatter = problem(3, 3, seed)
    least, most = (log_likelihood(weight, scatter, estimate(name, weight, scatter)) for name in (small, large))
    assert most >= least - 1e-9 * abs(least)


@pytest.mark.parametrize("name", NAMES)
def test_components_that_obey_the_structure_are_found(name):
    k, d = 3, 4
    rng = np.random.default_rng(5)
    volume, shape, turn = name
    lam = np.exp(rng.normal(size=k if volume == "V" else 1))[:, None]
    log_a = rng.normal(size=(k if shape == "V" else 1, d)) * (shape != "I")
    A = np.exp(log_a - log_a.mean(axis=1, keepdims=True))
    D = np.eye(d) if turn == "I" else ortho_group.rvs(d, size=k if turn == "V" else 1, random_state=rng)
    truth = (D * np.broadcast_to(lam * A, (k, d))[:, None, :]) @ np.broadcast_to(D, (k, d, d)).mT
    weight = np.array([1.0, 2.0, 5.0])
    np.testing.assert_allclose(estimate(name, weight, weight[:, None, None] * truth), truth, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["EVE", "VVE"])
@pytest.mark.parametrize("d", [2, 3, 5])
def test_a_given_orientation_is_never_made_worse(name, d):
    weight, scatter = problem(3, d)
    for seed in range(10):
        start = ortho_group.rvs(d, random_state=seed)
        seen = start.T @ scatter @ start
        there = start @ estimate(name[:2] + "I", weight, seen) @ start.T
        sigma, end = covariances(name, weight, scatter, start)
        before, after = (log_likelihood(weight, scatter, s) for s in (there, sigma))
        assert after >= before - 1e-10 * abs(before)
        np.testing.assert_allclose(end.T @ end, np.eye(d), atol=1e-12)
        again = log_likelihood(weight, scatter, covariances(name, weight, scatter, end)[0])
        assert after - 1e-10 * abs(after) <= again <= after + 1e-6  # the end is an end


@pytest.mark.parametrize("name, seed", [("EVE", 25), ("VVE", 15), ("VVE", 25)])
def test_a_local_minimum_near_the_pooled_axes_is_avoided(name, seed):
    weight, scatter = problem(3, 3, seed)
    pooled = np.linalg.eigh(scatter.sum(axis=0))[1]
    ours = log_likelihood(weight, scatter, estimate(name, weight, scatter))
    assert ours > log_likelihood(weight, scatter, estimate(name, weight, scatter, pooled)) + 1
    assert ours >= best_found(name, weight, scatter, starts=5) - 1e-6


def test_only_a_common_orientation_is_returned():
    weight, scatter = problem(2, 3)
    for name, structure in STRUCTURES.items():
        _, D = covariances(name, weight, by_form(structure.form, scatter), d=3)
        assert (D is not None) == (name in ("EVE", "VVE"))


# special cases and symmetries


@pytest.mark.parametrize("name", NAMES)
def test_a_single_component_has_one_estimate_per_family(name):
    weight, scatter = problem(1, 3)
    sample = scatter / weight
    if name[1] == "I":
        expected = np.trace(sample[0]) / 3 * np.eye(3)
    else:
        expected = sample * np.eye(3) if name[2] == "I" else sample
    np.testing.assert_allclose(estimate(name, weight, scatter)[0], expected.reshape(3, 3), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_one_column_has_a_variance_each_or_one_for_all(name):
    weight, scatter = problem(3, 1)
    sigma = estimate(name, weight, scatter)
    expected = scatter.sum() / weight.sum() if name[0] == "E" else scatter / weight[:, None, None]
    np.testing.assert_allclose(sigma, np.broadcast_to(expected, sigma.shape), rtol=1e-10)


@pytest.mark.parametrize("factor", [1e-9, 3.0, 1e9])
@pytest.mark.parametrize("name", NAMES)
def test_a_change_of_unit_scales_by_its_square(name, factor):
    weight, scatter = problem(3, 3)
    sigma = estimate(name, weight, scatter)
    scaled = estimate(name, weight, factor**2 * scatter) / factor**2
    np.testing.assert_allclose(scaled, sigma, atol=1e-5 * sigma.max())


@pytest.mark.parametrize("name", ["EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVV", "VVV"])
def test_every_column_may_have_a_unit_of_its_own(name):
    weight, scatter = problem(3, 3)
    units = np.diag([1e-9, 1.0, 1e6])
    expected = units @ estimate(name, weight, scatter) @ units
    np.testing.assert_allclose(estimate(name, weight, units @ scatter @ units), expected, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in NAMES if name[1] == "I" or name[2] != "I"])
def test_rotated_data_have_rotated_covariances(name):
    weight, scatter = problem(3, 3)
    R = ortho_group.rvs(3, random_state=0)
    expected = R @ estimate(name, weight, scatter) @ R.T
    np.testing.assert_allclose(estimate(name, weight, R @ scatter @ R.T), expected, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_weights_and_scatters_count_in_proportion(name):
    weight, scatter = problem(3, 3)
    sigma = estimate(name, weight, scatter)
    np.testing.assert_allclose(estimate(name, 7 * weight, 7 * scatter), sigma, atol=1e-5 * sigma.max())


@pytest.mark.parametrize("batch", [(5,), (2, 3), (0,)])
@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_a_loop(name, batch):
    weight, scatter = problem(3, 4, batch=batch)
    together = estimate(name, weight, scatter)
    for at in np.ndindex(batch):
        np.testing.assert_allclose(together[at], estimate(name, weight[at], scatter[at]), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["EVE", "VVE"])
def test_a_batch_of_orientations_is_a_loop(name):
    weight, scatter = problem(3, 4, batch=(4,))
    starts = ortho_group.rvs(4, size=4, random_state=0)
    together, ends = covariances(name, weight, scatter, starts)
    for at in range(4):
        sigma, end = covariances(name, weight[at], scatter[at], starts[at])
        np.testing.assert_allclose(together[at], sigma, atol=1e-8)
        np.testing.assert_allclose(ends[at], end, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_the_arguments_are_left_alone(name):
    weight, scatter = problem(2, 3)
    scatter[1, 2] = scatter[1, :, 2] = 0.0
    copies, start = (weight.copy(), scatter.copy()), np.eye(3)
    sigma = covariances(name, weight, by_form(STRUCTURES[name].form, scatter), start, d=3)[0]
    sigma += 1.0  # its own memory
    assert np.array_equal(weight, copies[0])
    assert np.array_equal(scatter, copies[1])
    assert np.array_equal(start, np.eye(3))


# degenerate sums


def degenerate():
    rng = np.random.default_rng(0)
    weight, scatter = problem(3, 4)

    def flat(rank):
        X = rng.normal(size=(3, rank, 4))
        return X.mT @ X

    aligned = [np.diag(row) for row in np.eye(4)[:3]]
    one_point = scatter.copy()
    one_point[1] = 0
    constant = scatter.copy()
    constant[:, 2] = constant[:, :, 2] = 0
    plane = np.linalg.qr(rng.normal(size=(4, 4)))[0] @ np.diag([1.0, 1, 1, 0])
    nothing = np.zeros((3, 4, 4))
    return {
        "rank one": (weight, flat(1)),
        "rank one, along the axes": (weight, np.array(aligned)),
        "rank two": (weight, flat(2)),
        "rank three": (weight, flat(3)),
        "one component a point": (weight, one_point),
        "an empty component": (weight * [1, 0, 1], one_point),
        "a nearly empty component": (weight * [1, 1e-300, 1], one_point),
        "a constant column": (weight, constant),
        "all in one plane": (weight, plane @ scatter @ plane.T),
        "no spread": (weight, nothing),
        "nothing at all": (0 * weight, nothing),
        "a tight one among wide ones": (weight, scatter * np.array([1e-20, 1, 1e20])[:, None, None]),
        "columns of different sizes": (weight, scatter * np.outer(*[[1e-12, 1, 1e3, 1e12]] * 2)),
        "roundoff below zero": (weight, flat(2) - 1e-15 * np.eye(4)),
    }


@loop_over("case", degenerate())
@pytest.mark.parametrize("name", NAMES)
def test_degenerate_scatters_give_finite_positive_covariances(name, case):
    sigma = estimate(name, *degenerate()[case])
    assert np.isfinite(sigma).all()
    root = np.sqrt(sigma.diagonal(axis1=-2, axis2=-1))
    assert (root > 0).all()
    assert (np.linalg.eigvalsh(sigma / (root[:, :, None] * root[:, None])) > -1e-12).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_degenerate_member_leaves_the_batch_alone(name):
    weight, scatter = problem(3, 4)
    _, bad = degenerate()["rank one"]
    together = estimate(name, np.stack([weight, weight]), np.stack([bad, scatter]))
    np.testing.assert_allclose(together[1], estimate(name, weight, scatter), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_component_leaves_the_others_alone(name):
    weight, scatter = problem(3, 3)
    weight[2], scatter[2] = 0, 0
    with_it, without = estimate(name, weight, scatter), estimate(name, weight[:2], scatter[:2])
    np.testing.assert_allclose(with_it[:2], without, rtol=1e-6, atol=1e-8)


# names


def test_parameters_are_counted_as_in_mclust():
    counts = [1, 3, 4, 6, 10, 12, 10, 12, 16, 18, 22, 24, 28, 30]
    assert [s.n_parameters(k=3, d=4) for s in STRUCTURES.values()] == counts


def test_one_column_has_as_many_parameters_as_volumes():
    for name, structure in STRUCTURES.items():
        assert structure.n_parameters(k=5, d=1) == (1 if name[0] == "E" else 5)


def test_the_form_is_the_smallest_that_holds_the_sums():
    forms = ["spherical"] * 2 + ["diag"] * 4 + ["tied"] + ["full"] * 7
    assert [s.form for s in STRUCTURES.values()] == forms


@pytest.mark.parametrize("alias, name", ALIASES.items())
def test_the_names_of_scikit_learn_and_mclust_are_known(alias, name):
    assert as_structure(alias) is STRUCTURES[name]


def test_a_structure_passes_through():
    for structure in STRUCTURES.values():
        assert as_structure(structure) is structure
        assert as_structure(structure.name) is structure
    assert as_structure(Structure("VVV")) == STRUCTURES["VVV"]


@pytest.mark.parametrize("name", ["xyz", "vvv", "", None, 3, ["VVV"]])
def test_an_unknown_name_is_answered_with_all_names(name):
    with pytest.raises(ParameterError, match=r"covariance_type must be one of 'EII', 'VII', .*; got ") as error:
        as_structure(name)
    assert str(error.value).endswith(f"got {name!r}")
    assert all(repr(known) in str(error.value) for known in [*STRUCTURES, *ALIASES])


def test_traces_need_the_number_of_columns():
    with pytest.raises(ParameterError, match="EII needs d"):
        covariances("EII", np.ones(2), np.ones(2))
