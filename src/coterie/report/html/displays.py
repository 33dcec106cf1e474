"""What a report shows beside the displays of `coterie.plots`: plain numbers, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Votes:
    """What each criterion says of every number of clusters."""

    ks: Array  # (m,)
    support: Array  # (m,) by all together
    recommended: int
    votes: list[dict[str, Any]]  # name, k, confidence, weight, support (m,), note


@dataclass(frozen=True, eq=False)
class Index:
    """An index over the number of clusters, with its own best."""

    name: str
    axis: str
    ks: Array  # (m,)
    values: Array  # (m,)
    errors: Array | None  # (m,)
    best: int | None
    higher_is_better: bool
    note: str | None


@dataclass(frozen=True, eq=False)
class Spreads:
    """How columns are spread in each cluster."""

    names: list[str]  # (k,) of the clusters
    sizes: Array  # (k,) rows
    columns: list[str]  # (c,) those that differ most
    n_columns: int
    quantiles: Array  # (k, c, 5) at 5, 25, 50, 75 and 95 %
    drawn: int | None = None  # rows that were looked at of each cluster that has more, if not all


@dataclass(frozen=True, eq=False)
class Shares:
    """How the values of a column of categories are shared out in each cluster."""

    column: str
    used: bool  # whether it took part in the fit
    names: list[str]  # (k,)
    sizes: Array  # (k,)
    values: list[str]  # (v,) the most frequent ones; the last may be all others
    shares: Array  # (k, v)


@dataclass(frozen=True, eq=False)
class Certainty:
    """How probable it is that rows belong to their own clusters; names are those of a `SilhouetteDisplay`."""

    names: list[str]  # (k,)
    sizes: Array  # (k,)
    means: Array  # (k,)
    below: Array  # (k,) the share of rows that are doubtful
    outlines: list[Array]  # (k) probabilities in descending order, of all rows or of evenly many of them
    mean: float
    shown: Array  # which clusters are drawn
    n: int
    sampled: int | None = None
