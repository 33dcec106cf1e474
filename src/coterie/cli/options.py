"""Options that commands share, and what their texts mean."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any, cast

from cyclopts import Group, Parameter

from coterie.core.errors import ParameterError
from coterie.jobs import Device, Missing, Number, Scale
from coterie.preparation.name_lists import split_names

FILES = Group("Files", sort_key=1)
DATA = Group("Data", sort_key=2)
ALGORITHM = Group("Algorithm", sort_key=3)
RUNNING = Group("Running", sort_key=4)
INDENT = "    "  # of what is said of a parameter

Names = list[str] | None


def flowing(doc: str | None) -> str | None:
    """A docstring whose lines about a parameter are one, for --help to break where the terminal ends."""
    lines: list[str] = []
    for line in cleandoc(doc or "").splitlines():
        if line.startswith(INDENT) and lines[-1].startswith(INDENT):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    return "\n".join(lines) or None


class Told:
    """Options that are handed on under their own names."""

    def __init_subclass__(cls) -> None:
        cls.__doc__ = flowing(cls.__doc__)

    def told(self) -> dict[str, Any]:
        """As jobs take them."""
        return {field.name: getattr(self, field.name) for field in fields(cast(Any, self))}


@Parameter(name="*", group=DATA)
@dataclass(frozen=True)
class DataOptions(Told):
    """How rows of the table become numbers.

    Parameters
    ----------
    columns
        Columns to use, separated by commas. Without it: every numeric column but identifiers.
    exclude
        Columns to leave out, separated by commas.
    id
        Column that names the rows; it takes no part.
    weight
        Column that says how much each row counts.
    one_hot
        Columns of categories to use as zeros and ones, separated by commas.
    scale
        How to make columns comparable; auto is standard for tables and none for arrays.
    missing
        What to do about missing values; ignore (kmeans, gmm, mixture) uses what is there.
    """

    columns: Annotated[Names, Parameter(alias="-c")] = None
    exclude: Names = None
    id: str | None = None
    weight: str | None = None
    one_hot: Names = None
    scale: Scale = "auto"
    missing: Missing = "error"

    def told(self) -> dict[str, Any]:
        """As jobs take them."""
        return super().told() | {name: split(getattr(self, name)) for name in ("columns", "exclude", "one_hot")}


@Parameter(name="*", group=ALGORITHM)
@dataclass(frozen=True)
class AlgorithmOptions(Told):
    """What an algorithm is told; each belongs to some of them only.

    Parameters
    ----------
    n_init
        Number of random starts; the best one counts.
    max_iter
        Most iterations of a start.
    tol
        Stop when an iteration gains no more than this.
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
        minibatch: rows in a batch.
    size_min
        balanced: fewest rows of a cluster.
    size_max
        balanced: most rows of a cluster.
    window
        kmeans-dtw: how far in time moments may be matched.
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

    def told(self) -> dict[str, Any]:
        """Those that were given, by name."""
        return {name: value for name, value in super().told().items() if value is not None}


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
class RunOptions(Told):
    """How a command runs.

    Parameters
    ----------
    seed
        Seed of all that is random; the same seed gives the same result.
    threads
        Threads to use; all cores if not given. The result does not depend on it.
    device
        What computes; there is nothing for GPUs yet, so that cuda is refused.
    """

    seed: int = 0
    threads: int | None = None
    device: Device = "auto"


@Parameter(name="*", group=RUNNING)
@dataclass(frozen=True)
class BatchOptions(Told):
    """How a table is read.

    Parameters
    ----------
    batch_rows
        Read so many rows at a time: for tables larger than memory. The matrix made of them lies on disk meanwhile.
        The result does not depend on it.
    """

    batch_rows: int | None = None


@Parameter(name="*", group=RUNNING)
@dataclass(frozen=True)
class PlaceOptions(Told):
    """Where a fit runs, and from where it goes on.

    Parameters
    ----------
    engine
        local; dask, by its threads in this process; or dask:tcp://host:8786, a cluster that rows are sent to.
    checkpoint
        A file that the fit writes down as it goes. The same command again goes on from it, with the same result; a
        fit that comes to its end removes it.
    """

    engine: str = "local"
    checkpoint: Path | None = None


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class TableOptions(Told):
    """Where the table is written.

    Parameters
    ----------
    output
        Write the table with its clusters here: .csv, .tsv, .parquet, .arrow, .feather, .ndjson, or .npy (labels).
    safe_csv
        Write a single quote before text that a spreadsheet program would run as a formula (.csv and .tsv).
    """

    output: Annotated[Path | None, Parameter(alias="-o")] = None
    safe_csv: bool = False


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class FitFileOptions(Told):
    """What else a fit writes.

    Parameters
    ----------
    model
        Write the fitted model here (.safetensors), for predict and for coterie.load.
    animate
        Write a page here that plays the fit step by step (.html), or a film of it (.gif, .mp4).
    """

    model: Path | None = None
    animate: Path | None = None


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class PageOptions(Told):
    """Where a page about the result is written.

    Parameters
    ----------
    report
        Write a page about the result here (.html): one file, which asks for nothing outside of it.
    static
        Let that page have no script.
    """

    report: Path | None = None
    static: bool = False


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class ForceOptions(Told):
    """Whether files that are there may go.

    Parameters
    ----------
    force
        Replace files that exist.
    """

    force: bool = False


def split(options: Sequence[str] | None) -> tuple[str, ...]:
    """Names given one by one, or separated by commas; one that has a comma itself stands in double quotes."""
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
