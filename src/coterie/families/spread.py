"""Rows about their mean, in units of their spread: what families of clouds compute with."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coterie.families.family import Family, Survey
from coterie.families.normal_prior import sizeable

LIGHT = 1e-8  # share of an average component's weight: one with less is taken to have that much


@dataclass(frozen=True)
class Spread(Survey):
    """Values that no family takes, and how the others lie."""

    count: Any  # (d,)
    mean: Any  # (d,)
    squares: Any  # (d,) of x - mean

    def __add__(self, other: Survey) -> Spread:
        assert isinstance(other, Spread)
        values, count = Survey.__add__(self, other), self.count + other.count
        share, away = other.count / np.maximum(count, 1), other.mean - self.mean
        squares = self.squares + other.squares + self.count * share * away**2
        return Spread(values.off, values.example, count, self.mean + share * away, squares)


class Cloud(Family):
    """A family that computes with rows (x - origin) / unit, one of each a column, found by the survey."""

    _origin: Any = 0.0  # (d,)
    _unit: Any = 1.0  # (d,)
    _finest: float = 1e-10  # of a column's variance: of less, sums of squares know too few digits
    _rows: float = 1.0  # weight of an average component: as many rows are taken to vary by `reg_covar` more

    def survey(self, X: Any) -> Spread:
        found = super().survey(X)
        X = np.where(np.isfinite(X), X, np.nan).astype(np.float64)
        there = ~np.isnan(X)
        count = there.sum(axis=0)
        mean = np.where(there, X, 0.0).sum(axis=0) / np.maximum(count, 1)
        return Spread(found.off, found.example, count, mean, np.where(there, (X - mean) ** 2, 0.0).sum(axis=0))

    def learned(self, survey: Any, holes: bool = False) -> Self:
        found = super().learned(survey, holes)
        return found.in_units(self._rows, survey.mean, survey.squares / np.maximum(survey.count, 1))

    def in_units(self, rows: float, mean: np.ndarray, variance: np.ndarray) -> Self:
        found = copy(self)
        found._rows, found._origin, found._unit = rows, mean, np.sqrt(sizeable(mean, variance))
        return found

    def _divisors(self, weight: np.ndarray) -> np.ndarray:
        """Weights of components to divide sums by: none is so small that a quotient overflows."""
        return np.maximum(weight, LIGHT * self._rows)

    def _place_rounding(self, places: np.ndarray, factor: np.ndarray) -> np.ndarray:
        """What log densities lose because places in the units of the data are rounded, in units of that rounding (k,).

        `factor`, by form, is of components in the rows' units. It matters far from the origin, to thin components.
        """
        inverse = np.sqrt(np.square(factor).sum(axis=-1)) if factor.ndim == 3 else factor.reshape(len(factor), -1)
        eps = float(np.finfo(np.float64).eps)
        off: np.ndarray = (np.abs(places) / self._unit * inverse).sum(axis=1)
        return 0.5 * eps * off**2

    def features(self, X: Any) -> Any:
        return (np.asarray(X, dtype=np.float64) - self._origin) / self._unit

    def row_base(self, X: Any) -> np.ndarray:
        """What the units of the columns that are there add to the log density of a row."""
        logs = np.log(np.broadcast_to(self._unit, X.shape[1]))
        return -(~np.isnan(X) @ logs) if self.holes else np.full(X.shape[0], -logs.sum())
