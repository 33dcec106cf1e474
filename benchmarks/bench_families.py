"""Mixtures of other families than Gaussians: a number of EM iterations from the same labels, where a peer has them.

pomegranate takes minutes for hundreds of thousands of rows, so its cases are smaller; all libraries run those too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse, special

from benchmarks.competitors import Competitor
from benchmarks.contest import Case, contest, quietly, timed
from benchmarks.harness import Options, main
from benchmarks.report import Result, shape

ITERATIONS = 20
SEED = 0


def case(family: str, n: int, d: int, k: int) -> Case:
    return {"label": f"{family} {shape(n, d, k)}", "family": family, "n": n, "d": d, "k": k, "dtype": "float64"}


CASES = [
    case("poisson", 200_000, 16, 20),
    case("bernoulli", 100_000, 30, 10),
    case("categorical", 100_000, 20, 10),
    case("multinomial, sparse", 100_000, 10_000, 20),
    case("student_t", 100_000, 8, 8),
    case("mixed table", 50_000, 12, 6),
    case("poisson", 20_000, 16, 20),
    case("bernoulli", 20_000, 30, 10),
    case("categorical", 20_000, 20, 10),
    case("student_t", 20_000, 8, 8),
]
QUICK_CASES = [
    case("poisson", 5_000, 8, 5),
    case("bernoulli", 5_000, 10, 4),
    case("categorical", 5_000, 6, 4),
    case("multinomial, sparse", 2_000, 500, 5),
    case("student_t", 5_000, 4, 3),
    case("mixed table", 2_000, 12, 3),
]


class Plan(NamedTuple):
    family: str
    k: int
    labels: np.ndarray  # to start from, where the peer can
    iterations: int = ITERATIONS


def rows(family: str, n: int, d: int, k: int) -> tuple[Any, np.ndarray]:
    """Rows of overlapping components, and labels of which a third are wrong."""
    rng = np.random.default_rng(SEED)
    z = rng.integers(k, size=n)
    start = np.where(rng.random(n) < 1 / 3, rng.integers(k, size=n), z)
    if family == "poisson":
        return rng.poisson(rng.gamma(3.0, 1.0, (k, d))[z]).astype(np.float64), start
    if family == "bernoulli":
        return (rng.random((n, d)) < rng.beta(2.0, 2.0, (k, d))[z]).astype(np.float64), start
    if family == "categorical":
        until = rng.dirichlet(np.full(4, 2.0), (k, d)).cumsum(axis=-1)
        return np.minimum((rng.random((n, d, 1)) > until[z]).sum(axis=-1), 3).astype(np.float64), start
    if family == "student_t":
        return rng.standard_t(4.0, (n, d)) + rng.normal(size=(k, d))[z], start
    if family == "mixed table":
        third = d // 3
        real = rng.normal(size=(n, third)) + rng.normal(size=(k, third))[z]
        binary = rng.random((n, d - third)) < rng.beta(2.0, 2.0, (k, d - third))[z]
        return np.column_stack([real, binary]).astype(np.float64), start
    words = 50
    common = rng.dirichlet(np.full(d, 0.5))  # most words tell nothing: else EM would be done after a step or two
    until = (0.9 * common + 0.1 * rng.dirichlet(np.full(d, 0.05), k)).cumsum(axis=1)
    columns = np.empty((n, words), np.int64)
    for t in range(k):
        mine = z == t
        columns[mine] = np.searchsorted(until[t], rng.random((mine.sum(), words)) * until[t, -1])
    places = (np.repeat(np.arange(n), words), np.minimum(columns.ravel(), d - 1))
    counts = sparse.csr_array((np.ones(n * words), places), shape=(n, d))
    counts.sum_duplicates()
    counts.indices, counts.indptr = (a.astype(np.int32) for a in (counts.indices, counts.indptr))  # as texts have them
    return counts, start


def coterie(X: Any, plan: Plan) -> float:
    from coterie import Mixture
    from coterie.families import Gaussian, Product, StudentT

    third = X.shape[1] // 3
    family = {
        "multinomial, sparse": "multinomial",
        "student_t": StudentT(dof=4.0),
        "mixed table": Product([(Gaussian("diag"), range(third)), ("bernoulli", range(third, X.shape[1]))]),
    }.get(plan.family, plan.family)
    model = quietly(Mixture(plan.k, family, init_params=plan.labels, max_iter=plan.iterations, tol=0), X)
    if model.n_iter_ < plan.iterations:
        raise RuntimeError(f"settled after {model.n_iter_} iterations: others would do more work")
    return model.log_likelihood_ / X.shape[0]


def pomegranate(X: np.ndarray, plan: Plan) -> float:
    import torch
    from pomegranate import distributions, gmm

    kind = {"poisson": "Poisson", "bernoulli": "Bernoulli", "categorical": "Categorical", "student_t": "StudentT"}
    make = getattr(distributions, kind[plan.family])
    options = {"dofs": 4} if plan.family == "student_t" else {}
    rows = torch.from_numpy(X if plan.family == "student_t" else X.astype(np.float32))
    rows = rows.to(torch.int64) if plan.family == "categorical" else rows.to(torch.float32)
    parts = [make(**options).fit(rows[plan.labels == j]) for j in range(plan.k)]
    model = gmm.GeneralMixtureModel(parts, max_iter=plan.iterations, tol=-np.inf).fit(rows)
    return float(model.log_probability(rows).mean())


def stepmix(X: np.ndarray, plan: Plan) -> float:
    from stepmix.stepmix import StepMix

    third = X.shape[1] // 3
    table = {
        "real": {"model": "gaussian_diag", "n_columns": third},
        "binary": {"model": "binary", "n_columns": X.shape[1] - third},
    }
    how = {"bernoulli": "binary", "categorical": "categorical", "mixed table": table}[plan.family]
    model = StepMix(
        plan.k, measurement=how, n_steps=1, max_iter=plan.iterations, abs_tol=0, rel_tol=0, random_state=SEED,
        progress_bar=0,
    )  # fmt: skip
    return float(quietly(model, X).score(X))


def numpy(X: Any, plan: Plan) -> float:
    """EM as textbooks have it, in NumPy and SciPy: whole matrices at a time."""
    resp = np.eye(plan.k)[plan.labels]
    likelihood = 0.0
    for _ in range(plan.iterations + 1):
        weight, sums = resp.sum(axis=0), (X.T @ resp).T
        joint = np.log(weight / weight.sum()) + _log_density(X, plan.family, sums, weight)
        per_row = special.logsumexp(joint, axis=1, keepdims=True)
        resp = np.exp(joint - per_row)
        likelihood = per_row.mean()
    return float(likelihood) + _log_base(X, plan.family)


def _log_base(X: Any, family: str) -> float:
    """What no parameter changes, a row."""
    if family == "bernoulli":
        return 0.0
    each = special.gammaln(X.data + 1.0).sum() if sparse.issparse(X) else special.gammaln(X + 1.0).sum()
    total = special.gammaln(X.sum(axis=1) + 1.0).sum() if family != "poisson" else 0.0
    return float(total - each) / X.shape[0]


def _log_density(X: Any, family: str, sums: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Less `_log_base`."""
    if family == "multinomial, sparse":
        return X @ np.log(np.maximum(sums / sums.sum(axis=1, keepdims=True), 1e-10)).T
    mean = np.clip(sums / weight[:, None], 1e-10, None if family == "poisson" else 1 - 1e-10)
    if family == "poisson":
        return X @ np.log(mean).T - mean.sum(axis=1)
    return X @ (np.log(mean) - np.log1p(-mean)).T + np.log1p(-mean).sum(axis=1)


COMPETITORS = (
    Competitor("coterie", "coterie", coterie),
    Competitor("pomegranate", "pomegranate", pomegranate),
    Competitor("StepMix", "stepmix", stepmix),
    Competitor("NumPy", "numpy", numpy),
)
TAKES = {
    "pomegranate": ("poisson", "bernoulli", "categorical", "student_t"),
    "StepMix": ("bernoulli", "categorical", "mixed table"),
    "NumPy": ("poisson", "bernoulli", "multinomial, sparse"),
}
MOST_ROWS = {"pomegranate": 20_000}  # of a case: it would take minutes for more


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    if case["family"] not in TAKES.get(competitor.name, (case["family"],)):
        return {"error": f"{competitor.name} has no such family"}
    if case["n"] > MOST_ROWS.get(competitor.name, case["n"]):
        return {"error": f"{competitor.name} is asked to take {MOST_ROWS[competitor.name]} rows at most"}
    X, labels = rows(case["family"], case["n"], case["d"], case["k"])
    plan = Plan(case["family"], case["k"], labels)
    competitor.fit(X, plan._replace(iterations=2))  # loads what is to be loaded
    return timed(lambda: competitor.fit(X, plan), 1, float, loaded=True)


def run(options: Options) -> Result:
    title = f"{ITERATIONS} iterations of EM"
    cases = QUICK_CASES if options.quick else CASES
    return contest("bench_families:measure", title, cases, COMPETITORS, options, check="mean log-likelihood")


if __name__ == "__main__":
    main("families", run)
