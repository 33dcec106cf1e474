"""Data of charts that only reports have; the others are displays of `coterie.plots`."""

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Votes:
    """The support of each number of clusters by each criterion."""

    ks: Array  # (m,)
    support: Array  # (m,) of all criteria combined
    recommended: int
    votes: list[dict[str, Any]]  # name, k, confidence, weight, support (m,), note


@dataclass(frozen=True, eq=False)
class Index:
    """The values of an index for each number of clusters."""

    name: str
    axis: str  # label of the vertical axis
    ks: Array  # (m,)
    values: Array  # (m,)
    errors: Array | None  # (m,)
    best: int | None  # the best number of clusters
    higher_is_better: bool
    note: str | None


@dataclass(frozen=True, eq=False)
class Spreads:
    """Quantiles of columns in each cluster."""

    names: list[str]  # (k,) names of the clusters
    sizes: Array  # (k,) rows
    columns: list[str]  # (c,) the columns in which clusters differ most
    n_columns: int  # all columns
    quantiles: Array  # (k, c, 5) at 5, 25, 50, 75 and 95 %
    sampled: int | None = None  # sample size for clusters that have more rows; None if all rows were used


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of the values of a categorical column in each cluster."""

    column: str
    used: bool  # whether the column was used in the fit
    names: list[str]  # (k,)
    sizes: Array  # (k,)
    values: list[str]  # (v,) the most frequent values; the last may stand for all others
    shares: Array  # (k, v)


@dataclass(frozen=True, eq=False)
class Certainty:
    """Probabilities of the rows for their clusters; the fields have the names of `SilhouetteDisplay`."""

    names: list[str]  # (k,)
    sizes: Array  # (k,)
    means: Array  # (k,)
    below: Array  # (k,) share of rows with a low probability
    outlines: list[Array]  # (k) probabilities in descending order, thinned evenly if there are many
    mean: float
    shown: Array  # indices of the clusters that are drawn
    n: int
    sampled: int | None = None
