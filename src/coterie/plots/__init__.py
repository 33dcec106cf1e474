"""Figures of data, models and results with matplotlib.

Each function draws into matplotlib Axes and returns a `Display` with `ax_` and `figure_`, as scikit-learn does. A
notebook shows a display in the last line of a cell; its methods are also those of the Axes. `animate` returns an
`Animation`, which notebooks show as a player and whose `save` writes a file. matplotlib is imported only for drawing.
"""

from coterie.core.lazy import attach

_NAMES = {  # by module, which is imported when one of its names is first used
    "animation": "Animation animate",
    "clusters_display": "ClustersDisplay ProfilesDisplay VoronoiDisplay clusters profiles voronoi",
    "convergence_display": "BoundDisplay ConvergenceDisplay Starts bound convergence",
    "criteria_display": "CriteriaDisplay InformationDisplay criteria information",
    "dendrogram_display": "DendrogramDisplay CondensedTreeDisplay ReachabilityDisplay "
    "condensed_tree dendrogram reachability",
    "display": "Display",
    "ellipses_display": "EllipsesDisplay ResponsibilitiesDisplay ellipses responsibilities",
    "k_displays": "ElbowDisplay GapDisplay StabilityDisplay elbow gap stability",
    "plate_display": "PlateDisplay plate",
    "series_display": "DTWPathDisplay SeriesDisplay dtw_path series",
    "silhouette_display": "SilhouetteDisplay silhouette",
}
_HOME = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_HOME]

__getattr__ = attach(__name__, _HOME)
