"""
Time series and dynamic time warping
====================================

Dynamic time warping aligns two series before it compares them. The path shows which time points are compared.
"""

import numpy as np
from matplotlib.figure import Figure

from coterie import TimeSeriesKMeans, plots
from coterie.distances import dtw

times = np.linspace(0, 1, 60)
x = np.sin(8 * times**1.6)
y = np.sin(8 * times**0.8)
print(f"Euclidean distance {np.linalg.norm(x - y):.2f}, DTW distance {dtw(x, y):.2f}")
ax = plots.dtw_path(x, y)

# %%
# ``TimeSeriesKMeans`` uses it for clusters: each center is the average of aligned series.

rng = np.random.default_rng(0)


def recording(kind):
    """A noisy series of one of three kinds, at a random speed."""
    t = np.linspace(0, 1, rng.integers(40, 60)) ** rng.uniform(0.7, 1.4)
    shape = [np.sin(6 * t), np.exp(-40 * (t - 0.5) ** 2) * 2 - 0.5, np.tanh(8 * (t - 0.5))][kind]
    return shape + rng.normal(0, 0.08, len(t))


series = [recording(i % 3) for i in range(45)]
model = TimeSeriesKMeans(3, random_state=0).fit(series)

figure = Figure(figsize=(12, 3.4), layout="constrained")
for k, ax_cluster in enumerate(figure.subplots(1, 3, sharey=True)):
    for one in (s for s, label in zip(series, model.labels_, strict=True) if label == k):
        ax_cluster.plot(one, color="0.75", linewidth=0.8)
    ax_cluster.plot(model.cluster_centers_[k], color="C3", linewidth=2)
    ax_cluster.set_title(f"cluster {k}: {(model.labels_ == k).sum()} series and their average", loc="left", fontsize=10)
