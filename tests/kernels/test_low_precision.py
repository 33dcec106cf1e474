"""Integer scores: their bound holds, and labels are those of the definition."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie import KMeans
from coterie.kernels import cpu
from coterie.kernels.cpu import hard_assignment, integer_simd, low_precision
from coterie.kernels.cpu.simd import PANEL, points
from coterie.kernels.cpu.vectors import REGISTER
from loop_over import loop_over

# Code for AVX-512 has instructions that some of its CPUs lack; narrower registers use ordinary arithmetic.
CAN_RUN = REGISTER != 64 or integer_simd.has_integer_products()
LEVELS = (low_precision.INT8, low_precision.INT16) if CAN_RUN else ()
TILE = points(4)


def workspace(k, d):
    return low_precision.workspace(k, d) if CAN_RUN else None


def nearest(X, centers):
    labels = np.full(len(X), -7, np.int32)
    buffer = cpu.thread_buffer(centers, X.dtype)
    low = workspace(*centers.shape)
    hard_assignment.nearest(cpu.read_only(X), cpu.read_only(centers), labels, buffer, low)
    return labels


def lloyd(X, w, centers, low):
    labels, lower = np.full(len(X), -1, np.int32), np.zeros(len(X), np.float32)
    rows, fixed = cpu.read_only(X), cpu.read_only(centers)  # as estimators pass them, so that nothing is compiled
    buffer = cpu.thread_buffer(centers, X.dtype)
    sums = hard_assignment.lloyd(rows, cpu.weights(w), fixed, fixed, labels, lower, buffer, low)
    return labels, lower, sums


def overlapping(rng, n, d):
    return 0.6 * rng.normal(size=(20, d))[rng.integers(20, size=n)] + rng.normal(size=(n, d))


def far_groups(apart):
    return lambda rng, n, d: apart * rng.normal(size=(6, d))[rng.integers(6, size=n)] + rng.normal(size=(n, d))


def one_column(rng, n, d):
    X = rng.normal(size=(n, d))
    X[:, d // 2] *= 1e3
    return X


def outliers(rng, n, d):
    X = rng.normal(size=(n, d))
    X[rng.integers(n, size=3)] *= 1e9
    return X


def zero_rows(rng, n, d):
    return rng.normal(size=(n, d)) * (rng.random((n, 1)) < 0.5)


def sparse_rows(rng, n, d):
    return rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.1)


def duplicates(rng, n, d):
    return rng.normal(size=(12, d))[rng.integers(12, size=n)]


def opposite(rng, n, d):
    X = rng.choice([-1.0, 1.0], size=(n, d))
    return np.concatenate([X[: n // 2], -X[: n - n // 2]])


TABLES = {
    "overlapping": overlapping,
    "noise": lambda rng, n, d: rng.normal(size=(n, d)),
    "decaying columns": lambda rng, n, d: rng.normal(size=(n, d)) / np.arange(1, d + 1),
    "heavy tails": lambda rng, n, d: rng.standard_t(3, size=(n, d)),
    "cauchy": lambda rng, n, d: rng.standard_cauchy(size=(n, d)),
    "scales of rows": lambda rng, n, d: rng.normal(size=(n, d)) * rng.standard_cauchy(size=(n, 1)),
    "groups 30 apart": far_groups(30.0),
    "groups 1000 apart": far_groups(1000.0),
    "one large column": one_column,
    "outliers": outliers,
    "far from the origin": lambda rng, n, d: rng.normal(size=(n, d)) + 1e4,
    "shrinking": lambda rng, n, d: rng.normal(size=(n, d)) * 2.0 ** -np.linspace(0, 60, n)[:, None],
    "integers": lambda rng, n, d: rng.integers(0, 3, size=(n, d)).astype(float),
    "zero rows": zero_rows,
    "sparse rows": sparse_rows,
    "duplicates": duplicates,
    "opposite": opposite,
    "constant": lambda rng, n, d: np.ones((n, d)),
}
SHAPES = [(130, 1, 3), (97, 5, 9), (200, 33, 40), (150, 64, 257), (100, 131, 71), (60, 300, 30)]


def case(name, n, d, k, scale=1.0, seed=0):
    rng = np.random.default_rng([seed, n, d, k])
    X = (TABLES[name](rng, n, d) * scale).astype(np.float32)
    centers = X[rng.integers(n, size=k)]
    if seed % 2 == 0:
        size = np.abs(X.astype(np.float64)).max()
        centers = centers + (0.02 * size * rng.normal(size=centers.shape)).astype(np.float32)
    return X, np.ascontiguousarray(centers, dtype=np.float32)


@loop_over("scale", [1.0, 2.0**-100, 2.0**90])
@loop_over("n, d, k", SHAPES)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", TABLES)
def test_labels_are_those_of_the_definition(name, seed, n, d, k, scale):
    X, centers = case(name, n, d, k, scale, seed)
    with np.errstate(over="ignore"):
        wanted = naive.squares(X, centers).argmin(axis=1)
    np.testing.assert_array_equal(nearest(X, centers), wanted)


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(TABLES)),
    st.integers(1, 200), st.integers(1, 70), st.integers(1, 90), st.integers(-100, 60), st.integers(0, 99),
)  # fmt: skip
def test_labels_for_any_shape_and_scale(name, n, d, k, exponent, seed):
    X, centers = case(name, n, d, k, 2.0**exponent, seed)
    np.testing.assert_array_equal(nearest(X, centers), naive.squares(X, centers).argmin(axis=1))


@loop_over("weighted", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_sums_do_not_depend_on_the_precision_of_scores(name, weighted):
    X, centers = case(name, 3000, 37, 300)
    w = np.random.default_rng(1).exponential(size=len(X)) if weighted else None
    labels, _, sums = lloyd(X, w, centers, None)
    other_labels, _, other_sums = lloyd(X, w, centers, workspace(*centers.shape))
    np.testing.assert_array_equal(labels, other_labels)
    for first, second in zip(sums, other_sums, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", TABLES)
def test_lower_bounds_of_other_centers_hold(name):
    X, centers = case(name, 500, 37, 300)
    labels, lower, _ = lloyd(X, None, centers, workspace(*centers.shape))
    unit = 1.0 / cpu._inverse_unit(X, centers)
    squares = naive.squares(X, centers)
    squares[np.arange(len(X)), labels] = np.inf
    near = np.sqrt(squares.min(axis=1))[:TILE]
    assert (lower[:TILE].astype(np.float64) * unit <= near).all()
    if name == "overlapping":
        assert (lower[:TILE].astype(np.float64) * unit > 0.9 * near).all()


@pytest.mark.parametrize(
    "name, level", [("overlapping", low_precision.INT8), ("groups 1000 apart", low_precision.FLOAT)]
)
def test_the_precision_is_chosen_by_the_number_of_panels_that_are_left(name, level):
    X, centers = case(name, 3000, 64, 300, seed=1)
    low = low_precision.workspace(*centers.shape)
    if CAN_RUN:
        lloyd(X, None, centers, low)
        assert low.state[0] == level


@loop_over("apart", [1.0, 3.0])
@loop_over("step", [1e-4, 1e-2, 0.3])
def test_bounds_from_integer_scores_never_change_a_label(apart, step):
    rng = np.random.default_rng(0)
    X = (apart * rng.normal(size=(300, 37))[rng.integers(300, size=1500)] + rng.normal(size=(1500, 37))) * 3.0
    X = X.astype(np.float32)
    centers, low = X[:300].copy(), workspace(300, 37)
    labels, lower, before = np.full(len(X), -1, np.int32), np.zeros(len(X), np.float32), centers
    for _ in range(8):
        rows, now, previous = (cpu.read_only(values) for values in (X, centers, before))
        buffer = cpu.thread_buffer(centers, X.dtype)
        hard_assignment.lloyd(rows, np.ones(1), now, previous, labels, lower, buffer, low)
        np.testing.assert_array_equal(labels, naive.squares(X, centers).argmin(axis=1))
        before, centers = centers, (centers + step * rng.normal(size=centers.shape)).astype(np.float32)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
def test_rows_that_are_not_finite_do_not_affect_other_rows(bad):
    X, centers = case("overlapping", 300, 40, 260)
    X[[7, 100, 101]] = bad
    X[200, 3] = bad
    labels = nearest(X, centers)
    expected = np.full(len(X), -7, np.int32)
    hard_assignment.nearest(
        cpu.read_only(X), cpu.read_only(centers), expected, cpu.thread_buffer(centers, X.dtype), None
    )
    np.testing.assert_array_equal(labels, expected)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["overlapping", "heavy tails", "scales of rows", "one large column", "integers"])
def test_integer_scores_change_the_speed_of_a_fit_and_not_the_result(name, monkeypatch):
    X, _ = case(name, 4000, 40, 1)
    w = np.random.default_rng(0).exponential(size=len(X))
    models = []
    for switch, threads, algorithm in (("1", 1, "auto"), ("1", 2, "lloyd"), ("0", 1, "auto")):
        monkeypatch.setenv("COTERIE_LOW_PRECISION", switch)
        options = {"init": "forgy", "n_init": 1, "max_iter": 15, "search": "none", "random_state": 0}
        model = KMeans(260, n_jobs=threads, algorithm=algorithm, **options).fit(X, sample_weight=w)
        np.testing.assert_array_equal(model.labels_, model.predict(X))
        models.append(model)
    for model in models[1:]:
        np.testing.assert_array_equal(model.labels_, models[0].labels_)
        np.testing.assert_array_equal(model.cluster_centers_, models[0].cluster_centers_)
        np.testing.assert_array_equal(model.history_, models[0].history_)


@pytest.mark.parametrize(
    "n, d, k, dtype, is_used",
    [
        (5000, 32, 256, "float32", True),
        (5000, 31, 256, "float32", False),
        (5000, 32, 255, "float32", False),
        (1000, 32, 256, "float32", False),
        (5000, 40000, 256, "float32", False),
        (5000, 32, 256, "float64", False),
    ],
)
def test_integer_scores_are_chosen_by_cpu_shape_and_switch(n, d, k, dtype, is_used, monkeypatch):
    monkeypatch.setattr(low_precision, "has_integer_products", lambda: True)
    monkeypatch.delenv("COTERIE_LOW_PRECISION", raising=False)
    assert low_precision.is_useful(n, d, k, np.dtype(dtype)) == is_used
    monkeypatch.setenv("COTERIE_LOW_PRECISION", "0")
    assert not low_precision.is_useful(n, d, k, np.dtype(dtype))
    monkeypatch.setenv("COTERIE_LOW_PRECISION", "1")
    monkeypatch.setattr(low_precision, "has_integer_products", lambda: False)
    assert not low_precision.is_useful(n, d, k, np.dtype(dtype))


def scan(X, centers, level):
    """Lower bounds (panels, rows) of the scores of the first tile, the scores (k, rows), and the slack (rows,).

    The kernel lowers |c|^2 / 2 by the rounding of float32 scores; so do these scores, which are exact otherwise.
    """
    k, d = centers.shape
    low = workspace(k, d)
    s = hard_assignment.prepare(cpu.read_only(X), cpu.read_only(centers), False, cpu.thread_buffer(centers, X.dtype))
    low_precision.begin(low, s.half, k)
    s.rows[:TILE] = np.arange(TILE)
    low_precision.label_tile(cpu.read_only(X), cpu.read_only(centers), s, low, 0)
    low_precision.scan_tile(s, low, 0, k, d, level)
    scale, slack = low.rows[0].astype(np.longdouble), low.rows[5].astype(np.longdouble)
    bounds = (low.least.reshape(-1, TILE).astype(np.longdouble) - slack) * scale
    shift = s.shift[:d].astype(np.longdouble)
    x, c = ((values.astype(np.longdouble) - shift) * s.inverse for values in (X[:TILE], centers))
    half = s.half[:k].astype(np.longdouble)
    assert (half <= (c**2).sum(axis=1) / 2).all()
    return bounds, half[:, None] - c @ x.T, scale * slack


def panel_minima(scores):
    return np.array([scores[first : first + PANEL].min(axis=0) for first in range(0, len(scores), PANEL)])


@loop_over("level", LEVELS)
@loop_over("d, k", [(1, 3), (5, 9), (33, 40), (64, 257), (131, 71), (300, 30)])
@loop_over("seed", [0, 1])
@pytest.mark.parametrize("name", TABLES)
def test_bounds_of_scores_hold_for_every_row_and_panel(name, level, d, k, seed):
    X, centers = case(name, TILE, d, k, seed=seed)
    bounds, scores, _ = scan(X, centers, level)
    is_rounded = np.abs(X.astype(np.float64)).max(axis=1) < 1e8
    assert (bounds <= panel_minima(scores))[:, is_rounded].all()


@pytest.mark.parametrize("level", LEVELS)
def test_a_smaller_bound_would_not_hold(level):
    """All columns of a row are just below the middle of two integers, in the direction of one center."""
    rng = np.random.default_rng(0)
    d, largest = 200, (low_precision.LARGEST_8, low_precision.LARGEST_16)[level]
    signs = rng.choice([-1.0, 1.0], size=(15, d))
    centers = np.concatenate([signs, -signs]).astype(np.float32)  # their median is 0
    signs = signs[np.arange(TILE) % len(signs)]
    X = (rng.integers(1, 3, size=(TILE, d)) + 0.499) / largest * signs
    X[:, 0] = signs[:, 0]
    bounds, scores, slack = scan(X.astype(np.float32), centers, level)
    excess = panel_minima(scores) - bounds
    assert (excess >= 0).all()
    assert (excess.min(axis=0) < slack).all()  # the whole error is twice the slack
