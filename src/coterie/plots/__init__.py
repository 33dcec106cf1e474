"""Figures of data, models and results with matplotlib.

Each function draws into matplotlib Axes and returns a `Display` with `ax_` and `figure_`, as scikit-learn does. A
notebook shows a display in the last line of a cell; its methods are also those of the Axes. `animate` returns an
`Animation`, which notebooks show as a player and whose `save` writes a file. matplotlib is imported only for drawing.
"""

from coterie.plots.animation import Animation, animate
from coterie.plots.clusters_display import ClustersDisplay, clusters
from coterie.plots.convergence_display import BoundDisplay, ConvergenceDisplay, Starts, bound, convergence
from coterie.plots.criteria_display import CriteriaDisplay, criteria
from coterie.plots.dendrogram_display import DendrogramDisplay, dendrogram
from coterie.plots.density_tree_displays import CondensedTreeDisplay, ReachabilityDisplay, condensed_tree, reachability
from coterie.plots.display import Display
from coterie.plots.dtw_path_display import DTWPathDisplay, dtw_path
from coterie.plots.ellipses_display import EllipsesDisplay, ellipses
from coterie.plots.information_display import InformationDisplay, information
from coterie.plots.k_displays import ElbowDisplay, GapDisplay, StabilityDisplay, elbow, gap, stability
from coterie.plots.plate_display import PlateDisplay, plate
from coterie.plots.profiles_display import ProfilesDisplay, profiles
from coterie.plots.responsibilities_display import ResponsibilitiesDisplay, responsibilities
from coterie.plots.series_display import SeriesDisplay, series
from coterie.plots.silhouette_display import SilhouetteDisplay, silhouette
from coterie.plots.voronoi_display import VoronoiDisplay, voronoi

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
