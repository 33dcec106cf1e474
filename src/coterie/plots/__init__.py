"""Figures of data, models and results with matplotlib.

Each function draws into matplotlib Axes and returns a `Display` with `ax_` and `figure_`, as scikit-learn does. A
notebook shows a display in the last line of a cell; its methods are also those of the Axes. `animate` returns an
`Animation`, which notebooks show as a player and whose `save` writes a file. matplotlib is imported only for drawing.
"""

from coterie.plots.animation import Animation, animate
from coterie.plots.bound_plot import BoundDisplay, bound
from coterie.plots.clusters_plot import ClustersDisplay, clusters
from coterie.plots.condensed_tree_plot import CondensedTreeDisplay, condensed_tree
from coterie.plots.convergence_plot import ConvergenceDisplay, Starts, convergence
from coterie.plots.criteria_plot import CriteriaDisplay, criteria
from coterie.plots.dendrogram_plot import DendrogramDisplay, dendrogram
from coterie.plots.display import Display
from coterie.plots.dtw_path_plot import DTWPathDisplay, dtw_path
from coterie.plots.elbow_plot import ElbowDisplay, elbow
from coterie.plots.ellipses_plot import EllipsesDisplay, ellipses
from coterie.plots.gap_plot import GapDisplay, gap
from coterie.plots.information_plot import InformationDisplay, information
from coterie.plots.plate_plot import PlateDisplay, plate
from coterie.plots.profiles_plot import ProfilesDisplay, profiles
from coterie.plots.reachability_plot import ReachabilityDisplay, reachability
from coterie.plots.responsibilities_plot import ResponsibilitiesDisplay, responsibilities
from coterie.plots.series_plot import SeriesDisplay, series
from coterie.plots.silhouette_plot import SilhouetteDisplay, silhouette
from coterie.plots.stability_plot import StabilityDisplay, stability
from coterie.plots.voronoi_plot import VoronoiDisplay, voronoi

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
