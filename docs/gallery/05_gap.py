"""
Gap statistic
=============

The gap statistic compares the within-cluster sum of squares with that of data without clusters. The chosen K is the
first whose gap is as large as the next one, up to a standard error.
"""

import numpy as np
from matplotlib.figure import Figure

from coterie import plots
from coterie.datasets import make_blobs
from coterie.selection import gap_statistic

X, _ = make_blobs(300, 2, centers=4, cluster_std=0.7, random_state=2)
noise = np.random.default_rng(0).random((300, 2))

figure = Figure(figsize=(11, 4), layout="constrained")
for rows, ax, name in zip((X, noise), figure.subplots(1, 2), ("four clusters", "uniform rows"), strict=True):
    result = gap_statistic(rows, range(1, 9), n_references=20, random_state=0)
    plots.gap(result, ax=ax)
    print(f"{name}: {result.recommended}")
