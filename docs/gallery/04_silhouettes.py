"""
Silhouettes
===========

A silhouette is how much nearer a row is to its own cluster than to the next: 1 well inside, 0 between two, negative
in the wrong one. A cluster that is two, or one that is half of one, shows at once.
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
