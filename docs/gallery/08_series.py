"""
Series that are not in step
===========================

Dynamic time warping lets two series wait for each other. The path through the table says which moments meet.
"""

import numpy as np
from matplotlib.figure import Figure

from coterie import TimeSeriesKMeans, plots
from coterie.distances import dtw

moments = np.linspace(0, 1, 60)
x = np.sin(8 * moments**1.6)
y = np.sin(8 * moments**0.8)
print(f"distance moment by moment {np.linalg.norm(x - y):.2f}, warped {dtw(x, y):.2f}")
ax = plots.dtw_path(x, y)

# %%
# Clusters of series are made with it: each center is an average of aligned series.

rng = np.random.default_rng(0)


def recording(kind):
    """A gesture of some kind, at its own speed, with noise."""
    t = np.linspace(0, 1, rng.integers(40, 60)) ** rng.uniform(0.7, 1.4)
    shape = [np.sin(6 * t), np.exp(-40 * (t - 0.5) ** 2) * 2 - 0.5, np.tanh(8 * (t - 0.5))][kind]
    return shape + rng.normal(0, 0.08, len(t))


series = [recording(i % 3) for i in range(45)]
model = TimeSeriesKMeans(3, random_state=0).fit(series)

figure = Figure(figsize=(12, 3.4), layout="constrained")
for k, place in enumerate(figure.subplots(1, 3, sharey=True)):
    for one in (s for s, label in zip(series, model.labels_, strict=True) if label == k):
        place.plot(one, color="0.75", linewidth=0.8)
    place.plot(model.cluster_centers_[k], color="C3", linewidth=2)
    place.set_title(f"cluster {k}: {(model.labels_ == k).sum()} series and their average", loc="left", fontsize=10)
