"""Kernels reuse arrays of earlier calls: their old contents must not change a result."""

import numpy as np
import pytest

from coterie.kernels import cpu
from coterie.kernels.cpu import center_runs
from coterie.kernels.plain import Gaussians

n, d, k = 700, 5, 4


def rows(dtype, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)).astype(dtype), rng.exponential(size=n)


def gaussians(form, size=1.0):
    rng = np.random.default_rng(1)
    means, eye = rng.normal(size=(k, d)) * size, np.eye(d)
    factor = {"full": np.stack([eye] * k), "tied": eye, "diag": np.ones((k, d)), "spherical": np.ones(k)}[form]
    return Gaussians(form, np.full(k, -1.0), means, factor / size, np.zeros(d))


def lloyd(X, w, size):
    centers = (rows(X.dtype, 1)[0][:k] * size).astype(X.dtype)
    return cpu.lloyd(X, w, centers, centers, np.full(len(X), -1, np.int32), np.zeros(0, np.float32))


def fuzzy(X, w, size):
    return cpu.fuzzy(X, w, (rows(X.dtype, 1)[0][:k] * size).astype(X.dtype), 2.0)


CALLS = {"lloyd": lloyd, "fuzzy": fuzzy}
CALLS |= {form: lambda X, w, size, form=form: cpu.em(X, w, gaussians(form, size)) for form in cpu.gaussian_layout.FORMS}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_leaves_nothing_behind_for_the_next(name, dtype):
    """Not even after sums that overflow, or fewer rows."""
    (X, w), call = rows(dtype), CALLS[name]
    first = call(X, w, 1.0)
    huge = dtype(1e30 if dtype == np.float32 else 1e140)
    with np.errstate(all="ignore"):
        call(X * huge, w, 1.0)
        call(X[:3] * huge, w[:3] * 1e20, float(huge))
    again = call(X, w, 1.0)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_cluster_that_lost_all_rows_has_sums_of_exactly_zero():
    """Rows that leave one by one take away what they have added, up to rounding: it must not stay."""
    X, w = rows(np.float64)
    workspace, update = center_runs.new_state(n, d, 2), center_runs.update_clusters
    update = getattr(update, "py_func", update)  # not compiled, because it is called once
    workspace.labels[:] = -1
    for cluster in (0, 1):
        workspace.nearest[:] = cluster
        assert update(center_runs.as_table(X, w), 2, workspace) == n
    assert not workspace.sums[0].any()
    assert workspace.weight[0] == workspace.count[0] == 0
    np.testing.assert_allclose(workspace.sums[1], w @ X)
    assert workspace.count[1] == n


@pytest.mark.parametrize("columns", [1, 2, 5, 40])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_do_not_depend_on_the_contents_of_the_buffer(columns, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, columns))
    w = rng.exponential(size=n) if weighted else None
    results = []
    for content in (0.0, 3.0, np.nan):
        cpu.thread_buffer(X[:k], X.dtype)[:] = content
        labels = np.full(n, -1, np.int32)
        results.append(cpu.lloyd(X, w, X[:k], X[:k], labels, np.zeros(0, np.float32)))
    for other in results[1:]:
        for first, second in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(first, second)
