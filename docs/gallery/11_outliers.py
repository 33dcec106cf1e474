"""
Outliers: Gaussian and Student-t mixtures
=========================================

A Gaussian component grows to include outliers. Student's t has heavier tails and is robust to them.
"""

import numpy as np
from matplotlib.figure import Figure

from coterie import GaussianMixture, Mixture, plots
from coterie.datasets import make_blobs

rng = np.random.default_rng(0)
X, _ = make_blobs(300, 2, centers=[[-4, 0], [4, 0]], cluster_std=1.0, random_state=0)
X = np.concatenate([X, rng.uniform(-25, 25, (25, 2))])

gaussian = GaussianMixture(2, init_params="kmeans", random_state=0).fit(X)
student = Mixture(2, "student_t", random_state=0).fit(X)

figure = Figure(figsize=(11, 4.6), layout="constrained")
for model, ax, name in zip((gaussian, student), figure.subplots(1, 2), ("Gaussian", "Student's t"), strict=True):
    plots.ellipses(model, X, ax=ax)
    ax.set_title(f"{name}: BIC {model.bic(X):.0f}", loc="left")

# %%
# The degrees of freedom are estimated; a small number means heavy tails. The weight of a row in the estimate of the
# location falls with its distance.

print("degrees of freedom", student.components_.dof.round(1))
print("locations", student.components_.location.round(1).tolist())
