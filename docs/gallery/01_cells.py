"""
K-means and its cells
=====================

Every row belongs to the nearest center, so K-means divides the plane into cells with straight borders.
"""

import numpy as np

from coterie import KMeans, plots
from coterie.datasets import make_blobs

X, _ = make_blobs(400, 2, centers=5, cluster_std=0.8, random_state=4)
model = KMeans(5, random_state=0).fit(X)
ax = plots.voronoi(model, X)

# %%
# The sum of squared distances falls with every iteration, and the labels are those that ``predict`` gives.

print(model.history_.round(1))
print(bool((model.predict(X) == model.labels_).all()))

# %%
# Rows are divided whether or not there are clusters: these are spread evenly.

even = np.random.default_rng(0).uniform(size=(400, 2))
nothing = plots.voronoi(KMeans(5, random_state=0).fit(even), even)
