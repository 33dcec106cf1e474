"""The rows of which `choose_k` asks for the number of clusters, and how each criterion is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from coterie.core.clock import Clock
from coterie.core.errors import InputError
from coterie.core.progress import Callback, Progress
from coterie.families import Gaussian
from coterie.hierarchy import linkage
from coterie.mixture.family_mixture import Mixture
from coterie.selection import votes as voting
from coterie.selection.dendrogram import dendrogram_gap
from coterie.selection.gap import gap_statistic
from coterie.selection.knee import kneedle
from coterie.selection.mixture_table import MixtureTable, mixture_table
from coterie.selection.splitting import g_means, x_means
from coterie.selection.stability import Stability, stability
from coterie.selection.sweep import Sweep, sweep
from coterie.selection.tendency import Tendency, drawn, tendency
from coterie.selection.votes import BY_SPLITS, Vote

Array = np.ndarray[Any, Any]

DENSE = 10  # up to here every K is looked at
GROWTH = 1.2  # beyond, at first, each K is so much larger than the last
MOST = 180
SMALLEST = 10  # rows a cluster has on average, at the largest K that 'auto' looks at
AROUND = 0.1  # of what an index favours: how far on either side every K is looked at
NO_SPLIT = "there are too few distinct rows to split"
COSTS = {"tendency": 5.0, "icl": 2.5, "gap": 0.5, "prediction_strength": 4.0, "stability": 4.0, "dirichlet": 1.0}
SWEEPS, ALL_MIXTURES, LITTLE = 1.0, 40.0, 0.1  # what else takes long, in about the same seconds; and all others
TREE_ROWS = 10_000  # of which a tree of merges is made


@dataclass(frozen=True)
class Effort:
    """What is spent: it depends on the shape of the data alone, so that the answer does, too."""

    rows: int  # of more, as many drawn ones are looked at
    mixture_rows: int
    references: int
    resamples: int
    structures: tuple[str, ...] | str
    coarse: bool  # mixtures from the clusters of K-means, and not to the end
    methods: tuple[str, ...]


class Study:
    """The rows, and what is asked of them; each criterion has its own chance, whichever others are asked."""

    def __init__(
        self, X: Array, w: Array | None, estimator: Any, effort: Effort, n_jobs: int | None, rng: np.random.Generator
    ):
        self.X, self.w, self.effort, self.n_jobs = X, w, effort, n_jobs
        self.distinct = len(np.unique(X, axis=0))
        self.weight = float(len(X) if w is None else w.sum())
        self.chance = dict(zip(("sweep", "few", *CRITERIA), rng.spawn(2 + len(CRITERIA)), strict=True))
        known = estimator.get_params()
        own = {"random_state": int(self.chance["sweep"].integers(2**31)), "n_jobs": n_jobs}
        own = {name: value for name, value in own.items() if name in known and known[name] is None}
        self.estimator = clone(estimator).set_params(**own)
        self.kept = drawn(len(X), effort.mixture_rows, self.chance["few"])
        self.few = X[self.kept], None if w is None else w[self.kept]
        self.distinct_few = len(np.unique(self.few[0], axis=0))
        self.swept: Sweep
        self.results: dict[str, Any] = {}
        self.clock = Clock()
        self.endless: set[str] = set()  # indices that are best at the most clusters there can be

    def given(self, wanted: list[int]) -> list[int]:
        if wanted[-1] > self.distinct:
            raise InputError(
                f"ks go up to {wanted[-1]}, and the rows looked at have {self.distinct} distinct ones: ask for fewer"
            )
        self.sweep(wanted)
        return wanted

    def range(self, names: tuple[str, ...]) -> list[int]:
        """Every K of interest: a few at first, and then all about those that an index favours.

        Few, if the rows split no better than rows without clusters: then indices favour any K.
        """
        top = min(MOST, max(DENSE, len(self.X) // SMALLEST), max(1, self.distinct - 1))
        coarse = _spaced(top)
        self.sweep(coarse)
        found = set(range(1, min(DENSE, top) + 1))
        if coarse[-1] > DENSE and ("tendency" not in names or self.clustered):
            for name in ("silhouette", "calinski_harabasz", "davies_bouldin"):
                best = self.swept.curve(name).best
                if best == top:
                    self.endless.add(name)
                elif best is not None:
                    reach = max(2, round(AROUND * best))
                    found |= set(range(max(1, best - reach), min(top, best + reach) + 1))
        self.sweep(sorted(found))
        return sorted(found)

    def sweep(self, ks: list[int]) -> None:
        self.swept = sweep(self.estimator, ks, self.X, self.w)

    @property
    def clustered(self) -> bool:
        """Whether the rows split better than rows without clusters."""
        test = self.test()
        return test is not None and test.clustered

    def test(self) -> Tendency | None:
        """Of few clusters, and of as many as are best by the silhouette; None where there are too few distinct rows."""
        if "tendency" not in self.results:
            best = self.swept.curve("silhouette").best
            looked = sorted({k for k in range(2, DENSE + 1) if k < self.distinct} | ({best} if best else set()))
            references, how = self.effort.references, self.how("tendency")
            found = tendency(self.X, looked, n_references=references, sample_weight=self.w, **how) if looked else None
            self.results["tendency"] = found
        found = self.results["tendency"]
        return found

    def ask(self, ks: Array, names: tuple[str, ...], watch: Callback | None) -> tuple[Vote, ...]:
        """The votes; fewer where `watch` ends it."""
        found, costs = [], [self._cost(name) for name in names]
        for done, name in enumerate(names, start=1):
            found.append(CRITERIA[name](self, name, ks))
            left = self.clock.left((SWEEPS + sum(costs[:done])) / (SWEEPS + sum(costs)))
            if watch is not None and watch(Progress(name, done, len(names), left)):
                break
        return _counted(found, self.results.get("tendency"), ks)

    def _cost(self, name: str) -> float:
        mixtures = name in ("icl", "bic") and not self.effort.coarse
        return ALL_MIXTURES if mixtures else COSTS.get(name, LITTLE)

    def keep(self, name: str, make: Callable[[], Any]) -> Any:
        """A result that several criteria share, made once."""
        if name not in self.results:
            self.results[name] = make()
        return self.results[name]

    def coarse_starts(self) -> Sweep:
        """The clusters of the few rows."""
        labels = [np.asarray(mine)[self.kept] for mine in self.swept.labels]
        return replace(self.swept, labels=labels, X=self.few[0], sample_weight=self.few[1])

    @property
    def structures(self) -> tuple[str, ...] | str:
        """Of covariances; one column has but two."""
        return "all" if self.X.shape[1] == 1 else self.effort.structures

    def how(self, name: str) -> dict[str, Any]:
        return {"n_jobs": self.n_jobs, "random_state": self.chance[name]}


def _spaced(top: int) -> list[int]:
    """From 1 to `top`, each and then ever fewer."""
    found = list(range(1, min(DENSE, top) + 1))
    while found[-1] < top:
        found.append(min(top, int(found[-1] * GROWTH)))
    return found


def _counted(votes: list[Vote], tendency: Tendency | None, ks: Array) -> tuple[Vote, ...]:
    """Votes as they count: indices of splits not where rows split no better than chance; else none for one cluster."""
    if tendency is None:
        return tuple(votes)
    if not tendency.clustered:
        note = "does not count: rows without clusters split as well"
        return tuple(each.without(note) if each.criterion in BY_SPLITS else each for each in votes)
    return tuple(each.among(ks > 1, ks) for each in votes)


def _tendency(study: Study, name: str, ks: Array) -> Vote:
    test = study.test()
    if test is None:
        return voting.for_one(name, ks, 1, NO_SPLIT)
    mean, deviation = test.by_chance
    said = f"best silhouette {test.best:.2f}; without clusters {mean:.2f} ± {deviation:.2f} (p = {test.p_value:.2g})"
    return voting.for_one(name, ks, None if test.clustered else 1, said)


def _below(ks: Array, limit: int) -> list[int]:
    return [k for k in ks.tolist() if k < limit]


def _curve(study: Study, name: str, ks: Array) -> Vote:
    curve = study.keep(name, lambda: study.swept.curve(name))
    found = voting.by_curve(curve, ks)
    return found.without("does not count: the more clusters, the better") if name in study.endless else found


def _elbow(study: Study, name: str, ks: Array) -> Vote:
    swept = study.swept
    if len(ks) < 3:
        return voting.for_one(name, ks, None, "three numbers of clusters make a bend")
    knee = study.keep(name, lambda: kneedle(swept.ks, swept.objectives, curve="convex", direction="decreasing"))
    return voting.for_one(name, ks, None if knee.x is None else int(knee.x))


def _gap(study: Study, name: str, ks: Array) -> Vote:
    rows, w = study.few
    wanted = _below(ks, study.distinct_few)
    if not wanted:
        return voting.for_one(name, ks, None, NO_SPLIT)
    found = study.keep(
        name,
        lambda: gap_statistic(
            rows, wanted, n_references=study.effort.references, reference="pca", rule="globalSEmax", sample_weight=w,
            **study.how(name),
        ),
    )  # fmt: skip
    return voting.by_gap(found, ks)


def _information(study: Study, name: str, ks: Array) -> Vote:
    rows, w = study.few
    starts = study.coarse_starts() if study.effort.coarse else "search"
    table: MixtureTable = study.keep(
        "mixtures",
        lambda: mixture_table(rows, ks, study.structures, sample_weight=w, starts=starts, **study.how("icl")),
    )
    return voting.by_mixtures(table, name, ks, float(len(rows) if w is None else w.sum()))


def _strength(study: Study, name: str, ks: Array) -> Vote:
    return _resampled(study, name, ks, study.distinct_few // 4, voting.by_strength, measure="prediction_strength")


def _stability(study: Study, name: str, ks: Array) -> Vote:
    return _resampled(study, name, ks, study.distinct_few // 2, voting.by_stability)


def _resampled(
    study: Study, name: str, ks: Array, most: int, judge: Callable[[Stability, Array], Vote], **how: Any
) -> Vote:
    """By what comes back when rows are drawn anew; up to so many clusters, that draws have enough distinct rows."""
    rows, w = study.few
    wanted = [k for k in _below(ks, most + 1) if k > 1]
    if not wanted:
        return voting.for_one(name, ks, None, NO_SPLIT)
    resamples, own = study.effort.resamples, study.how(name) | how
    found = study.keep(
        name, lambda: stability(study.estimator, rows, wanted, n_resamples=resamples, sample_weight=w, **own)
    )
    return judge(found, ks)


def _dendrogram(study: Study, name: str, ks: Array) -> Vote:
    kept = drawn(len(study.X), TREE_ROWS, study.chance[name])
    w = None if study.w is None else study.w[kept]
    tree = linkage(study.X[kept], "ward", sample_weight=w, n_jobs=study.n_jobs)
    found = study.keep(name, lambda: dendrogram_gap(tree, int(ks.max())))
    return voting.for_one(name, ks, found.best)


def _splitting(study: Study, name: str, ks: Array) -> Vote:
    search = x_means if name == "x_means" else g_means
    found = study.keep(name, lambda: search(study.X, k_max=int(ks.max()), sample_weight=study.w, **study.how(name)))
    return voting.for_one(name, ks, found.n_clusters)


def _dirichlet(study: Study, name: str, ks: Array) -> Vote:
    """How many components a Dirichlet process keeps."""
    rows, w = study.few
    if study.distinct_few <= rows.shape[1] + 1:
        return voting.for_one(name, ks, None, NO_SPLIT)
    seed = int(study.chance[name].integers(2**31))
    model = Mixture(Gaussian(), "auto", random_state=seed, n_jobs=study.n_jobs)
    found = study.keep(name, lambda: model.fit(rows, sample_weight=w))
    return voting.for_one(name, ks, found.n_components_)


CRITERIA: dict[str, Callable[[Study, str, Array], Vote]] = {
    "tendency": _tendency,
    "silhouette": _curve,
    "calinski_harabasz": _curve,
    "davies_bouldin": _curve,
    "dunn": _curve,
    "elbow": _elbow,
    "gap": _gap,
    "bic": _information,
    "icl": _information,
    "prediction_strength": _strength,
    "stability": _stability,
    "dirichlet": _dirichlet,
    "dendrogram": _dendrogram,
    "x_means": _splitting,
    "g_means": _splitting,
}
