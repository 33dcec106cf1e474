"""Evaluate clusters: internal indices use the rows, external indices compare labels with known classes."""

from coterie.metrics.contingency import contingency_matrix, matched_confusion, purity_score
from coterie.metrics.dbcv import dbcv_score
from coterie.metrics.dunn import dunn_score
from coterie.metrics.mutual_info import (
    adjusted_mutual_info_score,
    completeness_score,
    homogeneity_completeness_v_measure,
    homogeneity_score,
    mutual_info_score,
    normalized_mutual_info_score,
    v_measure_score,
)
from coterie.metrics.pair_counting import adjusted_rand_score, fowlkes_mallows_score, pair_confusion_matrix, rand_score
from coterie.metrics.silhouette import silhouette_samples, silhouette_score
from coterie.metrics.squares import bcss, calinski_harabasz_score, davies_bouldin_score, inertia, tss

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
