"""
Covariance structures of Gaussian mixtures
==========================================

The components of a Gaussian mixture may share volume, shape and orientation, or not: there are fourteen structures. BIC
balances the fit against the number of parameters.
"""

import numpy as np
from matplotlib.figure import Figure

from coterie import GaussianMixture, plots
from coterie.selection import mixture_table

rng = np.random.default_rng(0)
X = np.empty((3, 80, 2))
for part, angle, center in zip(X, (0.2, 1.3, 2.4), ([0, 0], [7, 1], [3, 7]), strict=True):
    axes = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    part[:] = rng.normal(size=(80, 2)) * [2.5, 0.5] @ axes + center
X = X.reshape(-1, 2)

table = mixture_table(X, ks=range(1, 6), random_state=0)
print(*table.best(5), sep="\n")
ax = plots.information(table)

# %%
# The data is one ellipse in three orientations, which is the structure EEV. Six structures on the same rows, all with
# K = 3:

figure = Figure(figsize=(12, 7), layout="constrained")
for name, ax_structure in zip(("EII", "VVI", "EEE", "VEE", "EEV", "VVV"), figure.subplots(2, 3).ravel(), strict=True):
    model = GaussianMixture(3, covariance_type=name, random_state=0).fit(X)
    plots.ellipses(model, X, ax=ax_structure)
    ax_structure.set_title(f"{name}: BIC {model.bic(X):.0f}, {model.n_parameters_} parameters", loc="left")
