from __future__ import annotations

from coterie import metrics


def test_the_public_names_are_these():
    assert metrics.__all__ == [
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
    assert all(getattr(metrics, name).__doc__ for name in metrics.__all__)
