"""Distances between rows and between time series, built-in and user-defined."""

from coterie.distances.barycenter import dba
from coterie.distances.distance import Distance, as_distance, register
from coterie.distances.dtw import dtw, dtw_path
from coterie.distances.pairwise import pairwise
from coterie.distances.soft_dtw import soft_dtw

__all__ = ["Distance", "as_distance", "dba", "dtw", "dtw_path", "pairwise", "register", "soft_dtw"]
