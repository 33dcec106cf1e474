"""
Hierarchical clustering and dendrogram
======================================

Ward linkage repeatedly merges the two clusters with the smallest increase of the sum of squares. A large jump of the
heights shows where to cut the tree.
"""

from matplotlib.figure import Figure

from coterie import KMeans, plots
from coterie.datasets import make_blobs, make_rings
from coterie.hierarchy import cophenetic_correlation, cut, linkage
from coterie.selection import dendrogram_gap

X, _ = make_blobs(150, 2, centers=4, cluster_std=0.9, random_state=3)
tree = linkage(X, "ward")
jump = dendrogram_gap(tree)
print(f"largest jump at {jump.best} clusters; cophenetic correlation {cophenetic_correlation(tree, X):.2f}")

figure = Figure(figsize=(12, 4.6), layout="constrained")
left, right = figure.subplots(1, 2, width_ratios=[3, 2])
plots.dendrogram(tree, n_clusters=jump.best, ax=left)
plots.clusters(cut(tree, n_clusters=jump.best), X, ax=right)

# %%
# Single linkage follows chains of rows. So it finds rings, which K-means cannot.

rings, _ = make_rings(300, random_state=0)
figure_rings = Figure(figsize=(10, 4.6), layout="constrained")
left, right = figure_rings.subplots(1, 2)
plots.clusters(cut(linkage(rings, "single"), n_clusters=2), rings, ax=left)
plots.clusters(KMeans(2, random_state=0).fit(rings), rings, ax=right)
left.set_title("single linkage", loc="left")
right.set_title("K-means", loc="left")
