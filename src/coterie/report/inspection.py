"""What is in a file, and what is on this machine, as plain data."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ColumnInfo:
    """A column: its type, what is missing, and the range of its numbers or its most frequent values."""

    name: str
    kind: str
    missing: int
    distinct: int
    least: float | None
    mean: float | None
    most: float | None
    examples: tuple[str, ...]
    skipped: str | None  # why `fit` would leave it out unless asked for


@dataclass(frozen=True)
class TableInfo:
    """What ``coterie info`` says of a table."""

    source: str
    size: int  # bytes; of standard input those of the table in memory
    rows: int
    incomplete_rows: int
    duplicate_rows: int
    columns: tuple[ColumnInfo, ...]


@dataclass(frozen=True)
class ModelInfo:
    """What ``coterie info`` says of a model."""

    source: str
    size: int
    estimator: str
    parameters: dict[str, Any]
    columns: tuple[str, ...]
    scale: str | None
    fill: str | None  # of the column: mean, median or another that stands in for missing values
    clusters: int


@dataclass(frozen=True)
class Package:
    """A package that coterie uses: its version, or how to get it."""

    name: str
    version: str | None
    needed_for: str
    install: str


@dataclass(frozen=True)
class MachineInfo:
    """What ``coterie doctor`` finds."""

    coterie: str
    python: str
    platform: str
    cores: int
    threads: int
    free_memory: int
    processor: str
    cache: str  # where compiled kernels are kept
    packages: tuple[Package, ...]
    problems: tuple[str, ...] = ()
