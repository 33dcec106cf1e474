"""Evaluate clusters: internal indices use the rows, external indices compare labels with known classes."""

from __future__ import annotations

from coterie.metrics.adjusted_mutual_info import adjusted_mutual_info_score
from coterie.metrics.adjusted_rand import adjusted_rand_score
from coterie.metrics.calinski_harabasz import calinski_harabasz_score
from coterie.metrics.contingency import contingency_matrix
from coterie.metrics.davies_bouldin import davies_bouldin_score
from coterie.metrics.dbcv import dbcv_score
from coterie.metrics.dunn import dunn_score
from coterie.metrics.fowlkes_mallows import fowlkes_mallows_score
from coterie.metrics.matched_confusion import matched_confusion
from coterie.metrics.mutual_info import mutual_info_score
from coterie.metrics.normalized_mutual_info import normalized_mutual_info_score
from coterie.metrics.pair_confusion import pair_confusion_matrix
from coterie.metrics.purity import purity_score
from coterie.metrics.rand import rand_score
from coterie.metrics.silhouette import silhouette_samples, silhouette_score
from coterie.metrics.squares import bcss, inertia, tss
from coterie.metrics.v_measure import (
    completeness_score,
    homogeneity_completeness_v_measure,
    homogeneity_score,
    v_measure_score,
)

__all__ = [
    "adjusted_mutual_info_score",
    "adjusted_rand_score",
    "bcss",
    "calinski_harabasz_score",
    "completeness_score",
    "contingency_matrix",
    "davies_bouldin_score",
    "dbcv_score",
    "dunn_score",
    "fowlkes_mallows_score",
    "homogeneity_completeness_v_measure",
    "homogeneity_score",
    "inertia",
    "matched_confusion",
    "mutual_info_score",
    "normalized_mutual_info_score",
    "pair_confusion_matrix",
    "purity_score",
    "rand_score",
    "silhouette_samples",
    "silhouette_score",
    "tss",
    "v_measure_score",
]
