"""
Local optima of K-means and ``search``
======================================

Lloyd's algorithm stops in the first local optimum. With many clusters restarts help little; ``search`` moves single
centers and finds a lower inertia.
"""

from matplotlib.figure import Figure

from coterie import KMeans, plots
from coterie.datasets import make_blobs

X, _ = make_blobs(600, 2, centers=20, cluster_std=0.35, random_state=5)
starts = plots.Starts()
restarted = KMeans(20, init="random", n_init=10, random_state=0, callback=starts).fit(X)
searched = KMeans(20, search="thorough", random_state=0).fit(X)
print(f"ten random initialisations {restarted.inertia_:.1f}, search {searched.inertia_:.1f}")

figure = Figure(figsize=(13, 4.2), layout="constrained")
left, middle, right = figure.subplots(1, 3)
plots.convergence(starts, ax=left)
plots.clusters(restarted, X, ax=middle)
plots.clusters(searched, X, ax=right)
middle.set_title("best of ten initialisations", loc="left")
right.set_title('search="thorough"', loc="left")
