"""
Moons, rings and noise: HDBSCAN
===============================

HDBSCAN finds clusters of any shape: dense regions, separated by sparse ones. Rows in sparse regions are noise (grey).
"""

import numpy as np
from matplotlib.figure import Figure

from coterie import HDBSCAN, KMeans, plots
from coterie.datasets import make_moons, make_rings

rng = np.random.default_rng(0)
tables = [make_moons(400, noise=0.06, random_state=0)[0], make_rings(600, noise=0.05, random_state=0)[0]]
tables = [np.concatenate([X, rng.uniform(X.min(axis=0) - 0.5, X.max(axis=0) + 0.5, (30, 2))]) for X in tables]

figure = Figure(figsize=(11, 9), layout="constrained")
for X, (left, right) in zip(tables, figure.subplots(2, 2), strict=True):
    model = HDBSCAN(min_cluster_size=20).fit(X)
    print(f"{model.n_clusters_} clusters, {(model.labels_ == -1).sum()} rows of noise")
    plots.clusters(model.labels_, X, ax=left)
    plots.clusters(KMeans(2, random_state=0).fit(X), X, ax=right)
    left.set_title("HDBSCAN", loc="left")
    right.set_title("K-means", loc="left")

# %%
# The reachability plot shows the rows in the order of the tree. Valleys are clusters; `cut` gives those of a radius.

plots.reachability(model, eps=0.2)

# %%
# The condensed tree has the clusters of all densities as boxes. Those with colours are selected.

plots.condensed_tree(model)
