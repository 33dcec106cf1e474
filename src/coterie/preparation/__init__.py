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
    """Options for preparing the rows of a table; see `coterie.jobs.TableJob`."""

    columns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    id: str | None = None
    weight: str | None = None
    one_hot: tuple[str, ...] = ()
    scale: Scale = "auto"
    missing: Missing = "error"
