"""Many short EM runs at once, on rows few enough to hold their products: to find where a long run should start."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from coterie import interrupts
from coterie.families import forms
from coterie.mixture.gaussian_em import Components, GaussianEM, GaussianStats

BLOCK = 1 << 17  # numbers of a block of densities
KEPT = 1 << 20  # maximum number of stored monomials; more are computed when they are needed
BY_COLUMN = frozenset(["EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVV", "VVV"])  # columns may be scaled under these


class Trials:
    """EM runs side by side: parameters and statistics have a leading axis, one entry a run.

    Densities and second moments are matrix products of the rows' monomials (x_i x_j, x_i, 1) with one column a
    component: hundreds of components cost two products a step, not hundreds of calls. Such sums cancel where rows lie
    far from the origin, so rows are centered and scaled: by column for structures that allow it, else by one number.
    """

    def __init__(self, model: GaussianEM, X: np.ndarray, w: np.ndarray, known: np.ndarray | None):
        self.scale = model.unit if model.structure.name in BY_COLUMN else np.full_like(model.unit, model.unit.max())
        self.shift = model.origin
        self.model = replace(
            model,
            origin=np.zeros_like(model.origin),
            unit=model.unit / self.scale,
            penalty=model.penalty.moved(self.shift, self.scale),
            fixed=frozenset(),
            missing=False,
            sweeps=2,
            e_step_kind="hard" if model.e_step_kind == "hard" else "soft",
        )
        self.X = (X - self.shift) / self.scale
        self.w, self.known = w, known
        self.all: np.ndarray | None = None
        self.upper = np.triu_indices(X.shape[1])
        n, monomials = self.size
        self.all = self._monomials(slice(None)) if n * monomials <= KEPT else None

    @property
    def size(self) -> tuple[int, int]:
        """Rows and monomials."""
        n, d = self.X.shape
        return n, (len(self.upper[0]) if self.model.form in ("full", "tied") else d) + d + 1

    def only(self, rows: np.ndarray) -> Trials:
        """The same on some of the rows."""
        few = copy(self)
        few.X, few.w, few.known = self.X[rows], self.w[rows], None if self.known is None else self.known[rows]
        few.all = None if self.all is None else self.all[rows]
        return few

    def first(self, resp: np.ndarray) -> Components:
        """The runs whose first M-step takes the posteriors `resp` (runs, n, k)."""
        resp = self._respecting_known(resp)
        runs, _, k = resp.shape
        d = self.X.shape[1]
        empty = np.zeros(0)
        nowhere = Components(np.full((runs, k), 1 / k), np.zeros((runs, k, d)), empty, empty, empty)
        sums = np.zeros((runs, k, self.size[1]))
        for part in self._parts(runs * k):
            sums += np.swapaxes(self.w[part, None] * resp[:, part], 1, 2) @ self._monomials(part)
        return self.model.m_step(nowhere, self._stats(sums, nowhere, np.zeros(runs)))

    def advance(self, c: Components, steps: int) -> tuple[Components, np.ndarray, np.ndarray]:
        """The runs after so many EM steps, their objectives, and what the last two steps lowered these by (2, runs)."""
        stats = self.e_step(c)
        objective = self.model.objective(c, stats)
        gains = np.full((2, len(objective)), np.inf)
        for _ in range(steps):
            interrupts.check()
            c = self.model.m_step(c, stats)
            stats = self.e_step(c)
            before, objective = objective, self.model.objective(c, stats)
            gains = np.stack([gains[1], before - objective])
        return c, objective, gains

    def e_step(self, c: Components) -> GaussianStats:
        runs, k, _ = c.means.shape
        sums, bound = np.zeros((k * runs, self.size[1])), np.zeros(runs)
        for part, resp, per_row in self._posteriors(c):
            resp *= self.w[part, None, None]
            sums += resp.reshape(-1, k * runs).T @ self._monomials(part)
            bound += self.w[part] @ per_row
        return self._stats(sums.reshape(k, runs, -1).swapaxes(0, 1), c, bound)

    def posterior(self, c: Components) -> np.ndarray:
        """Of every run and row (runs, n, k)."""
        return self.posterior_and_log_density(c)[0]

    def posterior_and_log_density(self, c: Components) -> tuple[np.ndarray, np.ndarray]:
        """Of every run and row (runs, n, k) and (runs, n)."""
        _, resp, log_density = zip(*self._posteriors(c), strict=True)
        return np.ascontiguousarray(np.concatenate(resp).transpose(2, 0, 1)), np.concatenate(log_density).T

    def _posteriors(self, c: Components) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Blocks of rows: which, their posteriors (rows, k, runs), and their shares of the bounds (rows, runs).

        Runs come last: sums over few components are fast if each adds up long stretches of memory.
        """
        runs, k, _ = c.means.shape
        coefficients, component = self._coefficients(c), np.arange(k)[:, None]
        for part in self._parts(runs * k):
            joint = (self._monomials(part) @ coefficients).reshape(-1, k, runs)
            if self.known is not None:
                known = self.known[part]
                joint[known >= 0] = np.where(known[known >= 0, None, None] == component, joint[known >= 0], -np.inf)
            most = joint.max(axis=1, keepdims=True)
            if self.model.e_step_kind == "hard":
                yield part, (joint.argmax(axis=1)[:, None] == component).astype(np.float64), most[:, 0]
            else:
                joint -= most
                resp = np.exp(joint, out=joint)
                total = resp.sum(axis=1, keepdims=True)
                resp /= total
                yield part, resp, (most + np.log(total))[:, 0]

    def in_place(self, c: Components, run: int) -> Components:
        """One run, as parameters of the rows as they were."""
        means = c.means[run] * self.scale + self.shift
        one = c.covariances[run]
        if self.model.form == "spherical":
            found = one * self.scale[0] ** 2
        else:
            found = one * (self.scale**2 if self.model.form == "diag" else np.outer(self.scale, self.scale))
        orientation = None if c.orientation is None else c.orientation[run]
        return self.model.components(c.weights[run], means, found, orientation)

    def covariances(self, c: Components) -> np.ndarray:
        """Of the rows as they were, as matrices (runs, k, d, d)."""
        found = forms.dense(self.model.form, c.covariances, *c.means.shape[-2:])
        return found * np.outer(self.scale, self.scale)

    def _parts(self, width: int) -> list[slice]:
        """Blocks of rows whose densities, `width` a row, stay in the cache."""
        rows = max(64, BLOCK // width)
        return [slice(i, i + rows) for i in range(0, len(self.X), rows)]

    def _monomials(self, part: slice) -> np.ndarray:
        """x_i x_j (x_i^2 for diagonal forms), x_i, and 1, of those rows."""
        if self.all is not None:
            return self.all[part]
        X = self.X[part]
        squares = X[:, self.upper[0]] * X[:, self.upper[1]] if self.model.form in ("full", "tied") else X**2
        return np.concatenate([squares, X, np.ones((len(X), 1))], axis=1)

    def _coefficients(self, c: Components) -> np.ndarray:
        """Log joint densities as linear functions of the monomials (monomials, k * runs)."""
        runs, k, d = c.means.shape
        with np.errstate(divide="ignore"):
            offset = np.log(c.weights) - 0.5 * d * np.log(2 * np.pi) + c.log_det
        offset = np.maximum(offset, -1e300)  # of a component without weight: 0 * -inf would be NaN
        if self.model.form in ("diag", "spherical"):
            precision = np.broadcast_to((c.factor**2).reshape(runs, k, -1), (runs, k, d))
            linear, quadratic = precision * c.means, -0.5 * precision
        else:
            factor = c.factor if self.model.form == "full" else c.factor[:, None]
            precision = np.broadcast_to(factor @ np.swapaxes(factor, -1, -2), (runs, k, d, d))
            linear = (precision @ c.means[..., None])[..., 0]
            twice = np.where(self.upper[0] == self.upper[1], 0.5, 1.0)
            quadratic = -twice * precision[..., self.upper[0], self.upper[1]]
        constant = offset - 0.5 * (linear * c.means).sum(axis=-1)
        whole = np.concatenate([quadratic, linear, constant[..., None]], axis=-1)
        return whole.transpose(2, 1, 0).reshape(-1, k * runs)

    def _stats(self, sums: np.ndarray, c: Components, bound: np.ndarray) -> GaussianStats:
        """Statistics about the means of `c`, from sums of monomials (runs, k, monomials)."""
        runs, k, d = c.means.shape
        sum_xx, sum_x, weight = sums[..., : -d - 1], sums[..., -d - 1 : -1], sums[..., -1]
        form = self.model.form
        if form == "spherical":
            sum_xx = sum_xx.sum(axis=-1)
        elif form != "diag":
            square = np.empty((runs, k, d, d))
            square[..., self.upper[0], self.upper[1]] = square[..., self.upper[1], self.upper[0]] = sum_xx
            sum_xx = square if form == "full" else square.sum(axis=1)
        sum_dxx = forms.recentered(form, weight, sum_x, sum_xx, c.means)
        return GaussianStats(weight, sum_x - weight[..., None] * c.means, sum_dxx, bound, bound)

    def _respecting_known(self, resp: np.ndarray) -> np.ndarray:
        if self.known is None:
            return resp
        sure = self.known >= 0
        resp = resp.copy()
        resp[:, sure] = self.known[sure, None] == np.arange(resp.shape[2])
        return resp


def chosen(c: Components, runs: Any) -> Components:
    """Some of the runs."""
    orientation = None if c.orientation is None else c.orientation[runs]
    arrays = (c.weights[runs], c.means[runs], c.covariances[runs], c.factor[runs], c.log_det[runs])
    return Components(*arrays, orientation)


def together(parts: list[Components]) -> Components:
    """Runs of several batches as one."""
    arrays: list[Any] = [np.concatenate([c[i] for c in parts]) for i in range(5)]
    if parts[0].orientation is not None:
        arrays.append(np.concatenate([c.orientation for c in parts]))
    return Components(*arrays)


def replaced(c: Components, runs: np.ndarray, by: Components) -> Components:
    """The batch with some of its runs replaced."""
    arrays: list[Any] = []
    for old, new in zip(c[:6], by[:6], strict=True):
        if old is not None:
            old = old.copy()
            old[runs] = new
        arrays.append(old)
    return Components(*arrays)
