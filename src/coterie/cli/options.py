"""Options that several commands share."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, cast

from cyclopts import Group, Parameter

from coterie.errors import ParameterError
from coterie.jobs import Dates, DecimalMark, Device, MapKind, Missing, Number, Scale
from coterie.preparation.name_lists import split_names

FILES = Group("Files", sort_key=1)
DATA = Group("Data", sort_key=2)
ALGORITHM = Group("Algorithm", sort_key=3)
RUNNING = Group("Running", sort_key=4)

Names = list[str] | None
Json = Annotated[bool, Parameter(name="--json", help="Print the result as one JSON object.")]
Force = Annotated[bool, Parameter(group=FILES, help="Overwrite existing files.")]
BatchRows = Annotated[int | None, Parameter(
    group=RUNNING,
    help="Read this many rows at a time, for tables larger than memory. Numbers are stored in a temporary file. The "
    "result does not depend on it.",
)]  # fmt: skip


class OptionGroup:
    """Options that are passed to a job under the same names."""

    def as_dict(self) -> dict[str, Any]:
        """Options that were set, by name; lists of names are split at commas."""
        options = {field.name: getattr(self, field.name) for field in fields(cast(Any, self))}
        known = {name: value for name, value in options.items() if value is not None}
        return {name: split(value) if isinstance(value, list) else value for name, value in known.items()}


@Parameter(name="*", group=DATA)
@dataclass(frozen=True)
class SourceOptions(OptionGroup):
    """Where the table is in its file."""

    sheet: Annotated[str | None, Parameter(help="Sheet of a workbook; default: the first.")] = None
    header_row: Annotated[int | None, Parameter(
        help="Line or row with the column names, counted from 1; default: it is found.",
    )] = None  # fmt: skip
    sql: Annotated[str | None, Parameter(
        help="Query in a DuckDB database, or about the table data in a .csv, .parquet or .ndjson file.",
    )] = None  # fmt: skip
    series: Annotated[Names, Parameter(
        help="Columns of a long table of series: their name, the time and the value, as in id,time,value.",
    )] = None  # fmt: skip


@Parameter(name="*", group=DATA)
@dataclass(frozen=True)
class DataOptions(SourceOptions):
    """How the columns of a table become numbers."""

    columns: Annotated[Names, Parameter(
        alias="-c", help="Columns to use, separated by commas. Default: all numeric columns except identifiers.",
    )] = None  # fmt: skip
    exclude: Annotated[Names, Parameter(help="Columns to leave out, separated by commas.")] = None
    include: Annotated[Names, Parameter(
        help="Columns to use in addition, such as identifiers, separated by commas.",
    )] = None  # fmt: skip
    id: Annotated[str | None, Parameter(help="Column with names of rows; it is not used for clustering.")] = None
    weight: Annotated[str | None, Parameter(help="Column with sample weights.")] = None
    one_hot: Annotated[Names, Parameter(
        help="Categorical columns to encode as zeros and ones, separated by commas.",
    )] = None  # fmt: skip
    scale: Annotated[Scale, Parameter(
        help="Scaling of columns. auto: standard for tables, none for arrays.",
    )] = "auto"  # fmt: skip
    transform: Annotated[Names, Parameter(
        help="Transforms of columns before scaling: log, log1p, sqrt or none, as in log:amount,sqrt:visits.",
    )] = None  # fmt: skip
    dates: Annotated[Dates, Parameter(
        help="Dates. age: days before the latest one; cyclic: also the time of year, week and day; skip.",
    )] = "age"  # fmt: skip
    decimal: Annotated[DecimalMark, Parameter(
        help="Decimal separator of numbers in text. auto: decided for each column.",
    )] = "auto"  # fmt: skip
    na_values: Annotated[Names, Parameter(
        help="Texts that mean a missing value, separated by commas, besides N/A, -, ? and the like.",
    )] = None  # fmt: skip
    missing: Annotated[Missing, Parameter(
        help="Missing values. ignore (kmeans, gmm, mixture only): use the other values of the row.",
    )] = "error"  # fmt: skip


@Parameter(name="*", group=ALGORITHM)
@dataclass(frozen=True)
class AlgorithmOptions(OptionGroup):
    """Options of algorithms; each applies to some of them only."""

    n_init: Annotated[int | None, Parameter(help="Number of initialisations; the best result is used.")] = None
    max_iter: Annotated[int | None, Parameter(help="Maximum number of iterations of each initialisation.")] = None
    tol: Annotated[float | None, Parameter(help="Tolerance: stop when an iteration improves less than this.")] = None
    search: Annotated[str | None, Parameter(help="Search for a better optimum: auto (default), none, thorough.")] = None
    covariance: Annotated[str | None, Parameter(
        help="gmm, bayes-gmm: full, tied, diag, spherical; gmm also auto, or one of mclust's names such as VVE.",
    )] = None  # fmt: skip
    metric: Annotated[str | None, Parameter(
        help="kmedoids, average, complete, single, weighted, divisive, dbscan, hdbscan: a distance such as manhattan; "
        "kmedians: l1 or l2; kmeans-dtw: dtw, softdtw or euclidean.",
    )] = None  # fmt: skip
    kernel: Annotated[str | None, Parameter(help="kernel: rbf, linear, poly, sigmoid or cosine.")] = None
    gamma: Annotated[float | None, Parameter(help="kernel: gamma of rbf, poly and sigmoid; larger is narrower.")] = None
    fuzzifier: Annotated[float | None, Parameter(help="fuzzy: exponent of the memberships, above 1.")] = None
    batch_size: Annotated[int | None, Parameter(help="minibatch: number of rows in a batch.")] = None
    size_min: Annotated[int | None, Parameter(help="balanced: minimum number of rows in a cluster.")] = None
    size_max: Annotated[int | None, Parameter(help="balanced: maximum number of rows in a cluster.")] = None
    window: Annotated[int | None, Parameter(help="kmeans-dtw: maximum time shift between matched values.")] = None
    eps: Annotated[float | None, Parameter(
        help="dbscan: radius of a neighbourhood; default: a radius whose number of clusters is stable.",
    )] = None  # fmt: skip
    min_samples: Annotated[int | None, Parameter(
        help="dbscan, hdbscan: rows in the neighbourhood of a core row, itself included.",
    )] = None  # fmt: skip
    min_cluster_size: Annotated[int | None, Parameter(
        help="hdbscan: minimum number of rows in a cluster; default: 5.",
    )] = None  # fmt: skip


@Parameter(name="*", group=RUNNING)
@dataclass(frozen=True)
class PrintOptions:
    """What a command prints."""

    as_json: Json = False
    quiet: Annotated[bool, Parameter(alias="-q", help="Print the result only: no notes, no progress.")] = False


@Parameter(name="*", group=RUNNING)
@dataclass(frozen=True)
class RunOptions(OptionGroup):
    """How a command runs."""

    seed: Annotated[int, Parameter(help="Random seed. The same seed gives the same result.")] = 0
    threads: Annotated[int | None, Parameter(
        help="Number of threads; default: all cores. The result does not depend on it.",
    )] = None  # fmt: skip
    device: Annotated[Device, Parameter(help="Device to use: auto, cpu, or cuda (K-means and mixtures).")] = "auto"
    batch_rows: BatchRows = None


@Parameter(name="*", group=RUNNING)
@dataclass(frozen=True)
class PlaceOptions(OptionGroup):
    """Where a fit runs, and its checkpoint."""

    engine: Annotated[str, Parameter(
        help="Where to compute: local; dask (threads in this process); or a cluster: dask:tcp://host:8786, "
        "ray://host:10001.",
    )] = "local"  # fmt: skip
    checkpoint: Annotated[Path | None, Parameter(
        help="File in which the state of the fit is saved about once a second. Run the same command again to resume. "
        "The file is deleted when the fit completes.",
    )] = None  # fmt: skip


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class TableOptions(OptionGroup):
    """Where the table is written."""

    output: Annotated[Path | None, Parameter(
        alias="-o",
        help="Write the table with a cluster column: .csv, .tsv, .parquet, .arrow, .feather, .ndjson, .xlsx, or .npy "
        "(labels)."
    )] = None  # fmt: skip
    safe_csv: Annotated[bool, Parameter(
        help="Write a single quote before text that a spreadsheet program would run as a formula (.csv and .tsv).",
    )] = False  # fmt: skip


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class FitFileOptions(OptionGroup):
    """Other files that a fit writes."""

    model: Annotated[Path | None, Parameter(
        help="Write the fitted model (.safetensors), for predict and coterie.load.",
    )] = None  # fmt: skip
    profiles: Annotated[Path | None, Parameter(
        help="Write one row for each cluster: size, rule, means, medians, shares (.csv, .tsv, .parquet, ...).",
    )] = None  # fmt: skip
    animate: Annotated[Path | None, Parameter(
        help="Write an animation of the fit: a page (.html) or a video (.gif, .mp4).",
    )] = None  # fmt: skip


Map = Annotated[MapKind, Parameter(
    group=FILES, help="Map of the report: axes; neighbours, which keeps near rows together; or auto, both if it helps.",
)]  # fmt: skip


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class PageOptions(OptionGroup):
    """The report."""

    report: Annotated[Path | None, Parameter(help="Write a report (.html), a self-contained HTML file.")] = None
    static: Annotated[bool, Parameter(help="Write the report without JavaScript.")] = False
    force: Force = False


def split(options: Sequence[str] | None) -> tuple[str, ...]:
    """Names, one by one or separated by commas; a name that contains a comma must be in double quotes."""
    return split_names(options or ())


def as_number(text: str) -> Number:
    """``8``, ``2:12`` or ``auto``."""
    if text == "auto":
        return "auto"
    first, colon, last = text.partition(":")
    try:
        return (int(first), int(last)) if colon else int(first)
    except ValueError:
        raise ParameterError(f'-k takes a number (8), a range (2:12) or auto, not "{text}".') from None
