"""
Silhouette plots
================

The silhouette of a row compares its own cluster with the next nearest: 1 is well inside, 0 is between two clusters,
negative is nearer to another cluster. With K = 3 two clusters are merged; with K = 6 clusters are split.
"""

from matplotlib.figure import Figure

from coterie import KMeans, plots
from coterie.datasets import make_blobs

X, _ = make_blobs(400, 2, centers=[[0, 0], [5, 0], [0, 6], [5.5, 6]], cluster_std=0.8, random_state=0)
figure = Figure(figsize=(12, 7), layout="constrained")
for column, k in zip(figure.subplots(2, 3).T, (3, 4, 6), strict=True):
    model = KMeans(k, random_state=0).fit(X)
    plots.clusters(model, X, ax=column[0])
    plots.silhouette(model, X, ax=column[1])
