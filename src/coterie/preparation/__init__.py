"""Columns of a table become numbers: selection, types, missing values, encoding and scaling.

A `Preparation` is fitted to one table, stored with the model, and applied to others. Importing this package is cheap.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Scale: TypeAlias = Literal["auto", "standard", "robust", "minmax", "none"]
Missing: TypeAlias = Literal["error", "drop", "mean", "median", "ignore"]
ModelMissing: TypeAlias = Literal["auto", "error", "drop", "ignore"]

DUPLICATE_SHARE = 0.05  # share of duplicate rows above which there is a warning


@dataclass(frozen=True)
class SkippedColumn:
    """A column that is not used, and the reason: ``text``, ``identifier``, ``constant`` …"""

    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class PreparationOptions:
    """Options for preparing the rows of a table."""

    columns: tuple[str, ...] = ()  # columns to use; by default every numeric column that is not an identifier
    exclude: tuple[str, ...] = ()
    id: str | None = None  # column of row names
    weight: str | None = None  # column of row weights
    one_hot: tuple[str, ...] = ()  # categorical columns to encode as a column of zeros and ones for each value
    scale: Scale = "auto"  # ``standard`` for a table, ``none`` for arrays, whose columns are assumed to have one unit
    missing: Missing = "error"  # treatment of missing values; ``ignore`` passes them to the algorithm
