"""One cluster: its rule, its distributions beside those of the other rows, and example rows."""

from typing import Any

import numpy as np
import polars as pl

from coterie.app.column_bins import MISSING, number_bins, numbers_of
from coterie.app.column_view import CATEGORICAL
from coterie.app.execution import Outcome
from coterie.app.failures import NotAvailable
from coterie.app.row_view import distances, row_views
from coterie.app.run_views import cluster_view, colors_of, names_of
from coterie.app.session import Session
from coterie.app.views import row_silhouettes
from coterie.core.arrays import Array
from coterie.data.row_sample import sample_rows
from coterie.jobs.info import value_counts
from coterie.plots.display import plain

EXAMPLES = 10  # typical and untypical rows
BINS = 30
MAX_COLUMNS = 40  # distributions
MAX_CATEGORIES = 12
SAMPLE = 200_000  # rows of distributions


def cluster_of(session: Session, run: str, label: int) -> dict[str, Any]:
    outcome, known, table = session.outcome(run), session.run(run), session.open_table()
    content = outcome.content
    summary = None if content is None else next((c for c in content.clusters if c.label == label), None)
    if content is None or summary is None:
        raise NotAvailable(f"There is no cluster {label} with rows in this run.", f"cluster:{label}")
    labels = content.result.labels
    members = np.flatnonzero(labels == label)
    typical, untypical = _examples(outcome, members)
    k = content.result.k
    return plain({
        **cluster_view(summary), "name": names_of(known, k)[label], "color": colors_of(known, k)[label],
        "distributions": _distributions(session, labels, label),
        "typical": {"columns": table.table.columns, "rows": row_views(table, typical, outcome)},
        "untypical": {"columns": table.table.columns, "rows": row_views(table, untypical, outcome)},
    })  # fmt: skip


def _examples(outcome: Outcome, members: Array) -> tuple[Array, Array]:
    """The rows that are most and least typical: by the distance from the center, or else by silhouettes."""
    values = distances(outcome)
    values = -row_silhouettes(outcome) if values is None else values
    order = members[np.argsort(values[members], kind="stable")]
    known = order[np.isfinite(values[order])]
    known = known if len(known) else order
    return known[:EXAMPLES], known[::-1][:EXAMPLES]


def _distributions(session: Session, labels: Array, label: int) -> list[dict[str, Any]]:
    """Histograms of the columns of the table, of the cluster and of all other rows."""
    table = session.open_table()
    sample = sample_rows(table.table.n_rows, SAMPLE)
    is_member = labels[sample] == label
    result = []
    for column in table.columns[:MAX_COLUMNS]:
        name = column.info.name
        values = table.column(name).gather(sample)
        counts = _numbers(values, is_member) if values.dtype.is_numeric() else _categories(values, is_member)
        if counts is not None and column.histogram is not None:
            ends = {key: value for key, value in column.histogram.items() if key in ("low", "high")}
            result.append({"column": name, **ends, **counts})
    return result


def _numbers(column: pl.Series, is_member: Array) -> dict[str, Any] | None:
    codes, bounds = number_bins(numbers_of(column), BINS)
    if len(bounds) == 0:
        return None
    parts = {"cluster": codes[is_member], "rest": codes[~is_member]}
    return {key: np.bincount(part[part != MISSING], minlength=BINS) for key, part in parts.items()}


def _categories(column: pl.Series, is_member: Array) -> dict[str, Any] | None:
    counts = value_counts(column) if column.dtype.base_type() in CATEGORICAL else None
    if counts is None or counts.height > 2 * MAX_CATEGORIES:
        return None
    labels, texts = counts["value"].head(MAX_CATEGORIES).to_list(), column.cast(pl.String)
    parts = {"cluster": texts.filter(pl.Series(is_member)), "rest": texts.filter(pl.Series(~is_member))}
    return {"labels": labels, **{key: [int((part == each).sum()) for each in labels] for key, part in parts.items()}}
