"""The neighbour map of a report, and how far to trust it."""

from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.data.row_sample import affordable_series
from coterie.distances import pairwise
from coterie.errors import InputError
from coterie.kmeans.metric_of_model import metric_of
from coterie.plots.neighbour_map import ROWS, Trust, central_points, is_worthwhile, neighbour_map, sample_of_map, trust
from coterie.preparation.fit_preparation import PreparedTable
from coterie.preparation.preparation import Preparation
from coterie.report.build.feature_space import FeatureSpace
from coterie.report.html.report import Absent, NeighbourView
from coterie.report.results import NeighbourMapSummary
from coterie.web import ClusterMap

NAME = "neighbour map (t-SNE)"


def is_offered(space: FeatureSpace, choice: str) -> bool:
    """Whether the report has a neighbour map: on request, or if two principal axes show little of the variance."""
    d = space.X.shape[1]
    share = space.view.share if choice == "auto" and d > 2 else None
    return is_worthwhile(share, len(space)) or (choice == "neighbours" and d > 1)


def neighbour_view(
    space: FeatureSpace, codes: Array, names: list[str], model: Any, prepared: PreparedTable, seed: int
) -> NeighbourView | Absent:
    """The map of the prepared rows, of clusters `codes` (-1: none), with the distances of the model."""
    k, preparation, weight = len(names), prepared.preparation, prepared.weight
    max_rows = affordable_series(len(preparation.numbers), ROWS) if preparation.series else ROWS
    rows = sample_of_map(codes, k, max_rows)
    w = None if weight is None or not weight[rows].any() else weight[rows]
    distances, note = _distances(space, rows, model, preparation)
    try:
        result = neighbour_map(distances, w, seed)
    except InputError as error:
        return Absent(str(error).partition(": use map")[0])
    axes = trust(distances, space.project(rows, space.view.directions, np.zeros(2)), w)
    centers = central_points(result.points, codes[rows], k) if k > 1 else None
    labels, named = (codes[rows], names) if k > 1 else (np.full(len(rows), -1), [])  # one cluster has no colour
    drawn = ClusterMap(("x", "y"), result.points, labels, named, len(codes), centers, title=NAME)
    share = space.view.share
    summary = NeighbourMapSummary(
        rows=len(rows), neighbours=result.trust.neighbours, trustworthiness=result.trust.trustworthiness,
        neighbours_kept=result.trust.neighbours_kept, axes_trustworthiness=axes.trustworthiness,
        axes_neighbours_kept=axes.neighbours_kept, axes_variance=share,
    )  # fmt: skip
    return NeighbourView(drawn, _note(result.trust, axes, share, note), summary)


def _distances(space: FeatureSpace, rows: Array, model: Any, preparation: Preparation) -> tuple[Array, str]:
    """The distances of rows by the metric of the model, and a note about another metric than the Euclidean."""
    is_filled = space.standardised or (space.has_missing and not preparation.series)
    metric = {"metric": "euclidean"} if model is None or is_filled else metric_of(model)
    if metric == {"metric": "euclidean"}:
        return pairwise(space[rows], n_jobs=space.threads), ""
    X = np.asarray(space.X[rows], dtype=np.float64)
    return pairwise(X, n_jobs=space.threads, **metric), f" Distances are those of the model ({metric['metric']})."


def _note(map_trust: Trust, axes: Trust, share: float | None, metric_note: str) -> str:
    """What the map shows and how far to trust it, in plain words."""
    k, axes_name = map_trust.neighbours, "two columns" if share is None else "two principal axes"
    return (
        f"This map places near rows near each other.{metric_note} Of the {k} rows nearest to a row on it, "
        f"{100 * map_trust.neighbours_kept:.0f} % are among its {k} nearest in the data; on the {axes_name}, "
        f"{100 * axes.neighbours_kept:.0f} %. Trustworthiness {map_trust.trustworthiness:.2f} (1 is best, 0.5 is "
        "random). Distances between groups, and the sizes of groups, mean nothing here."
    )
