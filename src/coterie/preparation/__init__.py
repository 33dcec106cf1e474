"""Columns of a table become numbers: selection, types, missing values, encoding and scaling.

A `Preparation` is fitted to one table, stored with the model, and applied to others. Importing this package is cheap.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Scale: TypeAlias = Literal["auto", "standard", "robust", "minmax", "none"]
Missing: TypeAlias = Literal["error", "drop", "mean", "median", "ignore"]
Dates: TypeAlias = Literal["age", "cyclic", "skip"]
DecimalMark: TypeAlias = Literal["auto", "point", "comma"]
ModelMissing: TypeAlias = Literal["auto", "error", "drop", "ignore"]

DUPLICATE_SHARE = 0.05  # share of duplicate rows above which there is a warning


@dataclass(frozen=True)
class SkippedColumn:
    """A column that is not used, and the reason: ``text``, ``identifier``, ``constant`` …"""

    name: str
    reason: str
    option: str = ""  # option of the command line that uses the column; empty if there is none


@dataclass(frozen=True, kw_only=True)
class PreparationOptions:
    """Options for preparing the rows of a table."""

    columns: tuple[str, ...] = ()  # columns to use; by default every numeric column that is not an identifier
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()  # columns to use besides those that are used by default
    id: str | None = None  # column of row names
    weight: str | None = None  # column of row weights
    one_hot: tuple[str, ...] = ()  # categorical columns to encode as a column of zeros and ones for each value
    scale: Scale = "auto"  # ``standard`` for a table, ``none`` for arrays, whose columns are assumed to have one unit
    transform: tuple[str, ...] = ()  # such as ``log:amount``; ``none:amount`` keeps ``scale="auto"`` from choosing one
    dates: Dates = "age"  # dates as age in days; ``cyclic`` adds the time of year, week and day
    decimal: DecimalMark = "auto"  # decimal separator in text
    na_values: tuple[str, ...] = ()  # texts that mean a missing value, besides the usual ones
    missing: Missing = "error"  # treatment of missing values; ``ignore`` passes them to the algorithm
