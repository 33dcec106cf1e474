"""Figures compared with reference images that a person has checked.

``COTERIE_PICTURES=keep pytest tests/plots/test_pictures.py`` stores new reference images: look at them before you
commit them. The data of figures are tested elsewhere; this test is for their appearance, such as overlapping text.
"""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from coterie import GaussianMixture, KMeans, choose_k, plots
from coterie.datasets import make_blobs
from coterie.hierarchy import linkage
from coterie.selection import gap_statistic

compare = pytest.importorskip("matplotlib.testing.compare")

KEPT = Path(__file__).parent / "pictures"
TOLERANCE = 8.0  # root mean square of 0 to 255: other versions of fonts and of their edges, not another picture

X = make_blobs(120, 2, centers=3, cluster_std=0.6, random_state=0)[0]
MODEL = KMeans(3, random_state=0).fit(X)

PICTURES = {
    "clusters": lambda: plots.clusters(MODEL, X),
    "voronoi": lambda: plots.voronoi(MODEL, X),
    "silhouette": lambda: plots.silhouette(MODEL, X),
    "dendrogram": lambda: plots.dendrogram(linkage(X[:40], "ward"), n_clusters=3),
    "gap": lambda: plots.gap(gap_statistic(X, range(1, 7), n_references=10, random_state=0)),
    "criteria": lambda: choose_k(X, range(1, 7), criteria=["silhouette", "gap", "elbow"], random_state=0).plot(),
    "plate": lambda: plots.plate(GaussianMixture(3, random_state=0).fit(X)),
    # the order of components that a search finds may depend on rounding
    "ellipses": lambda: plots.ellipses(GaussianMixture(3, init_params=MODEL.labels_).fit(X), X),
}


@pytest.mark.parametrize("name", PICTURES)
def test_figures_match_the_reference_images(name, tmp_path):
    drawn = tmp_path / f"{name}.png"
    figure = PICTURES[name]().figure
    figure.savefig(drawn, dpi=60, metadata={"Software": None})
    if os.environ.get("COTERIE_PICTURES") == "keep":
        KEPT.mkdir(exist_ok=True)
        shutil.copy(drawn, KEPT / drawn.name)
    expected = shutil.copy(KEPT / drawn.name, tmp_path / f"{name}-expected.png")  # differences are written beside it
    assert compare.compare_images(str(expected), str(drawn), TOLERANCE) is None


def test_a_different_figure_exceeds_the_tolerance(tmp_path):
    """Two swapped labels, as an error would cause, exceed the tolerance."""
    labels = np.where(MODEL.labels_ == 0, 1, np.where(MODEL.labels_ == 1, 0, 2))
    drawn = tmp_path / "clusters.png"
    plots.clusters(labels, X).figure.savefig(drawn, dpi=60)
    expected = shutil.copy(KEPT / "clusters.png", tmp_path / "expected.png")
    assert compare.compare_images(str(expected), str(drawn), TOLERANCE) is not None
