"""How good clusters are: how certain, whether they come back, what they suffer from."""

import copy
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import clone

from coterie.data.picking import some
from coterie.diagnosis import diagnose
from coterie.diagnosis.diagnosis import Diagnosis
from coterie.diagnosis.findings import Check, join_names
from coterie.jobs.fitting import Fit
from coterie.jobs.preparation import Preparation
from coterie.jobs.prepare import Prepared
from coterie.report.html.displays import Certainty
from coterie.report.html.report import Absent, Stable
from coterie.selection import stability

RESAMPLES, FEW_RESAMPLES = 20, 10
ROWS, FEW_ROWS = 5_000, 1_000  # that are resampled
ROWS_A_CLUSTER = 20  # so many a cluster at least
DISTINCT = 4  # different rows a cluster, of which a resample still has some for each
MOST_CLUSTERS = 250  # beyond which resampling takes too long
STARTS = 3  # of each fit to a resample
CERTAIN = 0.9  # probability below which a row is doubtful
STEPS, DRAWN = 200, 30  # points of an outline, and clusters that are drawn
CHECKED, FEWEST_CHECKED, CHECKED_VALUES = 200_000, 10_000, 20_000_000  # rows that are diagnosed, and their values
NAMED = 5  # rows in a sentence
SLOW = ("kernel", "linkage", "metric", "init_params")  # parameters of what looks at all pairs, or searches for starts


def certainty(fit: Fit | None, prepared: Prepared, codes: NDArray[np.integer], names: list[str]) -> Certainty | None:
    """How probable the clusters of rows are, where the model knows."""
    found = None if fit is None or len(names) < 2 else fit.probabilities(prepared.rows.given)
    if found is None:
        return None
    by = [np.sort(found[codes == j])[::-1].astype(np.float64) for j in range(len(names))]
    means = np.array([each.mean() for each in by])
    return Certainty(
        names=names,
        sizes=np.array([len(each) for each in by]),
        means=means,
        below=np.array([(each < CERTAIN).mean() for each in by]),
        outlines=[each[np.linspace(0, len(each) - 1, min(len(each), STEPS)).round().astype(int)] for each in by],
        mean=float(found.mean()),
        shown=np.sort(np.argsort(means, kind="stable")[:DRAWN]),
        n=len(found),
    )


def comes_back(prepared: Prepared, k: int, model: Any, seed: int, threads: int | None) -> Stable | Absent:
    """Mean adjusted Rand index of clusters of rows drawn anew, of all rows or of some of many."""
    why = _no_resamples(prepared.preparation, k, model)
    if why is not None:
        return Absent(why)
    S, weight = prepared.rows.S, prepared.weight
    slow = any(name in model.get_params(deep=False) for name in SLOW)
    kept = some(len(S), max(FEW_ROWS if slow else ROWS, ROWS_A_CLUSTER * k))
    if len(np.unique(S[kept], axis=0)) < DISTINCT * k:
        return Absent("too few different rows to draw them anew")
    resamples = FEW_RESAMPLES if slow else RESAMPLES
    estimator = clone(model)
    if isinstance(estimator.get_params(deep=False).get("n_init"), int):
        estimator.set_params(n_init=min(STARTS, estimator.n_init))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits to resamples: that few rows make empty clusters, and the like
        found = stability(
            estimator, S[kept], [k], n_resamples=resamples, n_jobs=threads, random_state=seed,
            method="subsample" if getattr(model, "method", None) == "diana" else "auto",  # which takes no weights
            sample_weight=None if weight is None else weight[kept],
        )  # fmt: skip
    return Stable(float(found.mean[0]), resamples, len(kept))


def _no_resamples(how: Preparation, k: int, model: Any) -> str | None:
    if model is None:
        return "labels alone cannot be fitted again: --model gives it"
    if k < 2:
        return "one cluster always comes back"
    if how.mixed or how.series:
        return f"not measured for {'series' if how.series else 'columns of several kinds'}"
    if k > MOST_CLUSTERS:
        return f"not measured for more than {MOST_CLUSTERS} clusters: see coterie.selection.stability"
    return None


def suffers_from(
    prepared: Prepared, codes: NDArray[np.integer], model: Any, seed: int, threads: int | None
) -> Diagnosis | Absent:
    """All checks of `coterie.diagnose`, with the names of the columns."""
    how = prepared.preparation
    if how.mixed or how.series:
        return Absent(f"The checks look at rows of numbers, not at {'series' if how.series else 'categories'}.")
    S, weight = prepared.rows.S, prepared.weight
    kept = some(len(S), checked(prepared))
    frame = pl.DataFrame(np.asarray(S[kept]), schema=_different(how.names))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = diagnose(
            frame, _judged(model, codes, kept), sample_weight=None if weight is None else weight[kept],
            random_state=seed, n_jobs=threads,
        )  # fmt: skip
    places = np.flatnonzero(prepared.rows.kept)[kept]
    return replace(found, checks={name: _placed(check, places) for name, check in found.checks.items()})


def checked(prepared: Prepared) -> int:
    """How many rows are diagnosed."""
    n, d = prepared.rows.S.shape
    return min(n, max(FEWEST_CHECKED, min(CHECKED, CHECKED_VALUES // d)))


def _judged(model: Any, codes: NDArray[np.integer], kept: NDArray[np.integer]) -> Any:
    """The model, as if it had been fitted to the rows kept; their clusters, where it was not fitted to all."""
    if model is None or len(getattr(model, "labels_", ())) != len(codes):
        return codes[kept]
    judged = copy.copy(model)
    judged.labels_ = np.asarray(model.labels_)[kept]
    return judged


def _placed(check: Check, places: NDArray[np.integer]) -> Check:
    """The check with rows called by their places in the table, not by those among the rows that were looked at."""
    finding = check.finding
    if finding is None or "indices" not in finding.details:
        return check
    before = finding.details["indices"]
    after = places[before].tolist()
    old, new = (join_names([str(i) for i in rows[:NAMED]]) for rows in (before, after))
    head, _, tail = finding.sentence.rpartition(old)
    told = replace(finding, sentence=f"{head}{new}{tail}", details={**finding.details, "indices": after})
    return replace(check, finding=told)


def _different(names: tuple[str, ...]) -> list[str]:
    """A frame's names of columns differ; those made of categories need not."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found
