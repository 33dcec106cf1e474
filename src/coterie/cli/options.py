"""Options that several commands share."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any, cast

from cyclopts import Group, Parameter

from coterie.errors import ParameterError
from coterie.jobs import Device, Missing, Number, Scale
from coterie.preparation.name_lists import split_names

FILES = Group("Files", sort_key=1)
DATA = Group("Data", sort_key=2)
ALGORITHM = Group("Algorithm", sort_key=3)
RUNNING = Group("Running", sort_key=4)
INDENT = "    "  # of the description of a parameter

Names = list[str] | None


def join_lines(doc: str | None) -> str | None:
    """A docstring with the description of each parameter on one line, so that --help can wrap it."""
    lines: list[str] = []
    for line in cleandoc(doc or "").splitlines():
        if line.startswith(INDENT) and lines[-1].startswith(INDENT):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    return "\n".join(lines) or None


class OptionGroup:
    """Options that are passed to a job under the same names."""

    def __init_subclass__(cls) -> None:
        cls.__doc__ = join_lines(cls.__doc__)

    def as_dict(self) -> dict[str, Any]:
        """Options by name."""
        return {field.name: getattr(self, field.name) for field in fields(cast(Any, self))}


@Parameter(name="*", group=DATA)
@dataclass(frozen=True)
class DataOptions(OptionGroup):
    """How the columns of a table become numbers.

    Parameters
    ----------
    columns
        Columns to use, separated by commas. Default: all numeric columns except identifiers.
    exclude
        Columns to leave out, separated by commas.
    id
        Column with names of rows; it is not used for clustering.
    weight
        Column with sample weights.
    one_hot
        Categorical columns to encode as zeros and ones, separated by commas.
    scale
        Scaling of columns. auto: standard for tables, none for arrays.
    missing
        Missing values. ignore (kmeans, gmm, mixture only): use the other values of the row.
    """

    columns: Annotated[Names, Parameter(alias="-c")] = None
    exclude: Names = None
    id: str | None = None
    weight: str | None = None
    one_hot: Names = None
    scale: Scale = "auto"
    missing: Missing = "error"

    def as_dict(self) -> dict[str, Any]:
        return super().as_dict() | {name: split(getattr(self, name)) for name in ("columns", "exclude", "one_hot")}


@Parameter(name="*", group=ALGORITHM)
@dataclass(frozen=True)
class AlgorithmOptions(OptionGroup):
    """Options of algorithms; each applies to some of them only.

    Parameters
    ----------
    n_init
        Number of initialisations; the best result is used.
    max_iter
        Maximum number of iterations of each initialisation.
    tol
        Tolerance: stop when an iteration improves less than this.
    search
        Search for a better optimum. kmeans: none (default), fast or global;
        spherical, kmedians, kmedoids, fuzzy: auto (default), none or fast.
    covariance
        gmm, bayes-gmm: full, tied, diag, spherical; gmm also auto, or one of mclust's names such as VVE.
    metric
        kmedoids, average, complete, single, weighted, divisive: a distance such as manhattan or cosine;
        kmedians: l1 or l2; kmeans-dtw: dtw, softdtw or euclidean.
    kernel
        kernel: rbf, linear, polynomial, sigmoid or cosine.
    gamma
        kernel: width of the kernel.
    fuzzifier
        fuzzy: exponent of the memberships, above 1.
    batch_size
        minibatch: number of rows in a batch.
    size_min
        balanced: minimum number of rows in a cluster.
    size_max
        balanced: maximum number of rows in a cluster.
    window
        kmeans-dtw: maximum time shift between matched values.
    """

    n_init: int | None = None
    max_iter: int | None = None
    tol: float | None = None
    search: str | None = None
    covariance: str | None = None
    metric: str | None = None
    kernel: str | None = None
    gamma: float | None = None
    fuzzifier: float | None = None
    batch_size: int | None = None
    size_min: int | None = None
    size_max: int | None = None
    window: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Options that were set, by name."""
        return {name: value for name, value in super().as_dict().items() if value is not None}


@Parameter(name="*", group=RUNNING)
@dataclass(frozen=True)
class PrintOptions:
    """What a command prints.

    Parameters
    ----------
    as_json
        Print the result as one JSON object.
    quiet
        Print the result only: no notes, no progress.
    """

    as_json: Annotated[bool, Parameter(name="--json")] = False
    quiet: Annotated[bool, Parameter(alias="-q")] = False


@Parameter(name="*", group=RUNNING)
@dataclass(frozen=True)
class RunOptions(OptionGroup):
    """How a command runs.

    Parameters
    ----------
    seed
        Random seed. The same seed gives the same result.
    threads
        Number of threads; default: all cores. The result does not depend on it.
    device
        Device to use: auto or cpu; cuda is not available yet.
    """

    seed: int = 0
    threads: int | None = None
    device: Device = "auto"


@Parameter(name="*", group=RUNNING)
@dataclass(frozen=True)
class BatchOptions(OptionGroup):
    """How the table is read.

    Parameters
    ----------
    batch_rows
        Read this many rows at a time, for tables larger than memory. Numbers are stored in a temporary file. The
        result does not depend on it.
    """

    batch_rows: int | None = None


@Parameter(name="*", group=RUNNING)
@dataclass(frozen=True)
class PlaceOptions(OptionGroup):
    """Where a fit runs, and its checkpoint.

    Parameters
    ----------
    engine
        Where to compute: local; dask (threads in this process); or dask:tcp://host:8786 (a cluster).
    checkpoint
        File in which the state of the fit is saved about once a second. Run the same command again to resume. The
        file is deleted when the fit completes.
    """

    engine: str = "local"
    checkpoint: Path | None = None


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class TableOptions(OptionGroup):
    """Where the table is written.

    Parameters
    ----------
    output
        Write the table with a cluster column: .csv, .tsv, .parquet, .arrow, .feather, .ndjson, or .npy (labels).
    safe_csv
        Write a single quote before text that a spreadsheet program would run as a formula (.csv and .tsv).
    """

    output: Annotated[Path | None, Parameter(alias="-o")] = None
    safe_csv: bool = False


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class FitFileOptions(OptionGroup):
    """Other files that a fit writes.

    Parameters
    ----------
    model
        Write the fitted model (.safetensors), for predict and coterie.load.
    animate
        Write an animation of the fit: a page (.html) or a video (.gif, .mp4).
    """

    model: Path | None = None
    animate: Path | None = None


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class PageOptions(OptionGroup):
    """The report.

    Parameters
    ----------
    report
        Write a report (.html), a self-contained HTML file.
    static
        Write the report without JavaScript.
    """

    report: Path | None = None
    static: bool = False


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class ForceOptions(OptionGroup):
    """Overwrite existing files.

    Parameters
    ----------
    force
        Overwrite existing files.
    """

    force: bool = False


def split(options: Sequence[str] | None) -> tuple[str, ...]:
    """Names given one by one, or separated by commas; a name that contains a comma must be in double quotes."""
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
