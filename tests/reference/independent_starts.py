"""The best of many independent starts of a Gaussian mixture: what a search for starts is compared with."""

import numpy as np

from coterie import GaussianMixture
from coterie.mixture.search import sound_first, spurious
from coterie.mixture.starts import Rows, sample
from coterie.mixture.trials import chosen

METHODS = ("k-means++", "random_from_data", "kmeans", "random")
STEPS = 600  # of one start at most
BEHIND = 50  # times its last gain by which a start may be behind the best and still go on
FINISHED = 3  # best starts whose fits are finished


def is_sound(model, X):
    """Whether no component rests on next to no rows."""
    return sound_first(model._fitted_model, len(X), model._components) == 0


def best_of_starts(X, structure, k, starts=200, seed=12345):
    """The highest log-likelihood of sound local optima from so many starts, a quarter by each method; -inf if none."""
    estimator = GaussianMixture(k, covariance_type=structure)
    source, _, summary = estimator._open(X, None, first=True)
    model, rng = estimator._model(summary, source.dtype), np.random.default_rng(seed)
    rows = Rows(model, sample(model, source, rng), rng)
    trials = rows.trials
    runs = trials.first(np.concatenate([rows.posteriors(method, starts // len(METHODS)) for method in METHODS]))
    likelihoods = []
    for c in _best_runs(trials, runs):
        c, _, _ = trials.advance(_moved(trials, c, rng), STEPS // 2)
        fit = GaussianMixture(k, covariance_type=structure, warm_start=True)
        fit._fitted_model, fit._components = model, trials.in_place(c, 0)
        fit.fit(X)
        if is_sound(fit, X):
            likelihoods.append(fit.log_likelihood_)
    return max(likelihoods, default=-np.inf)


def _best_runs(trials, c):
    """The best sound runs, once each has converged or is too far behind."""
    enough, done = trials.model.tol * (1 + trials.w.sum() / 1000), []
    for _ in range(STEPS // 20):
        c, objective, gains = trials.advance(c, 20)
        unsound = _unsound(trials, c)
        sound = [*(value for value, _ in done), *objective[unsound == 0]]
        going = (gains[-1] >= enough) & (objective - BEHIND * gains[-1] < min(sound, default=np.inf))
        done += [(objective[i], chosen(c, [i])) for i in np.flatnonzero(~going & (unsound == 0))]
        c, objective = chosen(c, going), objective[going]
        if not going.any():
            break
    else:
        unsound = _unsound(trials, c)
        done += [(objective[i], chosen(c, [i])) for i in np.flatnonzero(unsound == 0)]
    done.sort(key=lambda item: item[0])
    return [run for _, run in done[:FINISHED]]


def _moved(trials, c, rng):
    """Runs from posteriors close to those of `c`: they leave a saddle point, at which EM came to rest."""
    resp, noise = trials.posterior(c), rng.random((len(c.weights), len(trials.X), c.means.shape[-2]))
    return trials.first(resp + 1e-3 * (noise / noise.sum(axis=-1, keepdims=True) - resp))


def _unsound(trials, c):
    unit = trials.model.unit * trials.scale
    means, matrices = c.means * trials.scale, trials.covariances(c)
    return spurious(trials.model, len(trials.X), c.weights, means, matrices, unit)
