"""Where EM starts: partitions or posteriors of a sample of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.base import in_memory
from coterie.core import loop
from coterie.core.protocols import Chunk, Engine, Source
from coterie.errors import InputError
from coterie.kmeans.lloyd import Lloyd
from coterie.mixture.agglomerate import agglomerate, cut
from coterie.mixture.gaussian_em import Components, GaussianEM
from coterie.mixture.search import search
from coterie.mixture.trials import Trials

METHODS = ("auto", "kmeans", "k-means++", "random", "random_from_data", "hierarchical")
SAMPLE = 2000  # rows on which starts are sought; more where components or columns are many
TREE = 600  # rows of a tree: it costs their square
TREE_WORK = 4e8  # multiply-adds beyond which "auto" does without a tree


@dataclass(frozen=True)
class Start:
    """Finds the parameters EM starts from, on a sample of the rows; `given` ones replace those found."""

    method: str
    given: tuple[tuple[str, np.ndarray], ...] = ()  # of "weights", "means", "covariances" (by form)

    def __call__(self, model: GaussianEM, source: Source, engine: Engine, rng: np.random.Generator) -> Components:
        rows = Rows(model, sample(model, source, rng), rng)
        given = dict(self.given)
        if "means" in given:
            found = rows.trials.first(rows.nearest(rows.standardised(given["means"])[None]))
        elif self.method == "auto":
            found = search(rows)
        else:
            found = rows.trials.first(rows.posteriors(self.method, 1))
        return model.with_parts(rows.trials.in_place(found, 0), given)


def sample(model: GaussianEM, source: Source, rng: np.random.Generator) -> Chunk:
    """Rows to seek a start on: all of them, if they are few."""
    n, d = source.shape
    wanted = max(SAMPLE, 50 * model.n_components, 5 * model.n_components * d)
    chunk = source.pick(slice(None) if n <= wanted else np.sort(rng.choice(n, wanted, replace=False)))
    X = np.asarray(chunk.X, dtype=np.float64)
    w = np.ones(len(X)) if chunk.w is None else chunk.w
    counting = np.flatnonzero(w)  # rows of no weight would be drawn as starts
    if len(counting) == 0:
        raise InputError(
            f"all {wanted} rows of the random sample have weight 0: drop the rows of weight 0 from X, or set means_init"
        )
    X = np.where(np.isnan(X), model.origin, X)[counting]
    return Chunk(X, w[counting], 0, None if chunk.y is None else chunk.y[counting])


class Rows:
    """Rows to seek a start on, and the posteriors that each method makes of them."""

    def __init__(self, model: GaussianEM, chunk: Chunk, rng: np.random.Generator):
        self.model, self.rng = model, rng
        self.w: Any = chunk.w
        self.known = chunk.y
        self.trials = Trials(model, chunk.X, np.asarray(chunk.w), chunk.y)
        self.Z = self.standardised(chunk.X)

    def standardised(self, X: np.ndarray) -> np.ndarray:
        return (X - self.model.origin) / self.model.unit

    def posteriors(self, method: str, runs: int) -> np.ndarray:
        """So many starts by that method (runs, n, k)."""
        return {
            "kmeans": self._kmeans,
            "k-means++": self._plusplus,
            "random": self._random,
            "random_from_data": self._around_rows,
            "hierarchical": self._tree,
        }[method](runs)

    def can_afford_tree(self) -> bool:
        rows, d = min(len(self.Z), TREE), self.Z.shape[1]
        return rows**2 * (d**3 / 3 + 20) < TREE_WORK

    def nearest(self, centers: np.ndarray) -> np.ndarray:
        """All weight to the nearest of the centers (runs, k, d)."""
        squares = (centers**2).sum(axis=-1)[..., None, :] - 2 * self.Z @ np.swapaxes(centers, -1, -2)
        return (squares.argmin(axis=-1)[..., None] == np.arange(centers.shape[-2])).astype(np.float64)

    def _random(self, runs: int) -> np.ndarray:
        resp = self.rng.random((runs, len(self.Z), self.model.n_components))
        return resp / resp.sum(axis=-1, keepdims=True)

    def _plusplus(self, runs: int) -> np.ndarray:
        """Rows to the nearest of centers drawn by their squared distance from those there are (k-means++)."""
        centers = self._known_means(runs)
        closest = np.ones((runs, len(self.Z)))
        for j in range(self.model.n_components):
            if np.isnan(centers[0, j, 0]):
                mass = closest * self.w
                until = np.where(mass.sum(axis=1, keepdims=True) > 0, mass, self.w).cumsum(axis=1)
                aim = self.rng.random((runs, 1)) * until[:, -1:]
                centers[:, j] = self.Z[np.minimum((until <= aim).sum(axis=1), len(self.Z) - 1)]
            square = ((self.Z - centers[:, j, None]) ** 2).sum(axis=-1)
            closest = square if j == 0 else np.minimum(closest, square)
        return self.nearest(centers)

    def random_starts(self, runs: int) -> np.ndarray:
        """Posteriors (runs, n, k) from k-means++, from random rows and from random numbers, a third each.

        Components around random rows are as wide as all rows together in the middle, and from a third of that to
        three times as wide: clusters inside of each other are found from wide ones, small clusters from narrow ones.
        """
        sharpness = 10.0 ** np.linspace(-1, 1, runs // 3)
        return np.concatenate(
            [
                self._plusplus(runs - 2 * (runs // 3)),
                self._around_rows(runs // 3, sharpness[:, None, None]),
                self._random(runs // 3),
            ]
        )

    def _around_rows(self, runs: int, sharpness: Any = 1.0) -> np.ndarray:
        """The posterior if components lay at rows drawn at random, each as wide as all rows together.

        Densities are raised to the power `sharpness`.
        """
        k, n = self.model.n_components, len(self.Z)
        p = self.w / self.w.sum()
        drawn = np.stack([self.rng.choice(n, k, replace=n < k, p=p) for _ in range(runs)])
        centers = self._known_means(runs)
        centers = np.where(np.isnan(centers), self.Z[drawn], centers)
        joint = self.Z @ np.swapaxes(centers, -1, -2) - 0.5 * (centers**2).sum(axis=-1)[:, None]
        resp = np.exp(sharpness * (joint - joint.max(axis=-1, keepdims=True)))
        return resp / resp.sum(axis=-1, keepdims=True)

    def _known_means(self, runs: int) -> np.ndarray:
        """Means of the rows whose component is known (runs, k, d); NaN for components of which no row is known."""
        k, d = self.model.n_components, self.Z.shape[1]
        means = np.full((k, d), np.nan)
        if self.known is not None:
            for j in np.unique(self.known[self.known >= 0]):
                mine = self.known == j
                means[j] = np.average(self.Z[mine], axis=0, weights=self.w[mine])
        return np.repeat(means[None], runs, axis=0)

    def _kmeans(self, runs: int) -> np.ndarray:
        """Rows to their K-means centers."""
        if self.known is not None:  # K-means would not keep the numbers of the components that are known
            return self._plusplus(runs)
        source, engine = in_memory(Chunk(self.Z, self.w, 0))
        model = Lloyd(self.model.n_components, "k-means++", 1.0, 1e-4 * self.Z.shape[1], bounds=False)
        fits = [loop.fit(model, source, engine, rng=rng, max_iter=100) for rng in self.rng.spawn(runs)]
        return self.nearest(np.stack([found.params for found in fits]))

    def _tree(self, runs: int) -> np.ndarray:
        """Rows to their clusters in a model-based tree; of some rows, where they are many, and then to Gaussians."""
        k, n = self.model.n_components, len(self.Z)
        rows = np.arange(n) if n <= TREE else np.sort(self.rng.choice(n, TREE, replace=False))
        labels = cut(agglomerate(self.Z[rows], self.w[rows]), min(k, len(rows)))
        resp = np.repeat((labels[:, None] == np.arange(k)).astype(np.float64)[None], runs, axis=0)
        if len(rows) == n:
            return resp
        few = self.trials.only(rows)
        return self.trials.posterior(few.first(resp))
