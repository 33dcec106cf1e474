"""The command ``coterie compare``: several algorithms on the same rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.algorithms import ALGORITHMS, algorithm_of
from coterie.core.formatting import count, join_words
from coterie.core.progress import Callback, Progress, silent
from coterie.errors import ParameterError
from coterie.jobs import CompareJob
from coterie.jobs.choose_k_job import choose
from coterie.jobs.command_line import report_source
from coterie.jobs.fitting import fit
from coterie.jobs.job_table import job_table
from coterie.jobs.option_checks import check_k, check_rows_for_k, check_static, check_table_options
from coterie.jobs.output_files import check_outputs, with_report
from coterie.jobs.python_remedies import with_job_options
from coterie.metrics import adjusted_rand_score, calinski_harabasz_score, davies_bouldin_score, inertia
from coterie.preparation.fit_preparation import PreparedTable, prepare
from coterie.report.build.cluster_summaries import notes, silhouettes, table_fields
from coterie.report.build.fitted_model import FittedModel
from coterie.report.build.reliability import resampling_stability
from coterie.report.formatting import two_places
from coterie.report.html.report import Absent
from coterie.report.results import ComparisonResult, Contestant, Recommendation
from coterie.selection import Sweep
from coterie.selection.votes import RATIO, SILHOUETTE, relative_support


def execute(job: CompareJob, callback: Callback) -> ComparisonResult:
    check_table_options(job)
    check_k(job.k)
    _check_methods(job)
    check_static(job)
    check_outputs(job.path, force=job.force, report=job.report)
    table = job_table(job, callback)
    prepared = prepare(table, job, ALGORITHMS["kmeans"], callback)
    ks, k_notes, sweep = _ks(job, prepared, callback)
    algorithms, algorithm_notes = _algorithms(job, prepared)
    pairs = [(method, k) for method in algorithms for k in ks]
    runs: list[Contestant] = []
    labels: list[NDArray[np.integer]] = []
    warnings: list[str] = []
    swept: dict[tuple[str, int], FittedModel] = {}
    models: list[Any] = []
    for done, (method, k) in enumerate(pairs):
        callback(Progress(f"fitting {method}, K = {k}", done, len(pairs)))
        result = fit(job, method, k, prepared, {}, silent, sweep=sweep if method == "kmeans" else None)
        if result.sweep_ks is not None:
            swept[method, k] = result
        runs.append(_contestant(method, k, result, prepared, job))
        labels.append(result.labels)
        models.append(result.model)
        warnings += _warnings(method, k, result)
    runs = _mark_best(runs)
    if len(algorithms) > 1:
        runs = _with_stability(runs, models, prepared, job, callback)
    best = {(run.method, run.k): run_labels for run, run_labels in zip(runs, labels, strict=True) if run.best}
    agreement = tuple(tuple(float(adjusted_rand_score(one, other)) for other in best.values()) for one in best.values())
    comparison = ComparisonResult(
        **table_fields(table, prepared, job.weight, job.seed),
        runs=tuple(runs),
        agreement=agreement,
        recommendation=recommend([run for run in runs if run.best], agreement, prepared.rows.n),
        notes=(*table.notes, *notes(prepared), *k_notes, *algorithm_notes),
        warnings=(*prepared.warnings, *warnings),
    )
    comparison = with_job_options(comparison) if job.in_python else comparison

    def build_report() -> Any:
        from coterie.report.build import comparison_report, python_code

        source = report_source(job, table, prepared)
        return comparison_report.build(
            comparison, source, labels=best, python=python_code.comparison_code(source, best, swept)
        )

    return with_report(job, comparison, build_report, callback)


def _check_methods(job: CompareJob) -> None:
    for name in job.algorithms:
        method = algorithm_of(name)
        if method.finds_k:
            raise ParameterError(
                f"{name} cannot be compared: it finds the number of clusters itself, and leaves noise in no cluster. "
                f"Run coterie fit -a {name}, and coterie compare-labels."
            )
        if method.mixed or method.series:
            raise ParameterError(f"{name} cannot be compared: the others do not accept its kind of rows.")
    if job.series:
        raise ParameterError("--series is not for compare, whose algorithms need rows of numbers: use fit or choose-k.")
    if job.missing == "ignore":
        raise ParameterError("--missing ignore is not for a comparison: use drop, mean or median.")


def _algorithms(job: CompareJob, prepared: PreparedTable) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The algorithms to compare; by default some that are fast enough for the table, with a note."""
    if job.algorithms:
        return tuple(dict.fromkeys(job.algorithms)), ()
    X = prepared.rows.X
    names = default_algorithms(len(X), X.shape[1], is_one_unit=prepared.preparation.scale == "none")
    return names, (f"algorithms for {count(len(X))}: {', '.join(names)} (choose others with -a).",)


def _with_stability(
    runs: list[Contestant], models: list[Any], prepared: PreparedTable, job: CompareJob, callback: Callback
) -> list[Contestant]:
    """The runs; the best of each algorithm with its stability under resampling."""
    result = []
    for done, (run, model) in enumerate(zip(runs, models, strict=True)):
        if run.best:
            callback(Progress(f"resampling {run.method}, K = {run.k}", done, len(runs)))
            measured = resampling_stability(prepared, run.k, model, job.seed, job.threads)
            run = run if isinstance(measured, Absent) else replace(run, stability=measured.mean)
        result.append(run)
    return result


def _ks(
    job: CompareJob, prepared: PreparedTable, callback: Callback
) -> tuple[list[int], tuple[str, ...], Sweep | None]:
    """The numbers of clusters, a note on their choice, and the fits of K-means that were evaluated for it."""
    if isinstance(job.k, str):
        choice, details = choose(job, "kmeans", prepared.rows.model_input, prepared.weight, prepared, callback)
        note = f"{choice.heading}: {choice.reason}"
        k = choice.recommended if choice.recommended > 1 else choice.runner_up or 2
        return [k], (note,), details.reusable_sweep
    first, last = job.k if isinstance(job.k, tuple) else (job.k, job.k)
    check_rows_for_k(job.k, prepared.rows.n)
    return list(range(first, last + 1)), (), None


def _contestant(method: str, k: int, result: FittedModel, prepared: PreparedTable, job: CompareJob) -> Contestant:
    X, labels, weight = prepared.rows.X, result.labels, prepared.weight
    measured = silhouettes(prepared, labels, threads=job.threads)  # with the same metric for all
    has_indices = 2 <= len(np.unique(labels)) < len(X)
    return Contestant(
        method=method,
        k=k,
        inertia=float(inertia(X, labels, sample_weight=weight)),
        silhouette=None if isinstance(measured, Absent) else measured.mean,
        davies_bouldin=float(davies_bouldin_score(X, labels, sample_weight=weight)) if has_indices else None,
        calinski_harabasz=float(calinski_harabasz_score(X, labels, sample_weight=weight)) if has_indices else None,
        smallest=int(np.unique(labels, return_counts=True)[1].min()),
        seconds=result.seconds,
        best=False,
    )


def _mark_best(runs: list[Contestant]) -> list[Contestant]:
    """Mark the run of each algorithm with the largest silhouette."""
    best: dict[str, int] = {}
    for i, run in enumerate(runs):
        if run.method not in best or (run.silhouette or -1.0) > (runs[best[run.method]].silhouette or -1.0):
            best[run.method] = i
    return [replace(run, best=best[run.method] == i) for i, run in enumerate(runs)]


def _warnings(method: str, k: int, result: FittedModel) -> list[str]:
    iterations = count(result.iterations or 0, "iteration")
    message = f"not converged after {iterations}: fit it alone with a larger --max-iter."
    warnings = [*([] if result.converged else [message]), *result.warnings]
    return [f"{method}, K = {k}: {warning}" for warning in warnings]


# Which algorithms are compared by default, and which one of several is recommended.

MEDOID_ROWS = 5_000  # rows up to which all pairs of rows are compared repeatedly
TREE_ROWS = 20_000  # rows up to which a tree of all rows is computed
MIXTURE_VALUES = 20_000_000  # rows times squares of columns up to which covariances of clusters are estimated
VECTOR_COLUMNS = 16  # columns of one unit from which the direction of a row is compared as well

CRITERIA = {  # by field of a run: title, weight, scale of the support, and whether higher values are better
    "silhouette": ("silhouette", 1.0, SILHOUETTE, True),
    "stability": ("stability under resampling", 1.0, SILHOUETTE, True),
    "davies_bouldin": ("Davies–Bouldin", 0.25, RATIO, False),
    "calinski_harabasz": ("Calinski–Harabasz", 0.25, RATIO, True),
}
LOGARITHMIC = ("davies_bouldin", "calinski_harabasz")  # criteria that are ratios
SAME, EQUAL = 0.9, 0.9999  # adjusted Rand index from which clusters of two algorithms are nearly, or exactly, the same
CLEAR_SUPPORT, CLEAR_MARGIN, WEAK_MARGIN = 0.85, 0.15, 0.05
TINY = 0.01  # share of the rows below which a cluster is a few outliers
SEPARATED = 0.25  # silhouette below which clusters overlap so much that no algorithm is clear
STABLE = 0.6  # stability under resampling below which no algorithm is clear


def default_algorithms(n: int, d: int, *, is_one_unit: bool) -> tuple[str, ...]:
    """Algorithms of different kinds that are fast enough for a table of this size."""
    names = ["kmeans"]
    names += ["gmm"] if n * d * d <= MIXTURE_VALUES else []
    names += ["ward"] if n <= TREE_ROWS else ["bisecting"]
    names += ["kmedoids"] if n <= MEDOID_ROWS else []
    names += ["spherical"] if is_one_unit and d >= VECTOR_COLUMNS else []
    return tuple(names)


def recommend(runs: Sequence[Contestant], agreement: Sequence[Sequence[float]], n: int) -> Recommendation | None:
    """The best of the runs, one for each algorithm, how clear it is, and why; None if there are fewer than two."""
    if len(runs) < 2:
        return None
    is_usable = np.array([run.smallest >= TINY * n for run in runs])
    support = np.where(is_usable | ~is_usable.any(), _support(runs), 0.0)
    ranked = np.argsort(-support, kind="stable")
    best, second = int(ranked[0]), int(ranked[1])
    margin = float(support[best] - support[second])
    lowest = min(agreement[best])
    is_same = lowest >= SAME
    silhouette = runs[best].silhouette
    reasons = [] if lowest >= EQUAL else [_wins(runs, best)]
    if is_same:
        same = (
            "the same clusters" if lowest >= EQUAL else f"nearly the same clusters (adjusted Rand index ≥ {lowest:.2f})"
        )
        reasons.append(f"All algorithms find {same}, so that the choice hardly matters.")
    elif margin < CLEAR_MARGIN:
        reasons.append(
            f"{_title(runs[second])} is close (support {support[second]:.2f}, and {support[best]:.2f} for the best)."
        )
    left_out = [_title(run) for run, usable in zip(runs, is_usable, strict=True) if not usable]
    if left_out and is_usable.any():
        reasons.append(f"{_capitalize(join_words(left_out))}: the smallest cluster has less than 1 % of the rows.")
    is_overlapping = silhouette is not None and silhouette < SEPARATED
    if is_overlapping:
        reasons.append(f"The clusters overlap (silhouette {two_places(silhouette)}): look at more than one.")
    stability = runs[best].stability
    is_unstable = stability is not None and stability < STABLE
    if is_unstable:
        reasons.append(f"Its clusters are not stable under resampling ({two_places(stability)}): try another K.")
    strength = "none" if margin < WEAK_MARGIN and not is_same else "weak"
    if not (is_overlapping or is_unstable) and (is_same or (support[best] >= CLEAR_SUPPORT and margin >= CLEAR_MARGIN)):
        strength = "clear"
    return Recommendation(runs[best].method, runs[best].k, strength, " ".join(reasons))


def _support(runs: Sequence[Contestant]) -> np.ndarray:
    """Weighted mean of the supports by the criteria, from 0 to 1, for each run."""
    total, weights = np.zeros(len(runs)), 0.0
    for name, (_, weight, scale, higher) in CRITERIA.items():
        values = _values(runs, name)
        if np.isnan(values).all():
            continue
        scores = (1.0 if higher else -1.0) * (np.log(np.maximum(values, 1e-12)) if name in LOGARITHMIC else values)
        total += weight * relative_support(scores / scale)
        weights += weight
    return np.round(total / max(weights, 1e-12), 6)  # rounding errors do not decide


def _wins(runs: Sequence[Contestant], best: int) -> str:
    """The criteria by which a run is the best, with its values, and those by which others are."""
    wins, losses = [], []
    for name, (title, _, _, higher) in CRITERIA.items():
        values = _values(runs, name)
        if np.isnan(values).all():
            continue
        first = int(np.nanargmax(values) if higher else np.nanargmin(values))
        if np.isclose(values[best], values[first]):
            wins.append(f"{title} {two_places(float(values[best]))}")
        else:
            losses.append(f"{title} prefers {_title(runs[first])}")
    if not wins:
        return f"No criterion is best for {_title(runs[best])}, but all are good: {'; '.join(losses)}."
    others = f"; {join_words(losses)}" if losses else ""
    return f"{_capitalize(_title(runs[best]))} is best by {join_words(wins)}{others}."


def _values(runs: Sequence[Contestant], name: str) -> np.ndarray:
    return np.array([np.nan if getattr(run, name) is None else getattr(run, name) for run in runs], np.float64)


def _title(run: Contestant) -> str:
    return algorithm_of(run.method).title


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
