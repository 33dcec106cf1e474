"""A pytest plugin: the names of other libraries are those of coterie, and outcomes go to a file."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from importlib import import_module
from pathlib import Path

REPLACED = {  # module of the other library: module of coterie, names
    "sklearn.cluster": (
        "coterie.kmeans coterie.hierarchy",
        "KMeans MiniBatchKMeans BisectingKMeans k_means kmeans_plusplus AgglomerativeClustering",
    ),
    "sklearn.mixture": ("coterie.mixture", "GaussianMixture BayesianGaussianMixture"),
    "sklearn.metrics.cluster": (
        "coterie.metrics",
        "adjusted_mutual_info_score adjusted_rand_score calinski_harabasz_score completeness_score contingency_matrix "
        "davies_bouldin_score fowlkes_mallows_score homogeneity_completeness_v_measure homogeneity_score "
        "mutual_info_score normalized_mutual_info_score pair_confusion_matrix rand_score silhouette_samples "
        "silhouette_score v_measure_score",
    ),
    "scipy.cluster.hierarchy": ("coterie.hierarchy", "linkage cophenet inconsistent"),
}


def pytest_configure(config):
    config.outcomes = defaultdict(set)
    for name, (homes, names) in REPLACED.items():
        theirs, ours = import_module(name), [import_module(home) for home in homes.split()]
        for each in names.split():
            home = next((home for home in ours if each in home.__all__), None)
            if home is not None:
                setattr(theirs, each, getattr(home, each))


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        test = report.nodeid.partition("[")[0]
        OUTCOMES[test].add(report.outcome)


OUTCOMES: dict[str, set[str]] = defaultdict(set)


def pytest_sessionfinish(session):
    text = json.dumps({test: sorted(outcomes) for test, outcomes in OUTCOMES.items()})
    Path(os.environ["PEERS_OUTCOMES"]).write_text(text, encoding="utf-8")
