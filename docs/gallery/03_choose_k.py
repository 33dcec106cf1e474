"""
Number of clusters: clear, ambiguous, none
==========================================

``choose_k`` compares all suitable criteria and recommends a number of clusters. Three tables show typical results.
"""

import numpy as np

from coterie import choose_k
from coterie.datasets import make_blobs

# %%
# Five separated clusters
# -----------------------
# All criteria agree.

X, _ = make_blobs(300, 2, centers=5, cluster_std=0.4, random_state=1)
clear = choose_k(X, range(1, 9), budget="quick", random_state=0)
print(clear.recommended, clear.strength, f"support {clear.confidence:.2f}")
print(clear.reason)
figure = clear.plot().figure_

# %%
# Pairs of clusters
# -----------------
# There are three pairs: three clusters, or six? The criteria look at different scales and disagree, so the result is
# weak and names the runner-up. The curves show both answers.

rng = np.random.default_rng(0)
centers = np.array([[0, 0], [3, 0], [20, 0], [23, 0], [10, 16], [13, 16]])
pairs = (rng.normal(0, 0.8, (6, 50, 2)) + centers[:, None]).reshape(-1, 2)
ambiguous = choose_k(pairs, range(1, 9), budget="quick", random_state=0)
print(ambiguous)
figure_ambiguous = ambiguous.plot().figure_

# %%
# Data without clusters
# ---------------------
# The recommendation is one cluster: the best split is no better than that of random data without clusters.

noise = rng.uniform(size=(300, 2))
uniform = choose_k(noise, range(1, 9), budget="quick", random_state=0)
print(uniform.recommended)
print(uniform.reason)
figure_uniform = uniform.plot().figure_
