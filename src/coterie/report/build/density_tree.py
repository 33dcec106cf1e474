"""The figures of a report about density-based clusters: reachability plot and condensed tree."""

from typing import Any

from coterie.plots import CondensedTreeDisplay, ReachabilityDisplay
from coterie.report.html.report import DensityTree


def density_tree(model: Any, names: list[str]) -> DensityTree | None:
    """The data of the figures; None for models without a condensed tree."""
    tree = getattr(model, "condensed_tree_", None)
    if tree is None or len(tree.row_cluster) < 2:
        return None
    reach, boxes = ReachabilityDisplay.from_estimator(model), CondensedTreeDisplay.from_estimator(model)
    corners = (boxes.start, boxes.stop, boxes.birth, boxes.death, boxes.label)
    return DensityTree(
        names,
        reach.edges.tolist(),
        reach.heights.tolist(),
        reach.labels.tolist(),
        list(zip(*(values.tolist() for values in corners), strict=True)),
    )
