"""Figures of data, models and results with matplotlib.

Each function draws into matplotlib Axes and returns a `Display` with `ax_` and `figure_`, as scikit-learn does. A
notebook shows a display in the last line of a cell; its methods are also those of the Axes. `animate` returns an
`Animation`, which notebooks show as a player and whose `save` writes a file. matplotlib is imported only for drawing.
"""

from coterie.plots.animation import Animation, animate
from coterie.plots.clusters_display import ClustersDisplay, ProfilesDisplay, VoronoiDisplay, clusters, profiles, voronoi
from coterie.plots.convergence_display import BoundDisplay, ConvergenceDisplay, Starts, bound, convergence
from coterie.plots.criteria_display import CriteriaDisplay, InformationDisplay, criteria, information
from coterie.plots.dendrogram_display import (
    CondensedTreeDisplay,
    DendrogramDisplay,
    ReachabilityDisplay,
    condensed_tree,
    dendrogram,
    reachability,
)
from coterie.plots.display import Display
from coterie.plots.ellipses_display import EllipsesDisplay, ResponsibilitiesDisplay, ellipses, responsibilities
from coterie.plots.k_displays import ElbowDisplay, GapDisplay, StabilityDisplay, elbow, gap, stability
from coterie.plots.plate_display import PlateDisplay, plate
from coterie.plots.series_display import DTWPathDisplay, SeriesDisplay, dtw_path, series
from coterie.plots.silhouette_display import SilhouetteDisplay, silhouette

__all__ = [
    "Animation",
    "BoundDisplay",
    "ClustersDisplay",
    "CondensedTreeDisplay",
    "ConvergenceDisplay",
    "CriteriaDisplay",
    "DTWPathDisplay",
    "DendrogramDisplay",
    "Display",
    "ElbowDisplay",
    "EllipsesDisplay",
    "GapDisplay",
    "InformationDisplay",
    "PlateDisplay",
    "ProfilesDisplay",
    "ReachabilityDisplay",
    "ResponsibilitiesDisplay",
    "SeriesDisplay",
    "SilhouetteDisplay",
    "StabilityDisplay",
    "Starts",
    "VoronoiDisplay",
    "animate",
    "bound",
    "clusters",
    "condensed_tree",
    "convergence",
    "criteria",
    "dendrogram",
    "dtw_path",
    "elbow",
    "ellipses",
    "gap",
    "information",
    "plate",
    "profiles",
    "reachability",
    "responsibilities",
    "series",
    "silhouette",
    "stability",
    "voronoi",
]
