"""A memo changes the speed of a pass, never its result: whatever parameters it was made with, and wherever they go."""

from __future__ import annotations

from dataclasses import fields
from functools import partial

import numpy as np
import pytest
from scipy import sparse

import zoo
from coterie import KMeans
from coterie.core import loop
from coterie.data.memory import MemorySource
from coterie.engines.local import Serial
from coterie.errors import FitInterruptedWarning
from coterie.kernels import cpu
from coterie.kmeans.kernel_lloyd import KernelLloyd
from many_parts import weights_of_many_digits

# Kernel K-means updates its sums of products by the rows that changed cluster, so they agree up to rounding only.
# Its labels agree to the bit, and those of a fit are always taken from sums that are added up anew.
ROUNDING = {KernelLloyd: 1e-10}


def path_of(model, source, steps=6):
    """The parameters of the passes of a fit."""
    params = []
    loop.fit(
        model,
        source,
        Serial(),
        rng=np.random.default_rng(1),
        max_iter=steps,
        callback=lambda progress: params.append(progress.params),
    )
    return params


def there_and_back(params):
    """The same parameters in an order no fit would take: forwards, jumps, a pass twice, backwards."""
    return [*params, params[0], params[-1], params[-1], *params[::-1], params[len(params) // 2]]


def assert_same_statistics(with_memo, without, rtol):
    for field in fields(without):
        if field.name != "moved":  # counts rows that changed cluster since the pass of the memo
            pairs = zip(*(zoo.leaves((getattr(stats, field.name),)) for stats in (with_memo, without)), strict=True)
            for a, b in pairs:
                np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol, err_msg=field.name)


@pytest.mark.parametrize("model, X, part_rows", zoo.MODELS)
def test_a_memo_never_changes_a_result(model, X, part_rows):
    source = MemorySource(X, weights_of_many_digits(X), chunk_rows=part_rows)
    path = there_and_back(path_of(model, source))
    memos = model.initial_memos(source) or [None] * len(source.parts())
    rtol = ROUNDING.get(type(model), 0)
    for part, memo in list(zip(source.parts(), memos, strict=True))[:2]:
        chunk = part()
        for params in path:
            stats, memo = model.e_step(params, chunk, memo)
            assert_same_statistics(stats, model.e_step(params, chunk, None)[0], rtol)
            np.testing.assert_array_equal(model.assign(params, chunk, memo), model.assign(params, chunk))


class InterruptedEngine(Serial):
    """The serial engine with a Ctrl-C after the first part of the pass that follows a call of `interrupt`."""

    def __init__(self):
        object.__setattr__(self, "interrupted", [])

    def interrupt(self, progress):
        self.interrupted.append(True)

    def _run(self, step, source, *memos):
        results = super()._run(step, source, *memos)
        if self.interrupted and getattr(getattr(step, "func", None), "__name__", "") == "e_step":
            self.interrupted.clear()
            yield next(results)
            raise KeyboardInterrupt
        yield from results


@pytest.mark.parametrize("model, X, part_rows", zoo.MODELS)
def test_the_result_of_an_interrupted_fit_has_no_memo_of_the_pass_that_was_interrupted(model, X, part_rows):
    source, engine = MemorySource(X, weights_of_many_digits(X), chunk_rows=part_rows), InterruptedEngine()
    with pytest.warns(FitInterruptedWarning):
        result = loop.fit(model, source, engine, rng=np.random.default_rng(1), callback=engine.interrupt)
    assign = partial(model.assign, result.params)
    with_memos, without = Serial().map(assign, source, result.memos), Serial().map(assign, source)
    np.testing.assert_array_equal(np.concatenate(with_memos), np.concatenate(without))


TIES = np.random.default_rng(5).integers(0, 3, size=(700, 4)).astype(np.float64)
TIED_MODELS = [
    pytest.param(zoo.Lloyd(130), TIES, id="kmeans-bounds"),
    pytest.param(zoo.Lloyd(9), sparse.csr_array(TIES), id="kmeans-sparse"),
    pytest.param(zoo.observed(9, np.where(TIES > 1, np.nan, TIES)), np.where(TIES > 1, np.nan, TIES), id="missing"),
    pytest.param(zoo.Spherical(130), zoo.unit_rows(TIES + 1.0), id="spherical"),
    pytest.param(zoo.Manhattan(9), TIES, id="medians"),
    pytest.param(zoo.Euclidean(9), TIES, id="geometric-medians"),
    pytest.param(zoo.KernelLloyd(9, zoo.Linear(TIES.mean(axis=0), 1.0)), TIES, id="kernel"),
    pytest.param(zoo.DTWLloyd(5), TIES[:120].copy(), id="series"),
]


@pytest.mark.parametrize("model, X", TIED_MODELS)
def test_a_memo_does_not_decide_a_tie(model, X):
    """Centers at rows of an integer grid: most rows are as near to one center as to another."""
    X = X[~np.isnan(X).all(axis=1)] if isinstance(X, np.ndarray) else X
    rng = np.random.default_rng(6)
    if isinstance(model, KernelLloyd):
        path = path_of(model, MemorySource(X, None))
    else:
        full = np.nan_to_num(X) if isinstance(X, np.ndarray) else X.toarray()
        path = [full[rng.choice(len(full), model.n_clusters)] for _ in range(4)]
    source = MemorySource(X, None)
    memo, chunk = (model.initial_memos(source) or [None])[0], source.parts()[0]()
    for params in there_and_back(path):
        stats, memo = model.e_step(params, chunk, memo)
        assert_same_statistics(stats, model.e_step(params, chunk, None)[0], ROUNDING.get(type(model), 0))
        np.testing.assert_array_equal(model.assign(params, chunk, memo), model.assign(params, chunk))


def table(rng, n, d, dtype):
    """Rows in groups of very different widths, anywhere, in any unit."""
    k = rng.integers(1, 9)
    widths = 2.0 ** rng.uniform(-6, 2, size=k)
    group = rng.integers(k, size=n)
    X = rng.normal(size=(k, d))[group] + widths[group, None] * rng.standard_normal((n, d))
    tails = rng.random()
    if tails < 0.3:
        X[rng.integers(n)] *= 2.0 ** rng.integers(1, 20)  # one row far out
    elif tails < 0.4:
        X *= rng.standard_cauchy(size=(n, 1))
    elif tails < 0.5:
        X[:, rng.integers(d)] *= 2.0 ** rng.integers(5, 15)  # one column in another unit
    elif tails < 0.6:
        X += 2.0 ** rng.integers(5, 12) * rng.normal(size=(k, d))[group]  # groups so far apart that scores cancel
    return ((X + rng.choice([0.0, 100.0])) * 2.0 ** rng.integers(-20, 20)).astype(dtype)


def wandering(rng, X, k, passes):
    """Centers whose scale goes up, down and up again: by small steps, where bounds prove labels, and by jumps."""
    centers = X[rng.choice(len(X), k)].astype(np.float64)
    middle, spread = X.mean(axis=0, dtype=np.float64), X.std(dtype=np.float64)
    for _ in range(passes):
        yield centers.astype(X.dtype)
        kind = rng.integers(6)
        if kind < 2:
            centers = middle + (centers - middle) * 2.0 ** rng.normal(0, (0.03, 0.5)[kind])
        elif kind == 2:
            centers = centers + spread * 2.0 ** rng.uniform(-12, -4) * rng.standard_normal(centers.shape)
        elif kind == 3:  # one center leaves, and takes the unit of the pass with it
            centers = centers.copy()
            centers[rng.integers(k)] += spread * 2.0 ** rng.uniform(-2, 30) * rng.standard_normal(X.shape[1])
        elif kind == 4:  # about half of the centers move together, and the median with them
            step = spread * 2.0 ** rng.uniform(-8, 8) * rng.standard_normal(X.shape[1])
            centers = centers + step * (rng.random(k) < 0.5)[:, None]
        else:
            centers = np.where(rng.random(k)[:, None] < 0.1, X[rng.choice(len(X), k)], centers)


@pytest.mark.parametrize("cases", [400, pytest.param(5000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bounds_prove_labels_wherever_the_centers_go(dtype, cases):
    rng = np.random.default_rng(0)
    for case in range(cases):
        n, d = int(rng.integers(1, 300)), int(rng.integers(4, 24))
        k = -(-512 // d)
        X = table(rng, n, d, dtype)
        w = rng.exponential(size=n) if case % 2 else None
        labels, lower, before = np.full(n, -1, np.int32), np.zeros(n, np.float32), None
        none, fresh = np.zeros(0, np.float32), np.full(n, -1, np.int32)
        for number, centers in enumerate(wandering(rng, X, k, 8)):
            bounded = cpu.lloyd(X, w, centers, centers if before is None else before, labels, lower)
            plain = cpu.lloyd(X, w, centers, centers, fresh, none)
            np.testing.assert_array_equal(labels, fresh, err_msg=f"case {case}, pass {number}")
            for a, b in zip(bounded, plain, strict=True):
                np.testing.assert_array_equal(a, b)
            before = centers


def moving(rng, kind, dtype, n=600, d=16, k=32):
    """A table, and a start from which the scale of the centers moves: all of them far out, or all in one place."""
    X = table(rng, n, d, dtype)
    start = X[rng.choice(n, k, replace=False)].astype(np.float64)
    middle = X.mean(axis=0, dtype=np.float64)
    start = (middle + (start - middle) * 2.0 ** rng.uniform(-5, 5)).astype(dtype)
    if kind == "sparse":
        X = sparse.csr_array(np.where(rng.random(X.shape) < 0.5, X, 0))
    if kind == "missing":
        X = np.where(rng.random(X.shape) < 0.1, np.nan, X).astype(dtype)
    return X, start


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind, cases", [("dense", 100), ("sparse", 15), ("missing", 15)])
def test_the_default_algorithm_gives_the_bits_of_lloyd_and_labels_equal_predict(kind, cases, dtype):
    rng = np.random.default_rng(1)
    for case in range(cases):
        X, start = moving(rng, kind, dtype)
        w = rng.exponential(size=X.shape[0]) if case % 2 else None
        options = {"init": start, "n_init": 1, "missing": "ignore" if kind == "missing" else "error"}
        default = KMeans(32, **options).fit(X, sample_weight=w)
        lloyd = KMeans(32, algorithm="lloyd", **options).fit(X, sample_weight=w)
        np.testing.assert_array_equal(default.labels_, default.predict(X), err_msg=f"case {case}")
        np.testing.assert_array_equal(default.labels_, lloyd.labels_)
        np.testing.assert_array_equal(default.cluster_centers_, lloyd.cluster_centers_)
        np.testing.assert_array_equal(default.history_, lloyd.history_)


@pytest.mark.parametrize("seed", [176, 183, 346])
def test_bounds_follow_a_unit_that_changes_during_a_fit(seed):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(8, 16))[rng.integers(8, size=20000)] + rng.standard_normal((20000, 16))).astype(np.float32)
    model = KMeans(64, n_init=1, random_state=seed).fit(X)
    lloyd = KMeans(64, n_init=1, random_state=seed, algorithm="lloyd").fit(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.labels_, lloyd.labels_)
    assert model.inertia_ == lloyd.inertia_
