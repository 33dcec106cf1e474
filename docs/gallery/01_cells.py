"""
K-means and its Voronoi cells
=============================

K-means assigns every row to the nearest center. So it divides the plane into cells with straight borders.
"""

import numpy as np

from coterie import KMeans, plots
from coterie.datasets import make_blobs

X, _ = make_blobs(400, 2, centers=5, cluster_std=0.8, random_state=4)
model = KMeans(5, random_state=0).fit(X)
ax = plots.voronoi(model, X)

# %%
# The inertia falls with every iteration. ``labels_`` equals ``predict`` of the same rows.

print(model.history_.round(1))
print(bool((model.predict(X) == model.labels_).all()))

# %%
# K-means also divides data without clusters. These rows are uniformly distributed:

uniform = np.random.default_rng(0).uniform(size=(400, 2))
ax_uniform = plots.voronoi(KMeans(5, random_state=0).fit(uniform), uniform)
