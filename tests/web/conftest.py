"""A small player and a small map, like those of the library."""

import numpy as np
import pytest

from coterie import palette
from coterie.web import ClusterMap, box_of, ellipses_of, pack_labels, pack_points, pack_rgb

HOSTILE = "</script><script>window.broken = 1</script>&amp;\"'"


def blobs(m=400, k=3, p=2, seed=0):
    rng = np.random.default_rng(seed)
    centers = 8 * rng.standard_normal((k, p))
    labels = rng.integers(0, k, m)
    return centers[labels] + rng.standard_normal((m, p)), labels, centers


@pytest.fixture
def trace():
    """A trace of K-means with eight frames, rows in no cluster, and HTML in the first name."""
    X, _, centers = blobs()
    k, frames = len(centers), []
    now = X[:k]
    for i in range(8):
        labels = ((X[:, None] - now) ** 2).sum(axis=2).argmin(axis=1)
        cost = float(((X - now[labels]) ** 2).sum())
        sizes = np.bincount(labels, minlength=k).tolist()
        told = None if i in (0, 2) else pack_labels(np.where(np.arange(len(X)) < 5, -1, labels), k)
        frames.append({
            "step": "update" if i % 2 == 0 else "assign", "iteration": i // 2, "caption": f"Step {i} <b>of</b> 8.",
            "labels": told, "rgb": None, "centers": now.tolist(), "ellipses": None, "sizes": sizes, "objective": cost,
            "bound": None,
        })  # fmt: skip
        now = np.array([X[labels == j].mean(axis=0) if (labels == j).any() else now[j] for j in range(k)])
    box = box_of(X)
    return {
        "kind": "player", "title": "K-means", "axes": ["age", "income"], "box": box, "rows": 1000, "shown": len(X),
        "points": pack_points(X, box), "colors": palette.colours(k), "names": [HOSTILE, "1", "2"], "soft": False,
        "objective": {"name": "inertia", "better": "lower"}, "frames": frames,
    }  # fmt: skip


@pytest.fixture
def soft_trace(trace):
    """A trace of a mixture with blended colours, ellipses and a bound."""
    k, m = len(trace["names"]), trace["shown"]
    shares = np.random.default_rng(1).dirichlet(np.ones(k), m)
    rgb = pack_rgb(palette.blends(shares, trace["colors"]))
    for i, frame in enumerate(trace["frames"]):
        circles = ellipses_of(frame["centers"], [np.diag([1.0 + i, 2.0])] * k)
        frame.update(
            labels=None, rgb=rgb if i else None, ellipses=[None, *circles[1:]], bound=-9.0 + i, objective=-8.0 + i
        )
    return {**trace, "soft": True, "objective": {"name": "log-likelihood", "better": "higher"}}


@pytest.fixture
def cluster_map():
    """Three clusters along four axes; some rows in none."""
    X, labels, centers = blobs(p=4)
    lean = np.eye(4) + np.triu(np.full((4, 4), 0.8), 1)  # so that ellipses lean
    X, centers = X @ lean, centers @ lean
    spreads = np.array([np.cov(X[labels == j].T) for j in range(3)])
    labels = np.where(np.arange(len(X)) < 9, -1, labels)
    axes = ["age", HOSTILE, "income", "visits"]
    return ClusterMap(axes, X, labels, [HOSTILE, "1", "2"], rows=2_000_000, centers=centers, covariances=spreads)
