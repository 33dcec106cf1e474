"""
Plate diagrams of mixtures
==========================

A plate diagram shows the graphical model of a mixture: which variables depend on which, per row and per component. It
is drawn from the options of the model. Parameters that components share are outside of their plate; fixed parameters
and hyperparameters are dots.
"""

from coterie import BayesianGaussianMixture, GaussianMixture, plots

ellipsoids = plots.plate(GaussianMixture(3, covariance_type="EEV"))

# %%
# With a prior on means and covariances:

prior = plots.plate(GaussianMixture(3, covariance_type="VVV", prior="default"))

# %%
# A Dirichlet process mixture, with stick-breaking weights:

process = plots.plate(BayesianGaussianMixture(n_components=10))
