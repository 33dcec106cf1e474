"""
Elongated clusters: K-means and Gaussian mixture
================================================

K-means assumes round clusters of similar size. A Gaussian mixture estimates the shape of each cluster.
"""

import numpy as np
from matplotlib.figure import Figure

from coterie import GaussianMixture, KMeans, plots
from coterie.metrics import adjusted_rand_score

rng = np.random.default_rng(0)
clouds = rng.normal(size=(3, 200, 2)) * [5.0, 0.5] @ np.array([[0.8, 0.6], [-0.6, 0.8]])
X = (clouds + np.array([[0, 0], [3, -3], [-3, 3]])[:, None]).reshape(-1, 2)
classes = np.repeat([0, 1, 2], 200)

kmeans = KMeans(3, random_state=0).fit(X)
mixture = GaussianMixture(3, covariance_type="full", random_state=0).fit(X)

figure = Figure(figsize=(11, 4.6), layout="constrained")
left, right = figure.subplots(1, 2)
plots.voronoi(kmeans, X, ax=left)
plots.ellipses(mixture, X, ax=right)
left.set_title("K-means", loc="left")
right.set_title("Gaussian mixture", loc="left")

# %%
# Adjusted Rand index with the true clusters (1 is perfect, 0 is random):

for model in (kmeans, mixture):
    print(type(model).__name__, round(adjusted_rand_score(classes, model.labels_), 2))
