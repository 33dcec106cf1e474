"""EM of Gaussian mixtures from many starts in one call, for tables so small that calls would take longer than passes.

A pass is that of `gaussian`, an M-step that of `covariances`; both are about the origin, near which the rows are, and
in their unit. Runs are independent of each other.
"""

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.cpu.covariances import EVE, VVE, estimate, factorize
from coterie.kernels.cpu.gaussian import (
    DIAG,
    FULL,
    HARD,
    SPHERICAL,
    TIED,
    add_sums,
    choose,
    em,
    load_block,
    posterior,
    squared_distances,
)
from coterie.kernels.cpu.gaussian_layout import PRODUCT_COLUMNS, STRIP, Workspace
from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.sums import inner

LOG_TWO_PI = float(np.log(2 * np.pi))
EMPTY = 1e-8  # share of the mean weight below which a component has no rows


class Rows(NamedTuple):
    """Rows near the origin."""

    X: Any  # (n, d)
    w: Any  # (n,)
    known: Any  # (n,) known components, -1 if unknown; or (0,)
    total: float  # of w


class Model(NamedTuple):
    """Covariance structure and prior."""

    structure: int  # number in `covariances.NAMES`
    e_step: int  # SOFT or HARD
    sweeps: int  # of rotations in an M-step
    floor: Any  # (d,) variances added to each row of an average component
    rounding: Any  # (d,) smaller variances of a component are rounding
    scale: Any  # (d, d) scatter added to each component by a prior; (0, 0) without
    rows: float  # weight added to each covariance
    mean: Any  # (d,) prior mean of the means
    shrinkage: float  # its weight
    concentration: Any  # (k,) of the weights


class Runs(NamedTuple):
    """Parameters of independent runs."""

    weights: Any  # (runs, k)
    means: Any  # (runs, k, d)
    covariances: Any  # (runs, m, p), see `covariances`
    factor: Any  # (runs, m, p)
    log_det: Any  # (runs, k) log |U|
    orientation: Any  # (runs, d, d) of EVE and VVE, 0 if unknown; else (runs, 0, 0)


class Descents:
    """EM of `k` components on rows `X` (n, d) with weights `w`, from any number of starts."""

    def __init__(self, X: np.ndarray, w: np.ndarray, known: np.ndarray | None, form: str, k: int, model: Model):
        labels = np.empty(0, np.int32) if known is None else known.astype(np.int32)
        self.rows, self.model, self.form, self.k = Rows(X, w, labels, float(w.sum())), model, form, k
        work = Workspace(form, k, X.shape[1], X.dtype)
        work.scale[:] = -0.5
        self.layout, self.arrays = work.layout, work.arrays

    def new_runs(self, count: int) -> Runs:
        (_, d), k = self.rows.X.shape, self.k
        size = {"full": (k, d * d), "tied": (1, d * d), "diag": (k, d), "spherical": (k, 1)}[self.form]
        axes = d if self.model.structure in (EVE, VVE) else 0
        shapes = ((k,), (k, d), size, size, (k,), (axes, axes))
        return Runs(*(np.zeros((count, *shape)) for shape in shapes))

    def first(self, resp: np.ndarray) -> Runs:
        """The runs after an M-step with these responsibilities (runs, n, k)."""
        runs = self.new_runs(len(resp))
        first(self.rows, self.model, self.layout, self.arrays, np.ascontiguousarray(resp, np.float64), runs)
        return runs

    def advance(
        self, runs: Runs, steps: int, tol: float = -np.inf, is_extrapolated: bool = False
    ) -> tuple[Runs, np.ndarray, np.ndarray, int]:
        """The runs after at most `steps` steps, objectives, gains of the last two steps, and the number of steps."""
        runs = Runs(*map(np.copy, runs))
        objective, gains = np.empty(len(runs.weights)), np.empty((2, len(runs.weights)))
        n_steps = advance(
            self.rows, self.model, self.layout, self.arrays, runs, steps, tol, is_extrapolated, objective, gains
        )
        return runs, objective, gains, n_steps

    def responsibilities(self, runs: Runs) -> tuple[np.ndarray, np.ndarray]:
        """Responsibilities (runs, n, k), and log densities or terms of the bound (runs, n)."""
        count, n = len(runs.weights), len(self.rows.X)
        resp, log_density = np.empty((count, n, self.k)), np.empty((count, n))
        responsibilities(self.rows, self.model.e_step, self.layout, self.arrays, runs, resp, log_density)
        return resp, log_density


@jit
def advance(
    rows,  # in  Rows
    model,  # in  Model
    s,  # in  Layout
    b,  # i/o Arrays
    runs,  # i/o Runs
    steps,  # maximum number of steps
    tol,  # a run ends when a step gains less
    is_extrapolated,  # compare the estimated remaining gain instead, by Aitken's formula
    objective,  # out (runs,)
    gains,  # out (2, runs) decreases of the objective in the last two steps
):
    """EM steps of each run; return the number of steps of all runs."""
    k, d = runs.means.shape[1:]
    sum_dx, n_steps = np.empty((k, d)), 0
    scatter = np.empty(runs.covariances.shape[1:])
    for r in range(runs.means.shape[0]):
        objective[r] = np.inf
        gains[:, r] = np.inf
        for step in range(steps + 1):
            store_components(s, b, runs, r)
            _, bound = em(rows.X, rows.w, 1.0, model.e_step, rows.known, rows.w[:0], s, b)
            before, objective[r] = objective[r], -bound - log_prior(rows.total, model, s, runs, r)
            gains[0, r], gains[1, r] = gains[1, r], before - objective[r]
            if step == steps or (step >= 2 and has_converged(gains[0, r], gains[1, r], tol, is_extrapolated)):
                break
            read_sums(s, b, runs.means[r], sum_dx, scatter)
            m_step(rows.total, model, s, b.weight, sum_dx, scatter, runs, r)
            n_steps += 1
    return n_steps


@jit
def has_converged(before, last, tol, is_extrapolated):
    """Whether the last gain, or the estimated remaining one, is below the tolerance."""
    remaining = last
    if is_extrapolated and before > 0.0:
        rate = min(last / before, 1.0 - 1e-6)
        remaining = last * max(1.0, rate / (1.0 - rate))
    return remaining < tol


@jit
def first(
    rows,  # in  Rows
    model,  # in  Model
    s,  # in  Layout
    b,  # i/o Arrays
    resp,  # in  (runs, n, k)
    runs,  # out Runs
):
    """The runs after an M-step with these responsibilities."""
    k, d = runs.means.shape[1:]
    sum_dx, scatter = np.empty((k, d)), np.empty(runs.covariances.shape[1:])
    n = rows.X.shape[0]
    for r in range(resp.shape[0]):
        runs.means[r] = 0.0
        runs.orientation[r] = 0.0
        b.buffer[s.center : s.center + (k + 1) * s.columns] = 0.0
        b.buffer[s.factor : s.center] = 0.0  # spherical squares are about the origin
        b.sums[:] = 0.0
        b.weight[:] = 0.0
        for i0 in range(0, n, s.block):
            count = min(s.block, n - i0)
            tiles = load_block(rows.X, 1.0, i0, count, s, b)
            for p in range(tiles * s.rows):
                total = 0.0
                for j in range(k):
                    share = rows.w[i0 + p] * resp[r, i0 + p, j] if p < count else 0.0
                    b.buffer[s.resp + j * s.block + p] = share
                    total += share
                b.buffer[s.w + p] = total
            if s.form == SPHERICAL:
                squared_distances(b.buffer, s, tiles)
            add_sums(rows.X, 1.0, i0, count, tiles, s, b)
        read_sums(s, b, runs.means[r], sum_dx, scatter)
        m_step(b.weight.sum(), model, s, b.weight, sum_dx, scatter, runs, r)


@jit
def responsibilities(
    rows,  # in  Rows
    e_step,
    s,  # in  Layout
    b,  # i/o Arrays
    runs,  # in  Runs
    resp,  # out (runs, n, k)
    log_density,  # out (runs, n), or the term of the bound
):
    """Write the responsibilities of each run, without the weights of the rows."""
    n, k = rows.X.shape[0], runs.means.shape[1]
    for r in range(runs.means.shape[0]):
        store_components(s, b, runs, r)
        for i0 in range(0, n, s.block):
            count = min(s.block, n - i0)
            tiles = load_block(rows.X, 1.0, i0, count, s, b)
            b.buffer[s.w : s.w + s.block] = 1.0
            squared_distances(b.buffer, s, tiles)
            for t in range(tiles):
                posterior(b.buffer, s, t * s.rows)
            for p in range(count):
                log_density[r, i0 + p] = b.buffer[s.log_max + p] + np.log(b.buffer[s.total + p])
            if e_step == HARD or rows.known.shape[0] > 0:
                choose(rows.w, i0, count, e_step, rows.known, rows.w[:0], s, b.buffer)
            for p in range(count):
                if e_step == HARD or (rows.known.shape[0] > 0 and rows.known[i0 + p] >= 0):
                    log_density[r, i0 + p] = 0.0
                for j in range(k):
                    resp[r, i0 + p, j] = b.buffer[s.resp + j * s.block + p]
                    if log_density[r, i0 + p] == 0.0 and resp[r, i0 + p, j] == 1.0:
                        squares = b.buffer[s.squares + j * s.block + p]
                        log_density[r, i0 + p] = b.buffer[s.offset + j] + b.buffer[s.scale + j] * squares


@jit
def store_components(s, b, runs, r):
    """Write the components of a run in the layout of `gaussian`."""
    k, d = runs.means.shape[1:]
    buffer, means, factor = b.buffer, runs.means[r], runs.factor[r]
    packed = np.empty(d + d * d + 1)
    for j in range(k):
        weight = runs.weights[r, j]
        log_weight = np.log(weight) if weight > 0.0 else -1e300
        buffer[s.offset + j] = log_weight - 0.5 * d * LOG_TWO_PI + runs.log_det[r, j]
        for c in range(d):
            buffer[s.center + j * s.columns + c] = means[j, c]
        panel = (j // STRIP) * s.columns * STRIP + j % STRIP
        if s.form == FULL or (s.form == TIED and j == 0):
            pack(means[j] if s.form == FULL else np.zeros(d), factor[j].reshape(d, d), packed)
            for p in range(s.triangle):
                buffer[s.factor + j * s.triangle + p] = packed[b.factor_order[p]]
        if s.form == TIED:
            U = factor[0].reshape(d, d)
            for c in range(d):
                buffer[s.factor + s.triangle + panel + c * STRIP] = inner(means[j, : c + 1], U[: c + 1, c].copy())
        elif s.form == DIAG:
            panel = (j // STRIP) * s.columns * 2 * STRIP + j % STRIP
            for c in range(d):
                buffer[s.factor + panel + 2 * c * STRIP] = factor[j, c]
                buffer[s.factor + panel + (2 * c + 1) * STRIP] = -factor[j, c] * means[j, c]
        elif s.form == SPHERICAL:
            buffer[s.scale + j] = -0.5 * factor[j, 0] ** 2
            for c in range(d):
                buffer[s.factor + panel + c * STRIP] = means[j, c]


@jit
def pack(center, U, out):
    """Write -U'c, U and a zero."""
    d = center.shape[0]
    out[:] = 0.0
    for a in range(d):
        for c in range(a, d):
            out[c] -= U[a, c] * center[a]
            out[d + a * d + c] = U[a, c]


@jit
def read_sums(
    s,  # in  Layout
    b,  # in  Arrays
    means,  # in  (k, d)
    sum_dx,  # out (k, d) about the means
    scatter,  # out (m, p) about the means
):
    """Write the sums of a pass; those of full covariances only on and above the diagonal."""
    k, d = means.shape
    if s.form == TIED:
        total = b.sums[b.sums.shape[0] - s.moments :]
        for a in range(d):
            for c in range(a, d):
                scatter[0, a * d + c] = total[b.moment_order[a, c]]
    for j in range(k):
        for c in range(d):
            if s.form == FULL:
                sum_dx[j, c] = b.sums[j * s.moments + b.linear_order[c]]
            elif s.form == DIAG:
                at = 2 * (j * s.columns + c - c % STRIP) + c % STRIP
                sum_dx[j, c] = b.sums[at]
                scatter[j, c] = b.sums[at + STRIP]
            else:
                strip = (j // STRIP) * (s.columns // PRODUCT_COLUMNS) + c // PRODUCT_COLUMNS
                at = (strip * STRIP + j % STRIP) * PRODUCT_COLUMNS + c % PRODUCT_COLUMNS
                sum_dx[j, c] = b.sums[at] - b.weight[j] * means[j, c]
        if s.form == FULL:
            for a in range(d):
                for c in range(a, d):
                    moment = b.sums[j * s.moments + b.moment_order[a, c]]
                    scatter[j, a * d + c] = moment - sum_dx[j, a] * means[j, c]
        elif s.form == TIED:
            for a in range(d):
                for c in range(a, d):
                    cross = sum_dx[j, a] * means[j, c] + means[j, a] * sum_dx[j, c]
                    scatter[0, a * d + c] -= cross + b.weight[j] * means[j, a] * means[j, c]
        elif s.form == SPHERICAL:
            scatter[j, 0] = b.sums[b.sums.shape[0] - k + j]


@jit
def m_step(total, model, s, weight, sum_dx, scatter, runs, r):
    """Write the parameters for these sums about the means."""
    k, d = sum_dx.shape
    shrinkage, has_scale = model.shrinkage, model.scale.shape[0] > 0
    rows, share = np.empty(k), 0.0
    for j in range(k):
        m = 0 if s.form == TIED else j
        rows[j] = max(weight[j], EMPTY * total / k)
        for a in range(d):
            offset = model.mean[a] - runs.means[r, j, a]
            step_a = (sum_dx[j, a] + shrinkage * offset) / (rows[j] + shrinkage)
            after_a = shrinkage * (step_a - offset)
            for c in range(a, d if s.form in (FULL, TIED) else a + 1):
                offset_c = model.mean[c] - runs.means[r, j, c]
                step_c = (sum_dx[j, c] + shrinkage * offset_c) / (rows[j] + shrinkage)
                value = weight[j] * step_a * step_c - sum_dx[j, a] * step_c - step_a * sum_dx[j, c]
                value += after_a * (step_c - offset_c)
                if has_scale:
                    value += model.scale[a, c]
                if a == c:
                    value += total / k * model.floor[a]
                scatter[m, a * d + c if s.form in (FULL, TIED) else a if s.form == DIAG else 0] += value
        for a in range(d):
            offset = model.mean[a] - runs.means[r, j, a]
            runs.means[r, j, a] += (sum_dx[j, a] + shrinkage * offset) / (rows[j] + shrinkage)
        runs.weights[r, j] = max(weight[j] + (model.concentration[j] - 1.0), 0.0)
        share += runs.weights[r, j]
        rows[j] += model.rows
    for j in range(k):
        runs.weights[r, j] /= share
    if s.form in (FULL, TIED):
        for m in range(scatter.shape[0]):
            for a in range(d):
                for c in range(a):
                    scatter[m, a * d + c] = scatter[m, c * d + a]
    raise_rounding(total, model, s, scatter)
    estimate(model.structure, rows, scatter, runs.orientation[r], d, model.sweeps, runs.covariances[r])
    for j in range(k):
        if s.form == FULL or (s.form == TIED and j == 0):
            covariance, factor = runs.covariances[r, j].reshape(d, d), runs.factor[r, j].reshape(d, d)
            runs.log_det[r, j] = factorize(covariance, factor)
        elif s.form == TIED:
            runs.log_det[r, j] = runs.log_det[r, 0]
        else:
            for c in range(runs.covariances.shape[2]):
                runs.factor[r, j, c] = 1.0 / np.sqrt(runs.covariances[r, j, c])
            logs = np.log(runs.factor[r, j]).sum()
            runs.log_det[r, j] = logs * d if s.form == SPHERICAL else logs


@jit
def raise_rounding(total, model, s, scatter):
    """Raise sums of squares that cancellation has made too small, or negative."""
    d = model.rounding.shape[0]
    for m in range(scatter.shape[0]):
        for a in range(d):
            if s.form == SPHERICAL:
                scatter[m, 0] = max(scatter[m, 0], total * model.rounding[a])
            else:
                at = a if s.form == DIAG else a * d + a
                scatter[m, at] = max(scatter[m, at], total * model.rounding[a])


@jit
def log_prior(total, model, s, runs, r):
    """Log density of the prior, without constants; see `Penalty.log_density`."""
    k, d = runs.means.shape[1:]
    density = 0.0
    for j in range(k):
        m = 0 if s.form == TIED else j
        density += model.rows * runs.log_det[r, j]
        if model.concentration[j] != 1.0:
            density += (model.concentration[j] - 1.0) * np.log(max(runs.weights[r, j], 1e-300))
        factor = runs.factor[r, m]
        for a in range(d):
            offset = runs.means[r, j, a] - model.mean[a]
            added = total / k * model.floor[a]
            if s.form == SPHERICAL:
                precision = factor[0] ** 2
            elif s.form == DIAG:
                precision = factor[a] ** 2
            else:
                precision = inner(factor[a * d : (a + 1) * d], factor[a * d : (a + 1) * d])
            if model.scale.shape[0] > 0 and s.form in (SPHERICAL, DIAG):
                added += model.scale[a, a]
            if s.form in (SPHERICAL, DIAG):
                added += model.shrinkage * offset * offset
            density -= 0.5 * precision * added
        if s.form in (FULL, TIED) and (model.scale.shape[0] > 0 or model.shrinkage > 0.0):
            U = factor.reshape(d, d)
            for c in range(d):
                along = 0.0
                for a in range(c + 1):
                    along += U[a, c] * (runs.means[r, j, a] - model.mean[a])
                    if model.scale.shape[0] > 0:
                        density -= 0.5 * U[a, c] * inner(model.scale[a, : c + 1], U[: c + 1, c].copy())
                density -= 0.5 * model.shrinkage * along * along
    return density
