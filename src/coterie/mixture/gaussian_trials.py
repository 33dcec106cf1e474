"""Batches of EM runs of Gaussian mixtures, by matrix products."""

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from coterie import interrupts
from coterie.base import in_memory
from coterie.core import loop
from coterie.core.protocols import Chunk
from coterie.families import forms
from coterie.kmeans.lloyd import Lloyd
from coterie.mixture.agglomerate import agglomerate, cut
from coterie.mixture.degeneracy import degeneracy, required_rows
from coterie.mixture.gaussian_em import Components, GaussianEM, GaussianStats
from coterie.mixture.trials import Effort, Trials

BLOCK = 1 << 16  # numbers of a block of densities
MAX_STORED = 1 << 20  # maximum number of stored monomials; more are computed when they are needed
BY_COLUMN = frozenset(["EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVV", "VVV"])  # structures that allow column scales
TREE_ROWS = 600  # maximum number of rows of a tree, whose cost is quadratic
TREE_WORK = 4e8  # multiply-adds of a tree; a search without known components builds one if it costs less


class GaussianTrials(Trials):
    """EM runs of Gaussian mixtures side by side.

    Densities and second moments are matrix products of the monomials of rows (x_i x_j, x_i, 1) with one column per
    component. So hundreds of components take two products per step, not hundreds of calls. Such sums cancel if rows are
    far from the origin. So rows are centered and scaled: by column if the structure allows it, else by one number.
    """

    auto = Effort(runs=24, candidates=3, splits=0.0, patience=0, work=3e8)
    thorough = Effort(runs=240, candidates=10, splits=1 / 3, patience=3, work=5e9, steps_for_few_rows=90_000)
    pool_size = 1000
    random_methods = ("k-means++", "random_from_data", "random")

    def __init__(self, model: GaussianEM, chunk: Chunk, rng: np.random.Generator):
        super().__init__(model, chunk, rng)
        X = np.asarray(chunk.X, dtype=np.float64)
        X = np.where(np.isnan(X), model.origin, X)
        self.Z = self.standardised(X)
        self.scale = model.unit if model.structure.name in BY_COLUMN else np.full_like(model.unit, model.unit.max())
        self.shift = model.origin
        self.em = replace(
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
        self.upper = np.triu_indices(X.shape[1])
        self.monomials: np.ndarray | None = None
        self.monomials = self._monomials(slice(None)) if self.n * self.n_monomials <= MAX_STORED else None

    def standardised(self, X: np.ndarray) -> np.ndarray:
        return (X - self.model.origin) / self.model.unit

    @property
    def n_monomials(self) -> int:
        d = self.X.shape[1]
        return (len(self.upper[0]) if self.em.form in ("full", "tied") else d) + d + 1

    @property
    def step_work(self) -> float:
        return self.n * self.k * (self.n_monomials + 40)

    def of_rows(self, rows: np.ndarray) -> Self:
        """The same for some of the rows."""
        trials = copy(self)
        trials.n, trials.X, trials.w = len(rows), self.X[rows], self.w[rows]
        trials.known = None if self.known is None else self.known[rows]
        trials.monomials = None if self.monomials is None else self.monomials[rows]
        return trials

    def for_parts(self) -> Self:
        trials = super().for_parts()
        trials.em = replace(self.em, penalty=replace(self.em.penalty, concentration=1.0))
        return trials

    @property
    def smallest_component(self) -> int:
        return int(required_rows(self.em.structure.name, self.X.shape[1])) + 1

    # EM

    def m_step(self, resp: np.ndarray) -> Components:
        runs, _, k = resp.shape
        empty = np.zeros(0)
        reference = Components(np.full((runs, k), 1 / k), np.zeros((runs, k, self.X.shape[1])), empty, empty, empty)
        sums = np.zeros((runs, k, self.n_monomials))
        for part in self._parts(runs * k):
            sums += np.swapaxes(self.w[part, None] * resp[:, part], 1, 2) @ self._monomials(part)
        return self.em.m_step(reference, self._stats(sums, np.zeros(runs)))

    def advance(self, params: Components, steps: int) -> tuple[Components, np.ndarray, np.ndarray]:
        stats, origin = self.e_step(params), np.zeros_like(params.means)
        objective = self.em.objective(params, stats)
        gains = np.full((2, len(objective)), np.inf)
        for _ in range(steps):
            interrupts.check()
            params = self.em.m_step(params._replace(means=origin), stats)
            stats = self.e_step(params)
            before, objective = objective, self.em.objective(params, stats)
            gains = np.stack([gains[1], before - objective])
        return params, objective, gains

    def e_step(self, params: Components) -> GaussianStats:
        """Statistics about the origin, near which the rows are."""
        runs, k, _ = params.means.shape
        sums, bound = np.zeros((k * runs, self.n_monomials)), np.zeros(runs)
        for part, resp, log_density in self._responsibilities(params):
            resp *= self.w[part, None, None]
            sums += resp.reshape(-1, k * runs).T @ self._monomials(part)
            bound += self.w[part] @ log_density
        return self._stats(sums.reshape(k, runs, -1).swapaxes(0, 1), bound)

    def responsibilities(self, params: Components) -> tuple[np.ndarray, np.ndarray]:
        _, resp, log_density = zip(*self._responsibilities(params), strict=True)
        return np.ascontiguousarray(np.concatenate(resp).transpose(2, 0, 1)), np.concatenate(log_density).T

    def _responsibilities(self, params: Components) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """For blocks of rows: their slice, responsibilities (rows, k, runs) and terms of the bounds (rows, runs).

        Runs are the last axis: sums over few components are fast if each adds long contiguous arrays.
        """
        runs, k, _ = params.means.shape
        coefficients, component = self._coefficients(params), np.arange(k)[:, None]
        for part in self._parts(runs * k):
            joint = (self._monomials(part) @ coefficients).reshape(-1, k, runs)
            if self.known is not None:
                known = self.known[part]
                joint[known >= 0] = np.where(known[known >= 0, None, None] == component, joint[known >= 0], -np.inf)
            maximum = joint.max(axis=1, keepdims=True)
            if self.em.e_step_kind == "hard":
                yield part, (joint.argmax(axis=1)[:, None] == component).astype(np.float64), maximum[:, 0]
            else:
                joint -= maximum
                resp = np.exp(joint, out=joint)
                total = resp.sum(axis=1, keepdims=True)
                resp /= total
                yield part, resp, (maximum + np.log(total))[:, 0]

    def result(self, params: Components, run: int) -> Components:
        means = params.means[run] * self.scale + self.shift
        scale = {"spherical": self.scale[0] ** 2, "diag": self.scale**2}.get(
            self.em.form, np.outer(self.scale, self.scale)
        )
        orientation = None if params.orientation is None else params.orientation[run]
        return self.em.components(params.weights[run], means, params.covariances[run] * scale, orientation)

    def degeneracy(self, params: Components) -> np.ndarray:
        return degeneracy(self.em, self.n, params, 1.0 / self.scale)

    def costs(self, params: Components, objective: np.ndarray) -> np.ndarray:
        """With a prior the objectives, otherwise minus the log-likelihoods.

        The penalty of `reg_covar` prevents collapses, but does not compare optima.
        """
        penalty = self.em.penalty
        has_prior = penalty.scale is not None or np.any(np.asarray(penalty.concentration) != 1.0)
        return objective if has_prior else -self.e_step(params).bound

    # starts

    def scores_around(self, rows: Any, resp: np.ndarray | None = None, among: Any = None) -> np.ndarray:
        centers = self.Z[rows] if resp is None else resp.T @ self.Z[rows] / resp.sum(axis=0)[:, None]
        Z = self.Z if among is None else self.Z[among]
        return Z @ centers.T - 0.5 * (centers**2).sum(axis=1) - 0.5 * (Z**2).sum(axis=1)[:, None]

    def nearness(self, params: Components, runs: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Minus squared distances by the mean covariance of the components."""
        d = self.X.shape[1]
        dense = forms.dense(self.em.form, params.covariances, *params.means.shape[-2:])
        mean = np.einsum("rk,rkij->rij", params.weights, dense)
        size = np.trace(mean, axis1=1, axis2=2)[:, None, None] / d
        metrics = np.swapaxes(np.linalg.inv(np.linalg.cholesky(mean + 1e-9 * size * np.eye(d))), -1, -2)
        return np.stack(
            [-(((self.X - self.X[row]) @ metrics[run]) ** 2).sum(axis=1) for run, row in zip(runs, rows, strict=True)]
        )

    def default_start(self) -> np.ndarray:
        return self.starts("kmeans", 1)

    def further_starts(self) -> list[np.ndarray]:
        starts = [self.starts("kmeans", 1)]
        return [*starts, self.starts("hierarchical", 1)] if self.can_afford_tree() else starts

    def starts(self, method: str, runs: int) -> np.ndarray:
        if method == "kmeans" and self.known is None and self.k > 1:  # K-means would renumber known components
            return self._kmeans(runs)
        if method == "hierarchical":
            rows, merges = self.tree()
            return np.repeat(self.clusters_of_tree(rows, merges), runs, axis=0)
        return super().starts("k-means++" if method == "kmeans" else method, runs)

    def nearest(self, centers: np.ndarray) -> np.ndarray:
        """Responsibilities (runs, n, k) of rows that are assigned to the nearest of the centers (runs, k, d)."""
        squares = (centers**2).sum(axis=-1)[..., None, :] - 2 * self.Z @ np.swapaxes(centers, -1, -2)
        return (squares.argmin(axis=-1)[..., None] == np.arange(centers.shape[-2])).astype(np.float64)

    def _kmeans(self, runs: int) -> np.ndarray:
        source, engine = in_memory(Chunk(self.Z, self.w, 0))
        model = Lloyd(self.k, "k-means++", 1.0, 1e-4 * self.Z.shape[1], bounds=False)
        fits = [loop.fit(model, source, engine, rng=rng, max_iter=100) for rng in self.rng.spawn(runs)]
        return self.nearest(np.stack([fit.params for fit in fits]))

    def can_afford_tree(self) -> bool:
        return min(self.n, TREE_ROWS) ** 2 * (self.Z.shape[1] ** 3 / 3 + 20) < TREE_WORK

    def tree(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows of a model-based tree, a random sample if there are many, and its merges."""
        is_small = self.n <= TREE_ROWS
        rows = np.arange(self.n) if is_small else np.sort(self.rng.choice(self.n, TREE_ROWS, replace=False))
        return rows, agglomerate(self.Z[rows], self.w[rows] / self.w.mean())  # its ridge assumes weights of about 1

    def clusters_of_tree(self, rows: np.ndarray, merges: np.ndarray) -> np.ndarray:
        """Responsibilities (1, n, k): clusters of a tree of some rows, or those of Gaussians of these clusters."""
        labels = cut(merges, min(self.k, len(rows)))
        resp = (labels[:, None] == np.arange(self.k)).astype(np.float64)[None]
        return resp if len(rows) == self.n else self.responsibilities(self.of_rows(rows).first(resp))[0]

    # monomials

    def _parts(self, width: int) -> list[slice]:
        """Blocks of rows whose densities, `width` a row, stay in the cache."""
        rows = max(64, BLOCK // width)
        return [slice(i, i + rows) for i in range(0, len(self.X), rows)]

    def _monomials(self, part: slice) -> np.ndarray:
        """x_i x_j (x_i^2 for diagonal forms), x_i, and 1, of those rows."""
        if self.monomials is not None:
            return self.monomials[part]
        X = self.X[part]
        squares = X[:, self.upper[0]] * X[:, self.upper[1]] if self.em.form in ("full", "tied") else X**2
        return np.concatenate([squares, X, np.ones((len(X), 1))], axis=1)

    def _coefficients(self, c: Components) -> np.ndarray:
        """Log joint densities as linear functions of the monomials (monomials, k * runs)."""
        runs, k, d = c.means.shape
        with np.errstate(divide="ignore"):
            offset = np.log(c.weights) - 0.5 * d * np.log(2 * np.pi) + c.log_det
        offset = np.maximum(offset, -1e300)  # of a component without weight: 0 * -inf would be NaN
        if self.em.form in ("diag", "spherical"):
            precision = np.broadcast_to((c.factor**2).reshape(runs, k, -1), (runs, k, d))
            linear, quadratic = precision * c.means, -0.5 * precision
        else:
            factor = c.factor if self.em.form == "full" else c.factor[:, None]
            precision = np.broadcast_to(factor @ np.swapaxes(factor, -1, -2), (runs, k, d, d))
            linear = (precision @ c.means[..., None])[..., 0]
            twice = np.where(self.upper[0] == self.upper[1], 0.5, 1.0)
            quadratic = -twice * precision[..., self.upper[0], self.upper[1]]
        constant = offset - 0.5 * (linear * c.means).sum(axis=-1)
        whole = np.concatenate([quadratic, linear, constant[..., None]], axis=-1)
        return whole.transpose(2, 1, 0).reshape(-1, k * runs)

    def _stats(self, sums: np.ndarray, bound: np.ndarray) -> GaussianStats:
        """Statistics about the origin, from sums of monomials (runs, k, monomials)."""
        (runs, k, _), d = sums.shape, self.X.shape[1]
        sum_xx, sum_x, weight = sums[..., : -d - 1], sums[..., -d - 1 : -1], sums[..., -1]
        form = self.em.form
        if form == "spherical":
            sum_xx = sum_xx.sum(axis=-1)
        elif form != "diag":
            square = np.empty((runs, k, d, d))
            square[..., self.upper[0], self.upper[1]] = square[..., self.upper[1], self.upper[0]] = sum_xx
            sum_xx = square if form == "full" else square.sum(axis=1)
        return GaussianStats(weight, sum_x, sum_xx, bound, bound)
