"""Choice of the number of clusters: sweeps over K, criteria, resampling and tests for clusters."""

from coterie.core.progress import Progress
from coterie.selection.choose_k import choose_k
from coterie.selection.choose_k_result import ChooseK
from coterie.selection.criteria import Curve
from coterie.selection.decision import Decision
from coterie.selection.dendrogram import DendrogramGap, dendrogram_gap
from coterie.selection.gap import Gap, gap_statistic
from coterie.selection.knee import Knee, kneedle, second_derivative
from coterie.selection.mixture_table import MixtureTable, mixture_table
from coterie.selection.splitting import Split, Splitting, g_means, x_means
from coterie.selection.stability import Stability, stability
from coterie.selection.sweep import Sweep, sweep
from coterie.selection.tendency import Tendency, tendency
from coterie.selection.valleys import Valleys
from coterie.selection.votes import Vote

__all__ = [
    "ChooseK",
    "Curve",
    "Decision",
    "DendrogramGap",
    "Gap",
    "Knee",
    "MixtureTable",
    "Progress",
    "Split",
    "Splitting",
    "Stability",
    "Sweep",
    "Tendency",
    "Valleys",
    "Vote",
    "choose_k",
    "dendrogram_gap",
    "g_means",
    "gap_statistic",
    "kneedle",
    "mixture_table",
    "second_derivative",
    "stability",
    "sweep",
    "tendency",
    "x_means",
]
