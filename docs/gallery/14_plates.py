"""
A mixture as a graphical model
==============================

What is drawn from what, once a row and once a component. The diagram is made of the options of the model: what
components share stands outside of their plate, dots are what is held fixed or what priors are made of.
"""

from coterie import BayesianGaussianMixture, GaussianMixture, plots

ellipsoids = plots.plate(GaussianMixture(3, covariance_type="EEV"))

# %%
# With a prior of means and covariances:

prior = plots.plate(GaussianMixture(3, covariance_type="VVV", prior="default"))

# %%
# A Dirichlet process: weights are broken off a stick.

process = plots.plate(BayesianGaussianMixture(n_components=10))
