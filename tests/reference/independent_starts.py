"""The best of 200 independent starts of a Gaussian mixture: what a search for starts is compared with.

``python -m reference.independent_starts`` (in `tests`) computes `independent_starts.json`: the log-likelihood for
every public table, number of components and covariance structure. Values that the file already has are skipped. A
random sample of `ROWS` rows with a fixed seed stands for each large table: 200 starts then take less than a second, and
the fewer the rows, the more a search depends on its random numbers.

A stored value is that of a local optimum. EM also stops at saddle points, and while a component collapses slowly. So
the best starts are perturbed and converge much further than a fit, before they are compared.
"""

import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie import GaussianMixture
from coterie.core.nested_arrays import join, select
from coterie.families.structures import STRUCTURES
from coterie.mixture.degeneracy import degeneracy_of_fit
from coterie.mixture.gaussian_trials import GaussianTrials
from coterie.mixture.starts import sample
from reference.shared_data import FOLDER, load, read_index

FILE = Path(__file__).with_suffix(".json")
METHODS = ("k-means++", "random_from_data", "kmeans", "random")
STEPS = 600  # maximum number of EM steps of one start
BEHIND = 50  # a start stops if it is behind the best by more than this many times its last gain
FINISHED = 8  # best starts that are fitted to convergence
SAME = 0.05  # starts whose objectives differ by less ended in the same optimum
NOISE = 1e-3  # share of random numbers in the responsibilities from which the best starts are finished
FURTHER = 1200  # maximum number of EM steps of the best starts after that
SMALL = 400  # maximum number of rows of a table that is used as a whole
ROWS = 200  # rows of the random sample of a larger table
COLUMNS = 20  # maximum number of columns
NOT_NUMERIC = ("dist", "pmed", "ts")  # groups of distances and series


def public_tables():
    """Names of the numeric tables, the cheapest first."""
    if not (FOLDER / "index.json").is_file():
        return []
    numeric = [t for t in read_index("index.json") if t["group"] not in NOT_NUMERIC and 2 <= t["d"] <= COLUMNS]
    numeric.sort(key=lambda t: (t["n"] if t["n"] <= SMALL else ROWS) * t["d"] ** 2)
    return [f"{t['group']}/{t['name']}" for t in numeric]


def rows_of(name):
    """The rows of a table, or of the random sample that stands for it."""
    X = load(name)
    return X if len(X) <= SMALL else X[np.sort(np.random.default_rng(0).choice(len(X), ROWS, replace=False))]


def is_sound(model, X):
    """Whether every component has enough rows and variance in all directions."""
    return degeneracy_of_fit(model._fitted_model, len(X), model._components) == 0


def best_of_starts(X, structure, k, starts=200, seed=12345, perturbed=True):
    """The highest log-likelihood of sound fits, a quarter of the starts by each method; -inf if there is none.

    If runs are not `perturbed`, the result can be a saddle point. No start is made from the results of others, as in a
    search.
    """
    estimator = GaussianMixture(k, covariance_type=structure)
    source, _, summary = estimator._open(X, None, first=True)
    model, rng = estimator._model(summary, source.dtype), np.random.default_rng(seed)
    trials = GaussianTrials(model, sample(model, source, rng), rng)
    params = trials.first(np.concatenate([trials.starts(method, starts // len(METHODS)) for method in METHODS]))
    runs = _best_runs(trials, params if k > 1 else select(params, [0]))
    if not runs:
        return -np.inf
    batch = _local_optima(trials, join(runs)) if perturbed else _stationary(trials, join(runs))[0]
    likelihoods = []
    for run in range(len(batch.weights)):
        fit = GaussianMixture(k, covariance_type=structure, warm_start=True)
        fit._fitted_model, fit._components = model, trials.result(batch, run)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of starts that collapse slowly
            fit.fit(X)
        if is_sound(fit, X):
            likelihoods.append(fit.log_likelihood_)
    return max(likelihoods, default=-np.inf)


def _best_runs(trials, params):
    """The best sound runs that are different optima, once each has converged or is too far behind."""
    tol, done = trials.model.tol * (1 + trials.w.sum() / 1000), []
    for _ in range(STEPS // 20):
        params, objective, gains, _ = trials.advance(params, 20)
        is_sound_run = trials.degeneracy(params) == 0
        best = min([*(value for value, _ in done), *objective[is_sound_run]], default=np.inf)
        active = (gains[-1] >= tol) & (objective - BEHIND * gains[-1] < best)
        done += [(objective[i], select(params, [i])) for i in np.flatnonzero(~active & is_sound_run)]
        params, objective, is_sound_run = select(params, active), objective[active], is_sound_run[active]
        if not active.any():
            break
    done += [(objective[i], select(params, [i])) for i in np.flatnonzero(is_sound_run)]
    best = []
    for objective, run in sorted(done, key=lambda item: item[0]):
        if len(best) < FINISHED and (not best or objective - best[-1][0] > SAME):
            best.append((objective, run))
    return [run for _, run in best]


def _local_optima(trials, params):
    """Where the runs end after a restart from their responsibilities with noise.

    A run that the restart leaves for a worse optimum is a narrow one, and is kept. One that it leaves for a better
    optimum, or for a degenerate component, is not a local optimum.
    """
    params, objective = _stationary(trials, params)
    resp, _ = trials.responsibilities(params)
    noise = trials.rng.random(resp.shape)
    restarts = trials.first(resp + NOISE * (noise / noise.sum(axis=-1, keepdims=True) - resp))
    restarts, objective_of_restarts = _stationary(trials, restarts)
    is_optimum = (trials.degeneracy(restarts) == 0) & (objective_of_restarts > objective - SAME)
    return join([restarts, select(params, is_optimum)])


def _stationary(trials, params):
    """The runs once they have converged much further than a fit, and their objectives."""
    for _ in range(FURTHER // 20):
        params, objective, gains, _ = trials.advance(params, 20)
        if gains[-1].max() < 1e-9 * trials.w.sum():
            break
    return params, objective


def stored_values():
    """{table: {number of components: {structure: log-likelihood, None without a sound fit}}}."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}


def main():
    values = stored_values()
    cells = [(name, k) for ks in ((1, 2, 3, 4), (5, 6)) for name in public_tables() for k in ks]
    for name, k in cells:
        X = rows_of(name)
        of_table = values.setdefault(name, {})
        if 4 * k > len(X) or str(k) in of_table:
            continue
        best = {structure: best_of_starts(X, structure, k) for structure in STRUCTURES}
        of_table[str(k)] = {s: float(f"{value:.8g}") if np.isfinite(value) else None for s, value in best.items()}
        FILE.write_text(json.dumps(values, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(name, k, flush=True)


if __name__ == "__main__":
    main()
