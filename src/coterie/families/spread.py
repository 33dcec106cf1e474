"""Rows about their mean, in units of their spread: what families of clouds compute with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coterie.families.family import Family, Survey
from coterie.families.normal_prior import sizeable


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

    def survey(self, X: Any) -> Spread:
        found = super().survey(X)
        X = np.where(np.isfinite(X), X, np.nan).astype(np.float64)
        there = ~np.isnan(X)
        count = there.sum(axis=0)
        mean = np.where(there, X, 0.0).sum(axis=0) / np.maximum(count, 1)
        return Spread(found.off, found.example, count, mean, np.where(there, (X - mean) ** 2, 0.0).sum(axis=0))

    def learned(self, survey: Any, holes: bool = False) -> Self:
        found = super().learned(survey, holes)
        found._origin = survey.mean
        found._unit = np.sqrt(sizeable(survey.mean, survey.squares / np.maximum(survey.count, 1)))
        return found

    def features(self, X: Any) -> Any:
        return (np.asarray(X, dtype=np.float64) - self._origin) / self._unit

    def row_base(self, X: Any) -> np.ndarray:
        """What the units of the columns that are there add to the log density of a row."""
        logs = np.log(np.broadcast_to(self._unit, X.shape[1]))
        return -(~np.isnan(X) @ logs) if self.holes else np.full(X.shape[0], -logs.sum())
