"""Information about files and about this machine as plain data."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ColumnInfo:
    """A column: its type, number of missing values, and its range or its most frequent values."""

    name: str
    kind: str
    missing: int
    distinct: int
    least: float | None  # minimum
    mean: float | None
    most: float | None  # maximum
    examples: tuple[str, ...]
    skipped: str | None  # why `fit` skips the column by default; None if it is used


@dataclass(frozen=True)
class TableInfo:
    """The result of ``coterie info`` for a table."""

    source: str
    size: int  # bytes; for standard input, of the table in memory
    rows: int
    incomplete_rows: int
    duplicate_rows: int
    columns: tuple[ColumnInfo, ...]
    error: str | None = None  # of `fit` without options
    notes: tuple[str, ...] = ()  # of `fit`, about the columns
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelInfo:
    """The result of ``coterie info`` for a model."""

    source: str
    size: int
    estimator: str
    parameters: dict[str, Any]
    columns: tuple[str, ...]
    scale: str | None
    fill: str | None  # statistic of the column that replaces missing values: mean, median, ...
    clusters: int
    names: tuple[str, ...] | None = None  # of the clusters, in the order of their labels


@dataclass(frozen=True)
class Package:
    """A package that coterie uses: its version, or how to install it."""

    name: str
    version: str | None
    needed_for: str
    install: str


@dataclass(frozen=True)
class MachineInfo:
    """The result of ``coterie doctor``."""

    coterie: str
    python: str
    platform: str
    cores: int
    threads: int
    free_memory: int
    processor: str
    kernels: str  # kernels that the package contains, compiled, or why they are not used
    cache: str  # directory of the kernels compiled on this machine
    packages: tuple[Package, ...]
    gpu: str = ""  # its name and memory, or why it is not used
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class CompiledKernels:
    """The result of ``coterie warm``."""

    kernels: int  # that are ready to use
    compiled: int  # by this command
    seconds: float
    cache: str
