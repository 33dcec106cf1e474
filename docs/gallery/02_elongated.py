"""
Long clusters: K-means beside a mixture
=======================================

K-means takes clusters for balls of one size. A Gaussian mixture estimates the shape of each.
"""

import numpy as np
from matplotlib.figure import Figure

from coterie import GaussianMixture, KMeans, plots
from coterie.metrics import adjusted_rand_score

rng = np.random.default_rng(0)
cloud = rng.normal(size=(3, 200, 2)) * [5.0, 0.5] @ np.array([[0.8, 0.6], [-0.6, 0.8]])
X = (cloud + np.array([[0, 0], [3, -3], [-3, 3]])[:, None]).reshape(-1, 2)
classes = np.repeat([0, 1, 2], 200)

balls = KMeans(3, random_state=0).fit(X)
shapes = GaussianMixture(3, covariance_type="full", random_state=0).fit(X)

figure = Figure(figsize=(11, 4.6), layout="constrained")
left, right = figure.subplots(1, 2)
plots.voronoi(balls, X, ax=left)
plots.ellipses(shapes, X, ax=right)
left.set_title("K-means", loc="left")
right.set_title("Gaussian mixture", loc="left")

# %%
# Beside the clusters they were drawn from (1 is all right, 0 is chance):

for model in (balls, shapes):
    print(type(model).__name__, round(adjusted_rand_score(classes, model.labels_), 2))
