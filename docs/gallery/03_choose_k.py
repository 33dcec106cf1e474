"""
How many clusters: agreed, disputed, none
=========================================

``choose_k`` asks every criterion that fits and weighs the answers. Here is what it says of three tables.
"""

import numpy as np

from coterie import choose_k
from coterie.datasets import make_blobs

# %%
# Five clusters that lie apart
# ----------------------------
# All criteria agree.

X, _ = make_blobs(300, 2, centers=5, cluster_std=0.4, random_state=1)
clear = choose_k(X, range(1, 9), budget="quick")
print(clear.recommended, f"support {clear.confidence:.2f}")
print(clear.reason)
panels = clear.plot()
figure = panels[0].figure

# %%
# Pairs of clusters
# -----------------
# Three pairs: three clusters, or six? Criteria look at different scales, and disagree; the curves show both answers.

rng = np.random.default_rng(0)
centers = np.array([[0, 0], [3, 0], [20, 0], [23, 0], [10, 16], [13, 16]])
pairs = (rng.normal(0, 0.8, (6, 50, 2)) + centers[:, None]).reshape(-1, 2)
disputed = choose_k(pairs, range(1, 9), budget="quick")
print(disputed)
other = disputed.plot()[0].figure

# %%
# Rows without clusters
# ---------------------
# One is an answer: the best split is no better than that of rows that have no clusters.

noise = rng.uniform(size=(300, 2))
none = choose_k(noise, range(1, 9), budget="quick")
print(none.recommended)
print(none.reason)
last = none.plot()[0].figure
