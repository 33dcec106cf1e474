"""The data of a report about clusters."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.algorithms import algorithm_of
from coterie.core.progress import Callback, Progress, silent
from coterie.data.tables.reader import Table
from coterie.plots import ConvergenceDisplay, SeriesDisplay, SilhouetteDisplay
from coterie.preparation.fit_preparation import PreparedTable
from coterie.report.build import profiles, reliability
from coterie.report.build.cluster_moments import Moments, closest
from coterie.report.build.cluster_tree import RowNames, cluster_tree, density_trees
from coterie.report.build.command_remedies import with_command_remedies
from coterie.report.build.criteria import criteria
from coterie.report.build.feature_space import cluster_map, cluster_points, feature_space, map_note
from coterie.report.build.fitted_model import FittedModel
from coterie.report.build.neighbour_view import is_offered, neighbour_view
from coterie.report.build.report_source import ReportSource, reproducibility
from coterie.report.formatting import number, percent
from coterie.report.html.report import Absent, Criteria, Measure, NeighbourView, Report
from coterie.report.results import JobResult
from coterie.selection import ChooseK

EXAMPLES = 3  # rows of each cluster that are named
EXTERNAL = "given"  # method of clusters that were not fitted by the job

Codes = NDArray[np.integer]


def build(
    result: JobResult, source: ReportSource, *, silhouettes: SilhouetteDisplay | Absent, python: str | Absent,
    fit: FittedModel | None = None, choice: ChooseK | None = None, animation: dict[str, Any] | None = None,
    all_rows: PreparedTable | None = None, callback: Callback = silent,
) -> Report:  # fmt: skip
    """All data of the report; `all_rows` includes rows without a cluster, for the map."""
    table, prepared, seed, threads = source.table, source.prepared, source.seed, source.threads
    labels = result.labels[prepared.rows.row_mask]
    codes: Codes = np.searchsorted([one.label for one in result.clusters], labels)
    names = [one.display_name for one in result.clusters]
    model = None if fit is None else fit.model
    if isinstance(silhouettes, SilhouetteDisplay):
        silhouettes = replace(silhouettes, names=list(names))
    space = feature_space(prepared, threads)
    means = profiles.means(prepared, codes, result.clusters, names, threads)
    callback(Progress("report: stability"))
    stability = reliability.resampling_stability(prepared, len(names), model, seed, threads)
    callback(Progress("report: checks"))
    diagnosis = reliability.diagnosis(prepared, codes, model, seed, threads)
    if not (source.in_python or isinstance(diagnosis, Absent)):
        diagnosis = with_command_remedies(diagnosis)
    callback(Progress("report: pictures"))
    clusters = cluster_points(space, codes, len(names), prepared.weight)
    if np.isnan(clusters.means).any():  # no row of some cluster has a weight
        clusters = replace(clusters, means=cluster_points(space, codes, len(names)).means)
    columns = profiles.by_difference(means)
    with_noise = prepared if all_rows is None else all_rows
    map_codes, map_space, is_all = codes, space, with_noise is prepared
    if not is_all:
        map_codes = prepared.rows.expand(codes)[with_noise.rows.row_mask]
        map_space = feature_space(with_noise, threads)
    clusters_of_map = clusters if is_all and prepared.weight is None else None  # points have no weights
    shown = cluster_map(map_space, map_codes, names, model, columns, clusters_of_map)
    neighbours: NeighbourView | Absent | None = None
    if is_offered(map_space, source.map):
        callback(Progress("report: neighbour map"))
        neighbours = neighbour_view(map_space, map_codes, names, model, with_noise, seed)
    if isinstance(neighbours, NeighbourView):
        result = replace(result, neighbour_map=neighbours.summary)
    id_name, row_names = _row_names(source)
    nearest = closest(space.X, codes, clusters.means, space.points, EXAMPLES, threads)
    examples = iter(row_names([row for rows in nearest for row in rows]))  # one pass over the table
    return Report(
        result=result,
        requested_k=source.k,
        names=names,
        examples=[[next(examples) for _ in rows] for rows in nearest],
        id_name=id_name,
        weight=source.weight,
        explained=_explained(result, clusters),
        stability=stability,
        silhouettes=silhouettes,
        certainty=reliability.certainty(fit, prepared, codes, names),
        map=shown,
        map_note=map_note(space, shown),
        series=_series(prepared, codes, names, model, result),
        neighbours=neighbours,
        starts_with_neighbours=source.map == "neighbours",
        criteria=_criteria(choice, result, source.k),
        profiles=means,
        spreads=profiles.spreads(prepared, codes, means),
        shares=profiles.shares(table, prepared, codes, names, means.sizes),
        tree=cluster_tree(model, clusters.means, codes, names, row_names),
        convergence=convergence_of(fit),
        diagnosis=diagnosis,
        checked_rows=reliability.checked_rows(prepared),
        reproduce=reproducibility(source, python),
        animation=animation,
        density=density_trees(model),
        in_python=source.in_python,
    )


def _row_names(source: ReportSource) -> tuple[str, RowNames]:
    """The column that names the rows, and a function that returns the names of some rows that are used."""
    skipped = source.prepared.skipped
    column = source.row_id or next((each.name for each in skipped if each.reason == "identifier"), None)
    table_rows = np.flatnonzero(source.prepared.rows.row_mask)
    if column is None:
        return "row, from 0", lambda rows: [f"{row:,}" for row in table_rows[rows]]
    return column, lambda rows: _values(source.table, column, table_rows[rows])


def _values(table: Table, column: str, rows: Codes) -> list[str]:
    """Values of some rows of a column, in one pass over the table."""
    order = np.argsort(rows)
    values: dict[int, Any] = {}
    start = 0
    for batch in table.batches([column]):
        first, last = np.searchsorted(rows[order], [start, start + batch.height])
        indices = order[first:last]
        values.update(zip(indices.tolist(), batch[column].gather(rows[indices] - start).to_list(), strict=True))
        start += batch.height
    return [str(values[i]) for i in range(len(rows))]


def _explained(result: JobResult, clusters: Moments) -> Measure | Absent:
    scores = result.scores
    if "BIC" in scores:
        return Measure("log-likelihood per row", number(scores["log-likelihood a row"]), f"BIC {number(scores['BIC'])}")
    if "evidence bound" in scores:
        return Measure("ELBO", number(scores["evidence bound"]), "evidence lower bound, higher is better")
    if clusters.total <= 0:
        return Absent("all rows are equal")
    share = 1 - clusters.within / clusters.total
    return Measure("variance explained", percent(share, 0), "between clusters, of the total sum of squares")


def _criteria(choice: ChooseK | None, result: JobResult, k: str) -> Criteria | Absent:
    if choice is not None and result.choice is not None:
        return criteria(result.choice, choice, by_criteria=False)
    if result.method == EXTERNAL:
        return Absent("The clusters and their number were given. Run coterie choose-k to compare numbers of clusters.")
    method = algorithm_of(result.method)
    if method.finds_k:
        return Absent(f"{method.title} finds the number of clusters itself.")
    if method.mixed and k == "auto":
        return Absent("The mixture chose the number of components by its evidence lower bound (ELBO).")
    if method.mixed:
        return Absent(f"You set K = {result.k}; the criteria do not support this kind of rows.")
    return Absent(f"You set K = {result.k}; it was not checked. Use -k auto, or run coterie choose-k, to compare.")


def _series(
    prepared: PreparedTable, codes: Codes, names: list[str], model: Any, result: JobResult
) -> SeriesDisplay | None:
    """The series of each cluster, with the centers of the model."""
    if not prepared.preparation.series:
        return None
    clusters = [one.label for one in result.clusters]
    display = SeriesDisplay.from_clusters(np.asarray(prepared.rows.X), codes, model, clusters)
    return replace(display, names=list(names))


def convergence_of(fit: FittedModel | None) -> ConvergenceDisplay | Absent:
    """The objective of every restart, or of the fit."""
    if fit is None:
        return Absent("The clusters were given: there was no fit.")
    if fit.sweep_ks is not None and fit.iterated is None:
        return Absent("The fit was made while K was chosen: it continued the fit for another K.")
    if getattr(fit.iterated, "history_", None) is None:
        return Absent("This algorithm has no iterations.")
    final = ConvergenceDisplay.from_estimator(fit.iterated)
    if fit.restarts is None or final.label != "objective" or len(fit.restarts.histories) < 2:
        return final
    restarts = ConvergenceDisplay.from_result(fit.restarts)
    # A search continues from the best restart; the history of the search is shown then.
    return restarts if np.array_equal(restarts.values[restarts.best], final.values[0]) else final
