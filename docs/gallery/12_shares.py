"""
Fuzzy memberships and mixture probabilities
===========================================

The responsibilities of a mixture are probabilities under a model of the rows; fuzzy memberships compare distances. Far
from all clusters they differ.
"""

import numpy as np
from matplotlib.figure import Figure

from coterie import FuzzyCMeans, GaussianMixture, plots
from coterie.datasets import make_blobs

X, _ = make_blobs(500, 2, centers=[[0, 0], [4, 0], [2, 3.5]], cluster_std=[0.6, 1.4, 0.9], random_state=0)
mixture = GaussianMixture(3, covariance_type="spherical", random_state=0).fit(X)
fuzzy = FuzzyCMeans(3, fuzzifier=2, random_state=0).fit(X)

figure = Figure(figsize=(11, 4.6), layout="constrained")
left, right = figure.subplots(1, 2)
plots.responsibilities(mixture, X, ax=left)
plots.responsibilities(fuzzy, X, ax=right)
left.set_title("mixture: responsibilities", loc="left")
right.set_title("fuzzy c-means: memberships", loc="left")

# %%
# A row far from all clusters:

far = np.array([[30.0, -30.0]])
print("mixture", mixture.predict_proba(far).round(2))
print("fuzzy  ", fuzzy.memberships(far).round(2))
