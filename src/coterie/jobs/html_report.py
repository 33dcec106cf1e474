"""`make_report`: the HTML report of ``coterie report`` from Python, shown in notebooks."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.core import writing
from coterie.core.arguments import as_rng, in_order
from coterie.core.progress import Callback, silent
from coterie.core.progress_bar import shown_progress
from coterie.core.protocols import is_estimator
from coterie.errors import InputError, ParameterError
from coterie.jobs import ReportJob

if TYPE_CHECKING:
    from coterie.report.results import JobResult

LABELS, WEIGHTS = "cluster", "sample_weight"  # names of the columns that are added to the table
HEIGHT = 720  # pixels of the report in a notebook


@dataclass(frozen=True, repr=False)
class HTMLReport:
    """A report as a self-contained HTML page. Notebooks show it in a frame; `save` writes it to a file."""

    html: str = field(repr=False)
    result: JobResult  # the clusters, with their sizes and means

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the page to a file.

        Parameters
        ----------
        path : str or Path
            File that ends in .html.
        overwrite : bool, default=False
            Overwrite an existing file.
        """
        target = _html_path(path)
        writing.check_path(target, overwrite)
        writing.write_whole(target, self.html.encode(), overwrite)

    def __repr__(self) -> str:
        return str(self.result)

    def _repr_html_(self) -> str:
        from coterie.web import embedded

        return str(embedded(self.html, HEIGHT))


@in_order("make_report(X, labels)")
def make_report(
    X: Any,
    labels: Any,
    path: str | PathLike[str] | None = None,
    *,
    title: str | None = None,
    columns: Any = (),
    scale: Any = "auto",
    missing: Any = "error",
    sample_weight: Any = None,
    map: Any = "auto",
    static: bool = False,
    overwrite: bool = False,
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
    verbose: int = 0,
) -> HTMLReport:
    """Describe clusters in a self-contained HTML page: what they are, and how far to trust them.

    The clusters may come from any library. The page is that of ``coterie report``.

    Parameters
    ----------
    X : array, data frame, or path of a table of shape (n, d)
        The rows. Columns of a frame that are not numbers are not used, but the page shows how they differ between
        clusters.
    labels : array of shape (n,), fitted estimator, or str
        The cluster of each row, by numbers or names; -1 means no cluster. The clusters of an estimator of any library
        are those that it predicts for `X`. A string is the name of a column of `X`.
    path : str, Path or None, default=None
        File to write, which ends in .html. None writes no file.
    title : str or None, default=None
        Title of the page.
    columns : sequence of str, default=()
        Columns to use; by default every numeric column that is not an identifier, or the columns of the estimator.
    scale : {'auto', 'standard', 'robust', 'minmax', 'none'}, default='auto'
        Scaling of the columns before distances are computed. 'auto' does not scale arrays, nor the rows of an
        estimator, and standardises data frames.
    missing : {'error', 'drop', 'mean', 'median', 'ignore'}, default='error'
        Treatment of missing values.
    sample_weight : array of shape (n,) or None, default=None
        Row weights.
    map : {'auto', 'axes', 'neighbours'}, default='auto'
        'axes' is a map on principal axes. 'neighbours' adds a map that keeps neighbours together, by t-SNE, and says
        how many it keeps. 'auto' adds it if two principal axes show less than 60 % of the variance.
    static : bool, default=False
        Write the page without JavaScript.
    overwrite : bool, default=False
        Overwrite an existing file.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores.
    random_state : None, int, RandomState or Generator, default=None
        Seed or random generator of samples and resamples.
    callback : callable or None, default=None
        Called with a `Progress` at the start of each stage.
    verbose : int, default=0
        1 shows a progress bar, 2 prints every stage.

    Returns
    -------
    HTMLReport
        Notebooks show it. It has `html`, `result` and `save(path)`.

    Examples
    --------
    >>> from coterie import KMeans, make_report
    >>> from coterie.datasets import make_blobs
    >>> X, _ = make_blobs(200, 3, centers=3, cluster_std=0.5, random_state=0)
    >>> report = make_report(X, KMeans(3, random_state=0).fit(X), random_state=0)
    >>> sorted(cluster.rows for cluster in report.result.clusters)
    [66, 67, 67]
    >>> report.html.startswith("<!doctype html>")
    True
    """
    target = None if path is None else _html_path(path)
    if target is not None:
        writing.check_path(target, overwrite)
    if find_spec("polars") is None:
        raise ImportError('make_report needs Polars: pip install "coterie[cli]"')
    from coterie.data.tables.frame_table import frame_table, is_frame_like
    from coterie.jobs.option_checks import check_choices
    from coterie.jobs.python_remedies import in_python
    from coterie.jobs.report_job import build_report
    from coterie.report.html import as_html

    model = labels if is_estimator(labels) else None
    description = None if isinstance(labels, str) else "given labels"  # None: the column of that name
    if model is not None:
        columns, description = columns or _columns_of(model, X), type(model).__name__
    if scale == "auto" and (model is not None or not (is_frame_like(X) or isinstance(X, str | PathLike))):
        scale = "none"
    frame, label_name, weight_name = _with_columns(X, labels, sample_weight)
    job = ReportJob(
        frame, labels=label_name, columns=tuple(columns), scale=scale, missing=missing, weight=weight_name,
        seed=_seed(random_state), threads=n_jobs, static=static, map=map,
    )  # fmt: skip
    check_choices(job)
    with shown_progress(callback, verbose) as progress:
        try:
            report = build_report(job, frame_table(frame), progress or silent, model, title, description)
        except InputError as error:
            if (text := in_python(str(error))) == str(error):
                raise
            raise InputError(text) from None
        page = HTMLReport(as_html(report, static=static), report.result)
    if target is not None:
        page.save(target, overwrite=overwrite)
    return page


def _with_columns(X: Any, labels: Any, sample_weight: Any) -> tuple[Any, str, str | None]:
    """The table with columns of labels and weights, and the names of these columns."""
    import polars as pl

    from coterie.data.memory import as_weights
    from coterie.data.tables.frame_table import as_polars
    from coterie.data.tables.reader import read
    from coterie.plots.projection import as_groups, groups_of_model

    frame = read(Path(X)).frame() if isinstance(X, str | PathLike) else as_polars(X)
    label_name, weight_name = labels if isinstance(labels, str) else _free_name(LABELS, frame.columns), None
    if not isinstance(labels, str):
        n = len(frame)
        if is_estimator(labels):
            names = _columns_of(labels, frame)
            rows = frame.select(names) if names else frame if isinstance(X, str | PathLike) else X
            groups = groups_of_model(labels, rows, n, sample_weight)
        else:
            groups = as_groups(labels, n)
        is_number = all(name.isdecimal() for name in groups.names)
        values = [*(map(int, groups.names) if is_number else groups.names), None]  # code -1 is the last: no cluster
        frame = frame.with_columns(pl.Series(label_name, [values[code] for code in groups.codes.tolist()]))
    if sample_weight is not None:
        weight_name = _free_name(WEIGHTS, frame.columns)
        frame = frame.with_columns(pl.Series(weight_name, as_weights(sample_weight, len(frame))))
    return frame, label_name, weight_name


def _columns_of(model: Any, X: Any) -> list[str]:
    """The columns that the estimator was fitted to, if they are columns of `X`."""
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    known = {str(name) for name in getattr(X, "column_names", getattr(X, "columns", ()))}
    return names if known.issuperset(names) else []


def _free_name(name: str, columns: list[str]) -> str:
    """The name, with underscores added until no column has it."""
    while name in columns:
        name += "_"
    return name


def _seed(random_state: Any) -> int:
    if isinstance(random_state, int):
        return random_state
    return int(as_rng(random_state).integers(2**32 - 1))


def _html_path(path: str | PathLike[str]) -> Path:
    if Path(path).suffix.lower() != ".html":
        raise ParameterError(f'path must end in .html; got "{path}"')
    return Path(path)
