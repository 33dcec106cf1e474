"""The criteria of `choose_k`: how each is computed and turned into a vote."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from coterie import interrupts
from coterie.core.arrays import Array
from coterie.core.clock import Clock
from coterie.core.progress import Callback, Progress
from coterie.core.protocols import can_predict
from coterie.data.row_sample import random_rows
from coterie.errors import InputError
from coterie.families import Gaussian
from coterie.hierarchy import linkage
from coterie.kmeans.kmeans import KMeans
from coterie.mixture.family_mixture import Mixture
from coterie.selection import votes as voting
from coterie.selection.choose_k_result import CriterionResult, criterion_values
from coterie.selection.criteria import Curve
from coterie.selection.dendrogram import dendrogram_gap
from coterie.selection.gap import divided_rows, gap_statistic, kmeans_path
from coterie.selection.knee import kneedle
from coterie.selection.mixture_table import MixtureTable, mixture_table
from coterie.selection.perfect_fit import MAX_DISTINCT, MIN_REPEATS, has_groups, perfect_fit_vote
from coterie.selection.resampling import count_option
from coterie.selection.splitting import g_means, x_means
from coterie.selection.stability import HalfFits, stability
from coterie.selection.sweep import Sweep, sweep
from coterie.selection.tendency import Tendency, early_tendency
from coterie.selection.votes import BY_SPLITS, MODEL_WEIGHTS, WEIGHTS, Vote

MAX_DENSE_K = 10  # every K up to this one is fitted
GROWTH = 1.2  # ratio of consecutive K beyond that, in the coarse grid
FIRST_GRID = 18  # K of the coarse grid that are evaluated first: up to 31
INDICES = ("silhouette", "calinski_harabasz", "davies_bouldin")
COARSE_ROWS = 2_000  # maximum number of rows of the coarse grid
MAX_K = 180
MAX_ADVICE_K = 30  # mixture criteria that only advise are not computed for more components
MIN_CLUSTER_ROWS = 10  # rows per cluster on average, at the largest K of ks='auto'
EXTENSION = 1.5  # ratio of the largest K after and before the range is extended
MARGIN = 0.1  # every K within this relative distance of the optimum of an index is fitted
NO_SPLIT = "too few distinct rows to split"
COSTS = {"tendency": 5.0, "icl": 2.5, "gap": 0.5, "prediction_strength": 4.0, "stability": 4.0, "dirichlet": 1.0}
SWEEP_COST, ALL_MIXTURES_COST, OTHER_COST = 1.0, 40.0, 0.1  # in the same unit as COSTS: about one second
TREE_ROWS = 10_000  # maximum number of rows of the Ward tree


@dataclass(frozen=True)
class Effort:
    """Amount of work for one `budget`. It has no time limits, so that the result does not depend on the machine."""

    rows: int  # maximum number of rows; larger data are sampled
    mixture_rows: int  # the same, for mixtures, the gap statistic and resampling
    references: int
    resamples: int
    structures: tuple[str, ...] | str
    coarse: bool  # fit mixtures of a mixture estimator from the clusters of the sweep too, with a coarse tolerance
    criteria: tuple[str, ...]


class CriteriaRun:
    """Data and shared fits of all criteria; each has a random generator, so that none depends on the others."""

    def __init__(
        self, X: Array, w: Array | None, estimator: Any, effort: Effort, n_jobs: int | None, rng: np.random.Generator
    ):
        self.X, self.w, self.effort, self.n_jobs = X, w, effort, n_jobs
        self.distinct = len(np.unique(X, axis=0))
        self.weight = float(len(X) if w is None else w.sum())
        self.rngs = dict(zip(("sweep", "few", "coarse", *CRITERIA), rng.spawn(3 + len(CRITERIA)), strict=True))
        parameters = estimator.get_params()
        unset = {"random_state": int(self.rngs["sweep"].integers(2**31)), "n_jobs": n_jobs}
        unset = {name: value for name, value in unset.items() if name in parameters and parameters[name] is None}
        self.estimator = clone(estimator).set_params(**unset)
        self.is_mixture = count_option(estimator) == "n_components"
        self.weights = MODEL_WEIGHTS if self.is_mixture else WEIGHTS
        self.searches_mixtures = self.is_mixture and not effort.coarse  # a search costs more than all the rest
        self.is_plain_kmeans = _has_default_options(self.estimator)
        self.subset = random_rows(len(X), effort.mixture_rows, self.rngs["few"])
        self.few = X[self.subset], None if w is None else w[self.subset]
        self.distinct_few = len(np.unique(self.few[0], axis=0))
        self.sweep: Sweep  # set by `fit`
        self.is_fitted = False
        self.perfect_k: int | None = None  # number of distinct rows, if it is compared and they are repeated often
        self.curves: dict[str, Curve] = {}
        self.coarse_sweep: Sweep | None = None
        self.best_split: int | None = None  # K of the best silhouette of the coarse grid
        self.results: dict[str, Any] = {}
        self.halves: HalfFits | None = None
        self.clock = Clock()
        self.is_outermost, self.is_stopped = interrupts.is_outermost(), False
        self.unbounded: set[str] = set()  # indices whose optimum is the largest K, or a large K of no other index

    def fit_requested(self, ks: list[int]) -> list[int]:
        if ks[-1] > self.distinct:
            raise InputError(
                f"ks go up to {ks[-1]}, but the rows have only {self.distinct} distinct ones: use ks <= {self.distinct}"
            )
        self.fit(ks)
        return self.fitted_ks

    @property
    def fitted_ks(self) -> list[int]:
        """The K of the sweep, which are fewer than requested after an interrupt."""
        ks: list[int] = self.sweep.ks.tolist()
        return ks

    @property
    def max_k(self) -> int:
        """Largest K of ks='auto'."""
        last = max(1, self.distinct - 1)
        if self.is_repeated and self.distinct <= MAX_DISTINCT:
            last = self.distinct // 2 if self.has_groups else self.distinct
        return min(MAX_K, max(MAX_DENSE_K, len(self.X) // MIN_CLUSTER_ROWS), last)

    @property
    def is_repeated(self) -> bool:
        """Whether each distinct row occurs several times on average, by the weights of the rows."""
        return self.weight >= MIN_REPEATS * self.distinct

    @cached_property
    def has_groups(self) -> bool:
        """Whether the distinct rows are values of a scale that form groups: then these are the clusters."""
        return has_groups(self.X)

    def automatic_ks(self, names: tuple[str, ...]) -> list[int]:
        """Evaluate a coarse grid of K, then fit every K near the optimum of an index.

        If the rows split no better than data without clusters, only small K are fitted: the optima are then arbitrary.
        """
        top = self.max_k
        ks = set(range(1, min(MAX_DENSE_K, top) + 1))
        if top > MAX_DENSE_K:
            optima = self._coarse_optima(top)
            self.best_split = optima.get("silhouette")
            if self.is_stopped:
                return self.fitted_ks
            try:
                has_clusters = "tendency" not in names or self.clustered
            except KeyboardInterrupt as error:
                self._stop(error, has_result=self.best_split is not None)
                ks, has_clusters = {self.best_split or 1}, False
            if has_clusters:
                near = {name: _near(best, top) for name, best in optima.items()}
                for name, best in optima.items():
                    is_alone = best != self.best_split and not any(
                        best in ks_near for other, ks_near in near.items() if other != name
                    )
                    if best == top or (best > MAX_DENSE_K and is_alone):
                        self.unbounded.add(name)
                    else:
                        ks |= near[name]
        if self.is_fitted and ks <= set(self.sweep.ks.tolist()):
            self._restrict_to(sorted(ks))
        else:
            self.fit(sorted(ks))
        return self.fitted_ks

    def _coarse_optima(self, top: int) -> dict[str, int]:
        """Optimum of each index on a grid of K; the grid ends early if all optima are far from its end."""
        grid = list(range(1, MAX_DENSE_K + 1))
        while grid[-1] < top:
            grid.append(min(top, max(grid[-1] + 1, int(grid[-1] * GROWTH))))
        optima: dict[str, int] = {}
        for ks in (grid[:FIRST_GRID], grid):
            if self.is_plain_kmeans:
                curves = {name: self._path_sweep(ks).curve(name, random_state=0) for name in INDICES}
            else:
                self.fit(ks)
                if self.is_stopped:
                    break
                curves = {name: self.curve(name) for name in INDICES}
            optima = {name: curve.best for name, curve in curves.items() if curve.best is not None}
            if max(optima.values(), default=1) < ks[-2]:
                break
        return optima

    def _path_sweep(self, ks: list[int]) -> Sweep:
        """K-means for all K on a sample of the rows, in one compiled call."""
        if self.coarse_sweep is None or self.coarse_sweep.ks[-1] != ks[-1]:
            rng = self.rngs["coarse"]
            sample = random_rows(len(self.X), COARSE_ROWS, rng)
            rows, w, _ = divided_rows(self.X[sample], None if self.w is None else self.w[sample])
            distinct = len(np.unique(rows, axis=0))
            usable = [k for k in ks if k < distinct]
            path = kmeans_path(rows, w, usable, rng)
            models, labels = [self.estimator] * len(usable), list(path.clusters)
            self.coarse_sweep = Sweep(np.array(usable), models, path.squares, labels, rows, w)
        return self.coarse_sweep

    def extended_ks(self, ks: list[int], recommended: int) -> list[int] | None:
        """Fit larger K if the recommended K is at the edge of the range; None if it is not, or cannot be extended."""
        if recommended + 1 in ks or recommended >= self.max_k:
            return None
        last = min(self.max_k, max(recommended + 2, round(EXTENSION * recommended)))
        extended = sorted({*ks, *range(recommended + 1, last + 1)})
        try:
            self.fit(extended)
        except KeyboardInterrupt as error:
            self._stop(error, has_result=True)
        if self.is_stopped:
            return None
        self.results = {name: self.results[name] for name in ("tendency", "dirichlet") if name in self.results}
        return extended

    def _stop(self, error: KeyboardInterrupt, has_result: bool) -> None:
        """Keep what was evaluated before an interrupt, if the user has called `choose_k`; else raise it again."""
        interrupts.keep_result(error, self.is_outermost, has_result, "the criteria evaluated so far are kept")
        self.is_stopped = True

    def fit(self, ks: list[int]) -> None:
        self.sweep = sweep(self.estimator, self.X, ks, sample_weight=self.w)
        if len(self.sweep.ks) < len(ks):
            self._stop(KeyboardInterrupt("no number of clusters above 1 was fitted"), self.sweep.ks[-1] > 1)
        is_perfect = self.is_repeated and 1 < self.distinct <= ks[-1] and not self.has_groups
        self.perfect_k = self.distinct if is_perfect else None
        self.curves, self.is_fitted = {}, True

    def _restrict_to(self, ks: list[int]) -> None:
        """Use only some of the fits."""
        full, indices = self.sweep, np.flatnonzero(np.isin(self.sweep.ks, ks))
        models, labels = ([values[i] for i in indices] for values in (full.models, full.labels))
        self.sweep = replace(
            full, ks=full.ks[indices], models=models, objectives=full.objectives[indices], labels=labels
        )
        self.curves = {name: curve.restricted_to(ks) for name, curve in self.curves.items()}

    def curve(self, name: str) -> Curve:
        """The index `name` of all fits, computed at the first call only."""
        if name not in self.curves:
            self.curves[name] = self.sweep.curve(name, random_state=0)
        return self.curves[name]

    @property
    def clustered(self) -> bool:
        """Whether the rows split better than data without clusters."""
        test = self.tendency_test()
        return test is not None and test.clustered

    def tendency_test(self) -> Tendency | None:
        """Test for clusters, computed at the first call only; None if there are too few rows for it."""
        result: Tendency | None = self.cached("tendency", self._tendency_test)
        return result

    def _tendency_test(self) -> Tendency | None:
        """The test with small K and the K of the best silhouette."""
        best = self.curve("silhouette").best if self.is_fitted else self.best_split
        ks = sorted({k for k in range(2, MAX_DENSE_K + 1) if k < self.distinct} | ({best} if best else set()))
        options = (self.effort.references, self.w, self.n_jobs, self.rngs["tendency"])
        return early_tendency(self.X, ks, *options) if ks else None

    def collect_votes(self, ks: Array, names: tuple[str, ...], callback: Callback | None) -> tuple[Vote, ...]:
        """Evaluate the criteria one after another, until `callback` returns True."""
        costs = {**COSTS, **(dict.fromkeys(("icl", "bic"), ALL_MIXTURES_COST) if self.searches_mixtures else {})}
        votes, work = [], [SWEEP_COST, *(costs.get(name, OTHER_COST) for name in names)]
        for done, name in enumerate(() if self.is_stopped else names, start=1):
            try:
                votes.append(self._vote(name, ks))
            except KeyboardInterrupt as error:
                self._stop(error, has_result=True)
                break
            left = self.clock.left(sum(work[: done + 1]) / sum(work))
            result = CriterionResult.of(votes[-1], criterion_values(self.sweep, self.results))
            if callback is not None and callback(Progress(name, done, len(names), left, stats=result)):
                self.is_stopped = True
                break
        if self.is_stopped and not any(vote.weight > 0 and vote.k is not None for vote in votes):
            votes.append(self._vote("calinski_harabasz", ks))  # the fastest criterion
        if self.perfect_k is None and self.distinct > 1:  # one cluster for each row describes nothing
            votes = [vote.among(ks < self.distinct, ks) for vote in votes]
        return _weighted_votes(votes, self.results.get("tendency"), ks, self.weights)

    def _vote(self, name: str, ks: Array) -> Vote:
        if self.perfect_k is None:
            return CRITERIA[name](self, name, ks)
        return perfect_fit_vote(name, ks, self.perfect_k, lambda: CRITERIA[name](self, name, ks))

    def cached(self, name: str, compute: Callable[[], Any]) -> Any:
        """Result called `name`, computed at the first call only."""
        if name not in self.results:
            self.results[name] = compute()
        return self.results[name]

    def half_fits(self, ks: list[int]) -> HalfFits:
        """Fits to halves of the rows, computed at the first call only."""
        if self.halves is None or self.halves.ks != ks:
            rows, w = self.few
            rng = self.rngs["prediction_strength"]
            self.halves = HalfFits(
                self._estimator_of_halves(), rows, ks, self.effort.resamples, w, self.n_jobs, rng,
                plain_kmeans=self.is_plain_kmeans,
            )  # fmt: skip
        return self.halves

    def _estimator_of_halves(self) -> Any:
        """The estimator; a mixture starts from K-means, because a search for each of many fits takes long."""
        searches = self.estimator.get_params().get("init_params") == "auto"
        if not (self.is_mixture and self.effort.coarse and searches):
            return self.estimator
        return clone(self.estimator).set_params(init_params="kmeans")

    @property
    def structures(self) -> tuple[str, ...] | str:
        """Covariance structures; for one column there are only two."""
        return "all" if self.X.shape[1] == 1 else self.effort.structures

    def random_options(self, name: str) -> dict[str, Any]:
        return {"n_jobs": self.n_jobs, "random_state": self.rngs[name]}


def _near(k: int, top: int) -> set[int]:
    """Numbers of clusters near k, at most `top`."""
    reach = max(2, round(MARGIN * k))
    return set(range(max(1, k - reach), min(top, k + reach) + 1))


def _has_default_options(estimator: Any) -> bool:
    """Whether it is K-means with the default options, except those that do not change what is fitted."""
    if type(estimator) is not KMeans:
        return False
    defaults, varying = KMeans().get_params(), ("n_clusters", "random_state", "n_jobs", "engine", "verbose", "copy_x")
    options = {name: value for name, value in estimator.get_params().items() if name not in varying}
    return all(type(value) is type(defaults[name]) and value == defaults[name] for name, value in options.items())


def _weighted_votes(
    votes: list[Vote], tendency: Tendency | None, ks: Array, weights: dict[str, float]
) -> tuple[Vote, ...]:
    """With clusters, exclude K = 1. Without, do not count indices that cannot choose it, if it is one of `ks`."""
    if tendency is not None and tendency.clustered:
        votes = [vote.among(ks > 1, ks) for vote in votes]
    elif tendency is not None and (ks == 1).any():
        note = "not counted: data without clusters split as well"
        votes = [vote.without(note) if vote.criterion in BY_SPLITS else vote for vote in votes]
    return tuple(replace(vote, weight=weights[vote.criterion] if vote.weight > 0 else 0.0) for vote in votes)


def _tendency(run: CriteriaRun, name: str, ks: Array) -> Vote:
    test = run.tendency_test()
    if test is None:
        return voting.single_choice(name, ks, 1, NO_SPLIT)
    mean, deviation = test.by_chance
    note = (
        f"best silhouette {test.best:.2f}; data without clusters {mean:.2f} ± {deviation:.2f} (p = {test.p_value:.2g})"
    )
    return voting.single_choice(name, ks, None if test.clustered else 1, note)


def _below(ks: Array, limit: int) -> list[int]:
    return [k for k in ks.tolist() if k < limit]


def _curve(run: CriteriaRun, name: str, ks: Array) -> Vote:
    vote = voting.by_curve(run.cached(name, lambda: run.curve(name)), ks)
    return (
        vote.without("not counted: best at a much larger K, where no other index is") if name in run.unbounded else vote
    )


def _elbow(run: CriteriaRun, name: str, ks: Array) -> Vote:
    sweep = run.sweep
    if len(ks) < 3:
        return voting.single_choice(name, ks, None, "a knee needs at least three numbers of clusters")
    if not _are_representable(sweep.objectives):
        return voting.single_choice(name, ks, None, "the objective cannot be represented in the units of X")
    knee = run.cached(name, lambda: kneedle(sweep.ks, sweep.objectives, curve="convex", direction="decreasing"))
    return voting.single_choice(name, ks, None if knee.x is None else int(knee.x))


def _are_representable(objectives: Array) -> bool:
    """Whether no objective overflows, and the largest does not underflow."""
    return bool(np.isfinite(objectives).all()) and not 0 < float(np.abs(objectives).max()) < np.finfo(np.float64).tiny


def _gap(run: CriteriaRun, name: str, ks: Array) -> Vote:
    rows, w = run.few
    usable_ks = _below(ks, run.distinct_few)
    if not usable_ks:
        return voting.single_choice(name, ks, None, NO_SPLIT)
    result = run.cached(
        name,
        lambda: gap_statistic(
            rows, usable_ks, n_references=run.effort.references, reference="pca", rule="globalSEmax", sample_weight=w,
            **run.random_options(name),
        ),
    )  # fmt: skip
    return voting.by_gap(result, ks)


def _information(run: CriteriaRun, name: str, ks: Array) -> Vote:
    rows, w = run.few
    starts: Sweep | str = "auto"
    if not run.is_mixture and ks.max() > MAX_ADVICE_K:
        return voting.single_choice(name, ks, None, f"not computed for more than {MAX_ADVICE_K} clusters")
    if not run.searches_mixtures:
        labels = [np.asarray(values)[run.subset] for values in run.sweep.labels]
        starts = replace(run.sweep, labels=labels, X=rows, sample_weight=w)
    table: MixtureTable = run.cached(
        "mixtures",
        lambda: mixture_table(
            rows, ks, structures=run.structures, sample_weight=w, starts=starts, **run.random_options("icl")
        ),
    )
    return voting.by_mixtures(table, name, ks, float(len(rows) if w is None else w.sum()))


def _halves(run: CriteriaRun, name: str, ks: Array) -> Vote:
    """Vote of a criterion that evaluates fits to halves of the rows; K is limited, so that these have enough rows."""
    usable_ks = [k for k in _below(ks, run.distinct_few // 4 + 1) if k > 1]
    if not usable_ks:
        return voting.single_choice(name, ks, None, NO_SPLIT)
    if not can_predict(run.estimator):
        return voting.single_choice(name, ks, None, "the clusters of one half do not predict those of the other")
    fits = run.half_fits(usable_ks)
    if name == "valleys":
        return voting.by_valleys(run.cached(name, fits.valleys), ks)
    return voting.by_strength(run.cached(name, fits.prediction_strength), ks)


def _stability(run: CriteriaRun, name: str, ks: Array) -> Vote:
    """Vote of the stability; K is limited, so that resamples have enough distinct rows."""
    rows, w = run.few
    usable_ks = [k for k in _below(ks, run.distinct_few // 2 + 1) if k > 1]
    if not usable_ks:
        return voting.single_choice(name, ks, None, NO_SPLIT)
    options = {"n_resamples": run.effort.resamples, "sample_weight": w, **run.random_options(name)}
    return voting.by_stability(run.cached(name, lambda: stability(run.estimator, rows, usable_ks, **options)), ks)


def _dendrogram(run: CriteriaRun, name: str, ks: Array) -> Vote:
    rows = random_rows(len(run.X), TREE_ROWS, run.rngs[name])
    w = None if run.w is None else run.w[rows]
    tree = linkage(run.X[rows], "ward", sample_weight=w, n_jobs=run.n_jobs)
    result = run.cached(name, lambda: dendrogram_gap(tree, int(ks.max())))
    return voting.single_choice(name, ks, result.best)


def _splitting(run: CriteriaRun, name: str, ks: Array) -> Vote:
    search = x_means if name == "x_means" else g_means
    result = run.cached(
        name, lambda: search(run.X, k_max=int(ks.max()), sample_weight=run.w, **run.random_options(name))
    )
    return voting.single_choice(name, ks, result.n_clusters)


def _dirichlet(run: CriteriaRun, name: str, ks: Array) -> Vote:
    """Vote for the number of components of a Dirichlet process mixture."""
    rows, w = run.few
    if run.distinct_few <= rows.shape[1] + 1:
        return voting.single_choice(name, ks, None, NO_SPLIT)
    seed = int(run.rngs[name].integers(2**31))
    model = Mixture("auto", Gaussian(), random_state=seed, n_jobs=run.n_jobs)
    result = run.cached(name, lambda: model.fit(rows, sample_weight=w))
    return voting.single_choice(name, ks, result.n_components_)


CRITERIA: dict[str, Callable[[CriteriaRun, str, Array], Vote]] = {
    "tendency": _tendency,
    "silhouette": _curve,
    "calinski_harabasz": _curve,
    "davies_bouldin": _curve,
    "dunn": _curve,
    "elbow": _elbow,
    "gap": _gap,
    "bic": _information,
    "icl": _information,
    "prediction_strength": _halves,
    "valleys": _halves,
    "stability": _stability,
    "dirichlet": _dirichlet,
    "dendrogram": _dendrogram,
    "x_means": _splitting,
    "g_means": _splitting,
}
