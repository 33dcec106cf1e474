"""Write hdbscan.npz: trees, labels and scores of the package hdbscan for the tables of its own tests.

Run with ``python tests/density/references/make_references.py`` where hdbscan is installed (`make peers` installs it).
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np

OPTIONS = {
    "default": {},
    "min_samples": {"min_cluster_size": 12, "min_samples": 3},
    "manhattan": {"metric": "manhattan"},
    "leaf": {"cluster_selection_method": "leaf"},
    "epsilon": {"cluster_selection_epsilon": 0.2},
    "leaf epsilon": {"cluster_selection_method": "leaf", "cluster_selection_epsilon": 0.15},
    "max size": {"max_cluster_size": 40},
    "single": {"allow_single_cluster": True},
    "single epsilon": {"allow_single_cluster": True, "cluster_selection_epsilon": 0.2},
}
TREES = ("default", "min_samples", "manhattan")  # the other options select other clusters of the first tree


def main() -> None:
    import hdbscan  # not a requirement of the tests
    from hdbscan.tests.test_hdbscan import X as blobs
    from hdbscan.tests.test_hdbscan import generate_noisy_data

    tables = {"blobs": blobs, "shapes": generate_noisy_data(), "uniform": np.random.default_rng(0).random((150, 2))}
    arrays = {"version": np.array(version("hdbscan")), "options": np.array(json.dumps(OPTIONS))}
    for name, X in tables.items():
        arrays[f"{name}/X"] = X
        for label, options in OPTIONS.items():
            model = hdbscan.HDBSCAN(algorithm="generic", **options).fit(X)
            key = f"{name}/{label}"
            arrays[f"{key}/labels"] = model.labels_.astype(np.int16)
            arrays[f"{key}/probabilities"] = model.probabilities_
            arrays[f"{key}/persistence"] = model.cluster_persistence_
            if label not in TREES:
                continue
            tree = model.condensed_tree_.to_numpy()
            arrays[f"{key}/outlier_scores"] = model.outlier_scores_
            arrays[f"{key}/heights"] = model.single_linkage_tree_.to_numpy()[:, 2]
            arrays[f"{key}/lambda"] = tree["lambda_val"]
            arrays[f"{key}/nodes"] = np.stack([tree[c] for c in ("parent", "child", "child_size")]).astype(np.int16)
    np.savez_compressed(Path(__file__).with_name("hdbscan.npz"), **arrays)


if __name__ == "__main__":
    main()
