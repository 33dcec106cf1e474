"""Where EM starts: parameters that are found on a sample of the rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.search import kind_of
from coterie.errors import InputError
from coterie.mixture.family_trials import FamilyTrials
from coterie.mixture.gaussian_em import GaussianEM
from coterie.mixture.gaussian_trials import GaussianTrials
from coterie.mixture.search import search
from coterie.mixture.trials import Trials

FAMILY_METHODS = ("auto", "k-means++", "random_from_data", "random")
METHODS = ("auto", "kmeans", "k-means++", "random", "random_from_data", "hierarchical")  # of Gaussian mixtures
SAMPLE = 2000  # rows of the sample; more for many components or columns
WIDE_SAMPLE = 5000  # maximum number of rows because of many columns; Gaussian mixtures have none


@dataclass(frozen=True)
class Start:
    """Finds the parameters from which EM starts, on a sample of the rows; `given` ones replace them."""

    method: str
    search: str = "none"
    given: tuple[tuple[str, np.ndarray], ...] = ()  # of "weights", "means", "covariances" (by form)

    def __call__(self, model: Any, source: Source, engine: Engine, rng: np.random.Generator) -> Any:
        given = dict(self.given)
        trials: Any = trials_of(model, sample(model, source, rng), rng)
        if "means" in given:
            params = trials.first(trials.nearest(trials.standardised(given["means"])[None]))
        elif self.method == "auto" and (trials.k == 1 or kind_of(self.search) == "none"):
            params = trials.first(trials.default_start())
        elif self.method == "auto":
            params = search(trials, kind_of(self.search))
        else:
            params = trials.first(trials.starts(self.method, 1))
        result = trials.result(params, 0)
        return model.with_parts(result, given) if given else result


def trials_of(model: Any, chunk: Chunk, rng: np.random.Generator) -> Trials:
    """Batches of EM runs for this model."""
    return (GaussianTrials if isinstance(model, GaussianEM) else FamilyTrials)(model, chunk, rng)


def sample(model: Any, source: Source, rng: np.random.Generator) -> Chunk:
    """Rows with positive weight on which starts are compared: all of them, or a random sample if they are many."""
    d, k = source.shape[1], model.n_components
    for_columns = 5 * k * d if isinstance(model, GaussianEM) else min(5 * k * d, WIDE_SAMPLE)
    size = max(SAMPLE, 50 * k, for_columns)
    chunk = sample_rows(source, size, rng)
    return chunk._replace(w=chunk.weights)


def sample_rows(source: Source, size: int, rng: np.random.Generator) -> Chunk:
    """Rows with positive weight: all of them, or those of a random sample if there are more than `size` rows."""
    n = source.shape[0]
    chunk = source.pick(slice(None) if n <= size else np.sort(rng.choice(n, size, replace=False)))
    rows = np.flatnonzero(chunk.weights)
    if len(rows) == 0:
        raise InputError(f"all {size} rows of the random sample have weight 0: drop the rows of weight 0 from X")
    w, y = (None if values is None else values[rows] for values in (chunk.w, chunk.y))
    return Chunk(chunk.X[rows], w, 0, y)
