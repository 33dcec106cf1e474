"""Figures: a result in, matplotlib Axes out. Nothing is shown or saved; that is the caller's.

What moves, `animate`, is an `Animation`: notebooks show it as a player, and it saves itself when it is told to.
Importing this loads no matplotlib; drawing does.
"""

from __future__ import annotations

from coterie.plots.animation import Animation, animate
from coterie.plots.blends import ResponsibilitiesDisplay, responsibilities
from coterie.plots.cells import VoronoiDisplay, voronoi
from coterie.plots.choosing import CriteriaDisplay, criteria
from coterie.plots.dendrograms import DendrogramDisplay, dendrogram
from coterie.plots.descent import ConvergenceDisplay, Starts, convergence
from coterie.plots.display import Display
from coterie.plots.elbows import ElbowDisplay, elbow
from coterie.plots.gaps import GapDisplay, gap
from coterie.plots.gaussians import EllipsesDisplay, ellipses
from coterie.plots.heatmap import ProfilesDisplay, profiles
from coterie.plots.jensen import BoundDisplay, bound
from coterie.plots.plates import PlateDisplay, plate
from coterie.plots.returning import StabilityDisplay, stability
from coterie.plots.scatter import ClustersDisplay, clusters
from coterie.plots.silhouettes import SilhouetteDisplay, silhouette
from coterie.plots.structures import InformationDisplay, information
from coterie.plots.warping import DTWPathDisplay, dtw_path

__all__ = [
    "Animation",
    "BoundDisplay",
    "ClustersDisplay",
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
    "ResponsibilitiesDisplay",
    "SilhouetteDisplay",
    "StabilityDisplay",
    "Starts",
    "VoronoiDisplay",
    "animate",
    "bound",
    "clusters",
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
    "responsibilities",
    "silhouette",
    "stability",
    "voronoi",
]
