"""A pytest plugin: the names of other libraries are those of coterie, and outcomes go to a file."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from importlib import import_module
from pathlib import Path

REPLACED = [  # module of the other library, module of coterie, names
    ("sklearn.cluster", "coterie.kmeans", "BisectingKMeans KMeans MiniBatchKMeans k_means kmeans_plusplus"),
    ("sklearn.cluster", "coterie.hierarchy", "AgglomerativeClustering"),
    ("sklearn.cluster", "peers.sklearn_density", "DBSCAN HDBSCAN dbscan"),
    (
        "hdbscan",
        "peers.hdbscan_package",
        "HDBSCAN all_points_membership_vectors approximate_predict approximate_predict_scores hdbscan "
        "membership_vector validity_index",
    ),
    ("sklearn.mixture", "coterie.mixture", "BayesianGaussianMixture GaussianMixture"),
    (
        "sklearn.metrics.cluster",
        "coterie.metrics",
        "adjusted_mutual_info_score adjusted_rand_score calinski_harabasz_score completeness_score contingency_matrix "
        "davies_bouldin_score fowlkes_mallows_score homogeneity_completeness_v_measure homogeneity_score "
        "mutual_info_score normalized_mutual_info_score pair_confusion_matrix rand_score silhouette_samples "
        "silhouette_score v_measure_score",
    ),
    (
        "scipy.cluster.hierarchy",
        "coterie.hierarchy",
        "cophenet cut_tree fcluster inconsistent leaves_list linkage optimal_leaf_ordering",
    ),
    ("scipy.spatial.distance", "peers.scipy_distances", "_METRICS_NAMES cdist pdist"),
]


def pytest_configure():
    library = os.environ["PEERS_LIBRARY"]
    for name, home, names in REPLACED:
        if name.partition(".")[0] != library:
            continue
        theirs, ours = import_module(name), import_module(home)
        for each in names.split():
            replacement = getattr(ours, each)
            # SciPy's tests look up which array libraries a function supports.
            if library == "scipy" and callable(replacement):
                from scipy._lib._array_api import xp_capabilities_table

                if getattr(theirs, each) in xp_capabilities_table:
                    xp_capabilities_table[replacement] = xp_capabilities_table[getattr(theirs, each)]
            setattr(theirs, each, replacement)


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        test = report.nodeid.partition("[")[0]
        OUTCOMES[test].add(report.outcome)


OUTCOMES: dict[str, set[str]] = defaultdict(set)


def pytest_sessionfinish(session):
    text = json.dumps({test: sorted(outcomes) for test, outcomes in OUTCOMES.items()})
    Path(os.environ["PEERS_OUTCOMES"]).write_text(text, encoding="utf-8")
