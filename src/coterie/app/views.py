"""Answers about runs and maps."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coterie.app import maps
from coterie.app.blob import blob
from coterie.app.execution import Outcome
from coterie.app.failures import FieldError, NotAvailable
from coterie.app.run_views import colors_of, names_of, result_view, run_view
from coterie.app.session import Session
from coterie.core.arrays import Array
from coterie.jobs.fitting import cluster_numbers
from coterie.palette import colours
from coterie.plots import DendrogramDisplay
from coterie.plots.display import plain
from coterie.plots.silhouette_display import SilhouetteDisplay
from coterie.selection import ChooseK
from coterie.web.packing import label_codes

UNKNOWN = -128  # code of a silhouette that was not computed
MAX_HEIGHTS = 200


def map_of(
    session: Session, kind: str = "axes", x: str | None = None, y: str | None = None, run: str | None = None
) -> bytes:
    """The displayed rows on two axes, as they are prepared now, or as they were for a run."""
    table = session.open_table()
    known = None if run is None else session.run(run)
    prepared = session.prepared() if known is None else table.prepared(known.preparation, known.algorithm)
    if kind == "columns":
        if x is None or y is None:
            raise FieldError("A map of columns needs x and y.", "map")
        return maps.columns_map(table, prepared, x, y)
    return maps.axes_and_map(table, prepared)[1] if kind == "axes" else maps.neighbours_map(table, prepared)


def values_of(session: Session, columns: Sequence[str] = ()) -> bytes:
    """Codes of the values of some columns, for filters."""
    return session.open_table().values(columns)


def run_of(session: Session, run: str) -> dict[str, Any]:
    """A run with its result."""
    with session.lock:
        known, live = session.run(run), session.live[run]
        view = run_view(known, live, session.options())
        return view if live.status != "done" else {**view, **result_view(known, live)}


def edited_run(session: Session, run: str, body: Mapping[str, Any]) -> str | dict[str, Any]:
    """The id of a new run of merged clusters, or the run with new names or colours."""
    changed = session.edit(run, body)
    return changed if changed != run else run_of(session, run)


def labels_of(session: Session, run: str, k: int | None = None) -> bytes:
    """The clusters of the displayed rows, and their silhouettes where they are known."""
    outcome, known = session.outcome(run), session.run(run)
    if k is not None:
        labels, n_clusters = _sweep_labels(session.details(run), outcome, k), k
        silhouettes, noise = np.full(len(labels), np.nan), None
        names, colors = [str(j) for j in range(n_clusters)], colours(n_clusters)
    else:
        result = outcome.clusters.result
        labels, n_clusters, silhouettes = result.labels, result.k, row_silhouettes(outcome)
        names, colors, noise = names_of(known, n_clusters), colors_of(known, n_clusters), result.noise
    displayed = session.open_table().displayed
    codes = label_codes(labels[displayed], n_clusters)
    shown = silhouettes[displayed]
    is_known = np.isfinite(shown)
    hundredths = np.where(is_known, np.rint(100 * np.where(is_known, shown, 0.0)), UNKNOWN).astype(np.int8)
    header = {
        "run": run, "k": n_clusters, "m": len(displayed), "names": names, "colors": colors,
        "noise": noise or 0, "unused": int(np.count_nonzero(~outcome.prepared.prepared.rows.row_mask)),
    }  # fmt: skip
    return blob(header, {"labels": codes, "silhouettes": hundredths})


def row_silhouettes(outcome: Outcome) -> Array:
    """(rows of the table,) the silhouettes of the rows that were measured; NaN for others."""
    row_mask, measured = outcome.clusters.members.rows.row_mask, outcome.clusters.measured
    values = np.full(len(row_mask), np.nan)
    if isinstance(measured, SilhouetteDisplay) and measured.rows_ is not None:
        values[np.flatnonzero(row_mask)[measured.rows_]] = measured.silhouettes_
    return values


def _sweep_labels(details: ChooseK | None, outcome: Outcome, k: int) -> Array:
    """The clusters of all rows in the fit for one K of a comparison."""
    if details is None or k not in details.sweep.ks:
        raise NotAvailable(f"K = {k} was not compared in this run.", "k")
    rows, model = outcome.prepared.prepared.rows, details.sweep.model(k)
    if k == 1:
        return rows.expand(np.zeros(rows.n, np.int64))
    labels = np.asarray(model.labels_ if len(model.labels_) == rows.n else model.predict(rows.model_input))
    return rows.expand(cluster_numbers(model, labels)[labels])


def tree_of(session: Session, run: str) -> dict[str, Any]:
    """The heights of the last merges, and the top of the tree as brackets."""
    content = session.outcome(run).content
    if content is None or (Z := getattr(content.fitted.model, "linkage_matrix_", None)) is None:
        raise NotAvailable("This run has no tree.")
    k = content.result.k
    display = DendrogramDisplay.from_result(np.asarray(Z), n_clusters=k)
    descending = np.sort(np.asarray(Z)[:, 2])[::-1]
    return plain({
        "leaves": len(descending) + 1, "heights": descending[:MAX_HEIGHTS], "k_now": k, "height_now": display.height,
        "max": float(descending[0]) if len(descending) else 0.0, "x": display.x, "y": display.y,
        "names": display.leaves, "sizes": display.sizes, "cluster": display.cluster,
    })  # fmt: skip
