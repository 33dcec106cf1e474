"""A mixture whose components are all known is naive Bayes: scikit-learn's classifiers have the same probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB

from coterie import Mixture
from coterie.families import Bernoulli, BetaPrior, Categorical, DirichletPrior, Gaussian, Multinomial
from mixture.counts import planted


@pytest.mark.parametrize(
    "kind, family, peer",
    [
        ("bernoulli", Bernoulli(BetaPrior(2.0, 2.0)), BernoulliNB(alpha=1.0)),
        ("multinomial", Multinomial(DirichletPrior(1.5)), MultinomialNB(alpha=0.5)),
        ("categorical", Categorical(4, DirichletPrior(2.0)), CategoricalNB(alpha=1.0, min_categories=4)),
        ("poisson", Gaussian("diag", reg_covar=0.0), GaussianNB(var_smoothing=0.0)),
    ],
    ids=["bernoulli", "multinomial", "categorical", "gaussian"],
)
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_known_components_are_naive_bayes(kind, family, peer, weighted):
    X, labels = planted(kind, 400)
    w = np.random.default_rng(1).exponential(size=400) if weighted else None
    ours, theirs = Mixture(4, family).fit(X, sample_weight=w, known_labels=labels), peer.fit(X, labels, w)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-6, atol=1e-9)


def test_sparse_words_too():
    X, labels = planted("multinomial", 400)
    ours = Mixture(4, Multinomial(DirichletPrior(2.0))).fit(sparse.csr_array(X), known_labels=labels)
    theirs = MultinomialNB(alpha=1.0).fit(sparse.csr_array(X), labels)
    np.testing.assert_allclose(np.log(ours.components_.probability), theirs.feature_log_prob_, rtol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-6, atol=1e-9)
