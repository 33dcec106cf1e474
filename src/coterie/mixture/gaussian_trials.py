"""Batches of EM runs of Gaussian mixtures, in compiled code."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from coterie import interrupts
from coterie.core.nested_arrays import join, select
from coterie.core.protocols import Chunk
from coterie.families import forms
from coterie.mixture.agglomerate import agglomerate, cut
from coterie.mixture.degeneracy import degeneracy, required_rows
from coterie.mixture.gaussian_em import Components, GaussianEM
from coterie.mixture.trials import MixtureEffort, Trials

if TYPE_CHECKING:
    from coterie.kernels.cpu.gaussian_runs import Descents, Runs

BY_COLUMN = frozenset(["EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVV", "VVV"])  # structures that allow column scales
CALL_WORK = 1e9  # multiply-adds of one call of a kernel, so that Ctrl-C works during long searches
TREE_ROWS = 600  # maximum number of rows of a tree, whose cost is quadratic
ROUNDING = 1e-14  # share of the variance of a column that is rounding in compiled sums
CANDIDATES = 3  # rows that k-means++ compares for each center
TREE_WORK = 4e8  # multiply-adds of a tree; a search without known components builds one if it costs less


class GaussianTrials(Trials):
    """EM runs of Gaussian mixtures in compiled code: no run returns to Python between its steps.

    Sums of squares cancel if rows are far from the origin. So rows are centered and scaled: by column if the structure
    allows it, else by one number.
    """

    auto = MixtureEffort(
        batch=24, agree=3, jumps=20, restart=1, work=3e7, steps=(100, 400), solutions=3,
        short=6, continued=3, polish=2e7,
    )  # fmt: skip
    thorough = MixtureEffort(
        batch=120, agree=8, jumps=11, restart=4, work=5e9, steps=(2000, 60_000), solutions=10,
        short=10, continued=60, splits=1 / 3, polish=2e7,
    )  # fmt: skip
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
        self._compiled: dict[int, Descents] = {}

    def standardised(self, X: np.ndarray) -> np.ndarray:
        return (X - self.model.origin) / self.model.unit

    @property
    def step_work(self) -> float:
        d = self.X.shape[1]
        moments = d * (d + 1) // 2 if self.em.form in ("full", "tied") else d
        return self.n * self.k * (moments + d + 41)

    def of_rows(self, rows: np.ndarray) -> Self:
        """The same for some of the rows."""
        trials = copy(self)
        trials.n, trials.X, trials.w = len(rows), self.X[rows], self.w[rows]
        trials.known = None if self.known is None else self.known[rows]
        trials._compiled = {}
        return trials

    def for_parts(self) -> Self:
        trials = super().for_parts()
        trials.em = replace(self.em, penalty=replace(self.em.penalty, concentration=1.0))
        trials._compiled = {}
        return trials

    @property
    def smallest_component(self) -> int:
        return int(required_rows(self.em.structure.name, self.X.shape[1])) + 1

    # EM

    def m_step(self, resp: np.ndarray) -> Runs:
        return self._descents(resp.shape[2]).first(resp)

    def advance(
        self, params: Runs, steps: int, tol: float = -np.inf, is_extrapolated: bool = False
    ) -> tuple[Runs, np.ndarray, np.ndarray, int]:
        size = max(1, int(CALL_WORK / (max(steps, 1) * self.step_work)))
        parts = []
        for first in range(0, max(len(params.weights), 1), size):
            interrupts.check()
            runs = select(params, slice(first, first + size))
            parts.append(self._descents(self.k).advance(runs, steps, tol, is_extrapolated))
        moved, objective, gains, n_steps = zip(*parts, strict=True)
        return join(list(moved)), np.concatenate(objective), np.concatenate(gains, axis=1), sum(n_steps)

    def responsibilities(self, params: Runs) -> tuple[np.ndarray, np.ndarray]:
        return self._descents(params.weights.shape[1]).responsibilities(params)

    def _descents(self, k: int) -> Descents:
        """Compiled EM of k components."""
        from coterie.kernels.cpu.covariances import NAMES
        from coterie.kernels.cpu.gaussian import E_STEPS
        from coterie.kernels.cpu.gaussian_runs import Descents, Model

        if k not in self._compiled:
            penalty, d = self.em.penalty, self.X.shape[1]
            model = Model(
                NAMES.index(self.em.structure.name),
                E_STEPS[self.em.e_step_kind],
                self.em.sweeps,
                penalty.floor,
                ROUNDING * self.em.unit**2,
                np.zeros((0, 0)) if penalty.scale is None else penalty.scale,
                penalty.rows,
                np.broadcast_to(penalty.mean, d).astype(np.float64),
                penalty.shrinkage,
                np.broadcast_to(penalty.concentration, k).astype(np.float64),
            )
            self._compiled[k] = Descents(self.X, self.w, self.known, self.em.form, k, model)
        return self._compiled[k]

    def _components(self, params: Runs) -> Components:
        """The parameters, with covariances by form."""
        count, k, d = params.means.shape
        shape = (count, *forms.shape(self.em.form, k, d))
        covariances, factor = params.covariances.reshape(shape), params.factor.reshape(shape)
        return Components(params.weights, params.means, covariances, factor, params.log_det, params.orientation)

    def result(self, params: Runs, run: int) -> Components:
        means = params.means[run] * self.scale + self.shift
        scale = {"spherical": self.scale[0] ** 2, "diag": self.scale**2}.get(
            self.em.form, np.outer(self.scale, self.scale)
        )
        orientation = params.orientation[run] if params.orientation.size else None
        covariances = self._components(params).covariances[run] * scale
        return self.em.components(params.weights[run], means, covariances, orientation)

    def degeneracy(self, params: Runs) -> np.ndarray:
        return np.minimum(degeneracy(self.em, self.n, self._components(params), 1.0 / self.scale), 1)

    def costs(self, params: Runs, objective: np.ndarray) -> np.ndarray:
        """With a prior the objectives, otherwise minus the log-likelihoods.

        The penalty of `reg_covar` prevents collapses, but does not compare optima.
        """
        penalty = self.em.penalty
        has_prior = penalty.scale is not None or np.any(np.asarray(penalty.concentration) != 1.0)
        return objective if has_prior else -(self.responsibilities(params)[1] @ self.w)

    # starts

    def scores_around(self, rows: Any, resp: np.ndarray | None = None, among: Any = None) -> np.ndarray:
        centers = self.Z[rows] if resp is None else resp.T @ self.Z[rows] / resp.sum(axis=0)[:, None]
        Z = self.Z if among is None else self.Z[among]
        return Z @ centers.T - 0.5 * (centers**2).sum(axis=1) - 0.5 * (Z**2).sum(axis=1)[:, None]

    def nearness(self, params: Runs, runs: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Minus squared distances by the mean covariance of the components."""
        d = self.X.shape[1]
        dense = forms.dense(self.em.form, self._components(params).covariances, *params.means.shape[-2:])
        mean = np.einsum("rk,rkij->rij", params.weights, dense)
        size = np.trace(mean, axis1=1, axis2=2)[:, None, None] / d
        metrics = np.swapaxes(np.linalg.inv(np.linalg.cholesky(mean + 1e-9 * size * np.eye(d))), -1, -2)
        return np.stack(
            [-(((self.X - self.X[row]) @ metrics[run]) ** 2).sum(axis=1) for run, row in zip(runs, rows, strict=True)]
        )

    def default_start(self) -> np.ndarray:
        return self.starts("kmeans", 1)

    def first_starts(self, kind: str) -> np.ndarray:
        """Results of K-means, and in a thorough search a tree."""
        starts = self.starts("kmeans", 3)
        has_tree = kind == "thorough" and self.known is None and self.can_afford_tree()
        return np.concatenate([starts, self.starts("hierarchical", 1)]) if has_tree else starts

    def short_starts(self, runs: int) -> np.ndarray:
        """Half of the starts are from K-means, the others from rows far from each other and from random rows."""
        if self.known is not None:
            return self.random_starts(runs)
        random = self.rng.random((runs // 2, self.n)).argpartition(self.k - 1, axis=1)[:, : self.k]
        random[0] = self._far_rows()
        return np.concatenate([self._clusters(runs - len(random)), self._clusters(len(random), self.Z[random], 1)])

    def starts(self, method: str, runs: int) -> np.ndarray:
        if method == "kmeans" and self.known is None and self.k > 1:  # K-means would renumber known components
            return self._clusters(runs)
        if method == "hierarchical":
            rows, merges = self.tree()
            return np.repeat(self.clusters_of_tree(rows, merges), runs, axis=0)
        return super().starts("k-means++" if method == "kmeans" else method, runs)

    def nearest(self, centers: np.ndarray) -> np.ndarray:
        """Responsibilities (runs, n, k) of rows that are assigned to the nearest of the centers (runs, k, d)."""
        squares = (centers**2).sum(axis=-1)[..., None, :] - 2 * self.Z @ np.swapaxes(centers, -1, -2)
        return (squares.argmin(axis=-1)[..., None] == np.arange(centers.shape[-2])).astype(np.float64)

    def _clusters(self, runs: int, centers: np.ndarray | None = None, max_iter: int = 10) -> np.ndarray:
        """Responsibilities (runs, n, k) of results of K-means, from k-means++ or from these `centers` (runs, k, d)."""
        from coterie.kernels.cpu.lloyd_runs import lloyd_runs, numbers_per_run

        u = self.rng.random((runs, numbers_per_run(self.k, CANDIDATES)))
        labels = lloyd_runs(self.Z, self.w, self.k, u, max_iter, 1e-4 * self.Z.shape[1], centers).labels
        return (labels[..., None] == np.arange(self.k)).astype(np.float64)

    def _far_rows(self) -> list[int]:
        """Indices of k rows, each of them as far as possible from those before, to find small clusters."""
        rows = [int(self.rng.integers(self.n))]
        nearest = np.full(self.n, np.inf)
        for _ in range(self.k):
            nearest = np.minimum(nearest, ((self.Z - self.Z[rows[-1]]) ** 2).sum(axis=1))
            rows.append(int(nearest.argmax()))
        return rows[1:]

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
