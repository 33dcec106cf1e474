"""One fit of an algorithm to prepared rows, shared by the commands."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie.algorithms import Algorithm, algorithm_of, parameters, sweep_parameters
from coterie.base import ObjectEstimator
from coterie.core.progress import Callback, Progress
from coterie.core.protocols import InformationCriteria, SortedComponents, parameters_of
from coterie.errors import FitInterruptedWarning, InputError
from coterie.families.frame_columns import product_of
from coterie.jobs import TableJob
from coterie.jobs.cluster_rows import ClusterRows, connected_engine
from coterie.machine import check_memory
from coterie.metrics import adjusted_rand_score
from coterie.persistence.renumber import renumbered
from coterie.plots.convergence_display import Starts
from coterie.preparation.fit_preparation import PreparedTable
from coterie.report.build.fitted_model import FittedModel

if TYPE_CHECKING:
    from coterie.selection import Sweep

TREE_ROWS = 20_000  # rows whose distances fit into any memory


def fit(
    job: TableJob, name: str, k: int | str, prepared: PreparedTable, options: Mapping[str, Any], callback: Callback, *,
    sample: int | None = None, engine: str = "local", checkpoint: Path | None = None, recorded: bool = False,
    sweep: Sweep | None = None, remote: ClusterRows | None = None,
) -> FittedModel:  # fmt: skip
    """Fit the algorithm to all rows, or to a random sample of which the other rows get their clusters.

    If K was chosen by fits to the same rows (`sweep`), the fit for K is taken from there. If workers of a cluster read
    the rows (`remote`), the table is a sample: the fit is to all rows, and the result has the clusters of the sample.
    """
    method, fit_options = algorithm_of(name), parameters(name, options)
    X, weight, indices = sample_rows(prepared, sample, job.seed)
    if sweep is not None and fit_options.get("covariance_type") != "auto":
        watched = fit(job, name, k, prepared, options, callback, sample=sample, recorded=True) if recorded else None
        return from_sweep(name, int(k), prepared, options, sweep, watched)
    if method.all_pairs:
        what = f"the distances of {len(X):,} rows for {method.title}"
        check_memory(len(X) ** 2 * X.itemsize, what, f"try -a bisecting or ward, or --sample {TREE_ROWS}.")
    notes: list[str] = []
    if fit_options.get("covariance_type") == "auto":
        fit_options["covariance_type"] = _best_covariance(X, int(k), weight, job.seed, job.threads)
        notes.append(f"covariance chosen by BIC: {fit_options['covariance_type']}.")
    model = build_estimator(method, k, fit_options, prepared.preparation.missing, job.seed, job.threads)
    if job.device == "cuda":
        model.set_params(device="cuda")
    if checkpoint is not None:
        model.set_params(checkpoint=checkpoint)
    if method.mixed:
        model.set_params(family=product_of(X))
        notes.append(f"families: {_family_names(model.families_)}.")
    start = time.perf_counter()
    recording = None
    if remote is None:
        place: Any = _on_engine(engine, X, model)
    else:  # all rows of the files, which the workers read and prepare
        model.set_params(engine=remote.engine)
        place = nullcontext((remote.prepared(prepared.preparation, job.weight), remote.n_workers))
    with caught_warnings() as messages, place as (rows, n_workers):
        speed = Speed(f"fitting {method.title}", rows.shape[0], n_workers)
        restarts = _watch(model, speed, callback, fit_options.get("n_init"))
        if recorded:
            unit = "" if prepared.preparation.scale == "none" else " (scaled)"
            names = [f"{name}{unit}" for name in prepared.preparation.names]
            recording = model.fit_recorded(rows, weight, columns=names)
        else:
            model.fit(rows, sample_weight=weight if remote is None else None)
        model.labels_ = np.asarray(model.labels_)  # those of Dask are computed here
        labels = model.labels_ if indices is None else np.asarray(model.predict(prepared.rows.model_input))
        numbers = cluster_numbers(model, labels)
        if recording is not None:
            recording.renumber(numbers)
            if engine != "local":
                recording.trace()  # its passes need the engine
    seconds = time.perf_counter() - start
    known = model.get_params(deep=False)  # callbacks, checkpoints and engines are not part of the model
    defaults = {"callback": None, "checkpoint": None, "engine": "auto"}
    model.set_params(**{name: value for name, value in defaults.items() if name in known})
    if job.device == "cuda":
        model.set_params(device="auto")  # the model can then be used on machines without a GPU
    if remote is not None:
        labels = labels[remote.numbers][prepared.rows.row_mask]
    scores = scores_of(model, X, weight)
    return fitted_model(
        renumbered(model, numbers), np.append(numbers, -1)[labels], scores, seconds=seconds, options=fit_options,
        notes=tuple(notes), warnings=tuple(messages), recording=recording, restarts=restarts,
        is_renumbered=is_renumbered(numbers),
    )  # fmt: skip


def cluster_numbers(model: Any, labels: Any) -> Any:
    """The number of each cluster of a fit in the results of jobs: clusters are numbered by their first rows.

    So the same clusters have the same numbers, whichever way they were found. Trees and density-based clusters have
    these numbers already. Bayesian mixtures keep theirs, because their prior depends on them. Clusters without rows
    come last.
    """
    is_sorted = isinstance(vars(model).get("_fitted_model"), SortedComponents)
    if is_sorted or isinstance(model, ObjectEstimator) or hasattr(model, "weight_concentration_"):
        return np.arange(int(labels.max(initial=-1)) + 1)
    k = {"n_clusters": 0, "n_components": 0, **parameters_of(model)}
    used, first = np.unique(labels, return_index=True)
    unused = np.setdiff1d(np.arange(k["n_clusters"] or k["n_components"]), used)
    return np.argsort([*used[np.argsort(first)], *unused])


def is_renumbered(numbers: Any) -> bool:
    """Whether the numbers are not those of the fit."""
    return bool((numbers != np.arange(len(numbers))).any())


def fitted_model(model: Any, labels: Any, scores: dict[str, float], **fields: Any) -> FittedModel:
    """A `FittedModel` with iterations and convergence of the model, and the other fields as given or empty."""
    converged = bool(getattr(model, "converged_", True))
    # A fit of a sweep continues converged fits for other K: its last few iterations are not those of the whole fit.
    has_iterations = hasattr(model, "n_iter_") and not ("sweep_ks" in fields and converged)
    defaults: dict[str, Any] = {"seconds": None, "options": {}, "notes": (), "warnings": ()}
    defaults["iterated"] = model if has_iterations else None
    return FittedModel(model=model, labels=np.asarray(labels), scores=scores, converged=converged, **defaults | fields)


def from_sweep(
    name: str, k: int, prepared: PreparedTable, options: Mapping[str, Any], sweep: Sweep,
    watched: FittedModel | None = None,
) -> FittedModel:  # fmt: skip
    """The fit of a sweep for `k` clusters; an animation needs another fit, because those of a sweep start converged."""
    model = sweep.model(k)
    has_all_rows = len(model.labels_) == prepared.rows.n
    labels = np.asarray(model.labels_ if has_all_rows else model.predict(prepared.rows.model_input))
    is_same = watched is None or adjusted_rand_score(watched.labels, labels) == 1.0
    numbers = cluster_numbers(model, labels)
    seen = {} if watched is None or not is_same else {"iterated": watched.iterated, "restarts": watched.restarts}
    return fitted_model(
        renumbered(model, numbers),
        numbers[labels],
        scores_of(model, sweep.X, sweep.sample_weight),
        options=sweep_parameters(name, options),
        notes=() if is_same else ("the animation shows a fit whose clusters differ from those of the result.",),
        recording=None if watched is None else watched.recording,
        sweep_ks=tuple(sweep.ks.tolist()),
        is_renumbered=is_renumbered(numbers),
        **seen,
    )


def build_estimator(
    method: Algorithm, k: int | str, options: Mapping[str, Any], missing: str, seed: int, threads: int | None
) -> Any:
    """The unfitted estimator."""
    model = method.build(**({} if method.finds_k else {method.k_parameter: k}), **options)
    known = model.get_params()
    common = {"random_state": seed, "n_jobs": threads, **({"missing": "ignore"} if missing == "ignore" else {})}
    return model.set_params(**{name: value for name, value in common.items() if name in known})


@contextmanager
def caught_warnings() -> Iterator[list[str]]:
    """Collect warnings of the library as sentences; an interrupt stops the job instead of the fit alone.

    Warnings about convergence are ignored: results have their own.
    """
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("error", FitInterruptedWarning)
        try:
            yield messages
        except FitInterruptedWarning as interrupt:
            raise KeyboardInterrupt from interrupt
        user_warnings = (warning for warning in caught if issubclass(warning.category, UserWarning))
        messages.extend(dict.fromkeys(f"{warning.message}." for warning in user_warnings))


@contextmanager
def _on_engine(engine: str, X: Any, model: Any) -> Iterator[tuple[Any, int]]:
    """The rows in the form that the engine needs, while it is connected, and its number of workers; 0: this process.

    Rows are sent to the workers of a cluster, and sent again if a worker ends.
    """
    if engine == "local":
        yield X, 0
        return
    with connected_engine(engine) as (cluster, n_workers):
        if n_workers:
            model.set_params(engine=cluster)
            yield X, n_workers
            return
        from coterie.data.dask import in_blocks

        init = model.get_params(deep=False).get("init")
        if isinstance(init, str) and init == "auto":  # the default of this machine, as for the engine 'local'
            model.set_params(init="k-means++")
        yield in_blocks(X), n_workers
        if init is not None:
            model.set_params(init=init)


class Speed:
    """The stage of a fit in words; on a cluster with the number of workers, and rows per second."""

    def __init__(self, stage: str, n_rows: int, n_workers: int) -> None:
        self.stage, self.n_rows, self.n_workers = stage, n_rows, n_workers
        self.last: float | None = None

    def text(self) -> str:
        """The stage after one more pass over the rows."""
        if not self.n_workers:
            return self.stage
        now = time.monotonic()
        before, self.last = self.last, now
        rate = "" if before is None else f", {self.n_rows / max(now - before, 1e-9):,.3g} rows/s"
        return f"{self.stage} on {self.n_workers} worker{'s' if self.n_workers > 1 else ''}{rate}"


def sample_rows(prepared: PreparedTable, sample: int | None, seed: int) -> tuple[Any, Any, Any]:
    """Rows and weights of a random sample, and their indices; None if these are all rows."""
    X, weight = prepared.rows.model_input, prepared.weight
    if sample is None or sample >= len(X):
        return X, weight, None
    indices = np.sort(np.random.default_rng(seed).choice(len(X), sample, replace=False))
    return X[indices], None if weight is None else weight[indices], indices


def scores_of(model: Any, X: Any, weight: Any) -> dict[str, float]:
    """The objective of the fit, and BIC for mixtures, by name."""
    if isinstance(model, InformationCriteria):
        scores = {
            "log-likelihood a row": model.score(X, sample_weight=weight),
            "BIC": model.bic(X, sample_weight=weight),
        }
    else:
        names = {"inertia_": "inertia", "objective_": "objective", "lower_bound_": "evidence bound"}
        scores = {name: getattr(model, key) for key, name in names.items() if hasattr(model, key)}
    return {name: float(value) for name, value in scores.items()}


def _best_covariance(X: Any, k: int, weight: Any, seed: int, threads: int | None) -> str:
    from coterie.selection import mixture_table

    best = mixture_table(X, [k], sample_weight=weight, n_jobs=threads, random_state=seed).best(1)
    if not best:
        raise InputError(f"no covariance structure fits {k} components: try fewer, or --covariance spherical.")
    return best[0].structure


def _family_names(families: Mapping[str, str]) -> str:
    """``Gaussian age, income; Categorical city``."""
    by_family: dict[str, list[str]] = {}
    for column, family in families.items():
        by_family.setdefault(family.partition("(")[0], []).append(column)
    return "; ".join(f"{family} {', '.join(columns)}" for family, columns in by_family.items())


def _watch(model: Any, speed: Speed, callback: Callback, n_init: Any) -> Starts | None:
    """Report merges or restarts and the remaining time; record the objectives of several restarts."""
    known, stage = model.get_params(deep=False), speed.stage
    callback(Progress(stage))
    if "linkage" in known or "min_cluster_size" in known:
        model.set_params(callback=lambda state: callback(Progress(stage, state.done, state.total, state.left)))
        return None
    if "callback" not in known:
        return None
    count = n_init if isinstance(n_init, int) and n_init > 1 else None
    restarts = None if count is None else Starts()

    def count_restarts(iteration: Progress) -> bool | None:
        if restarts is not None:
            restarts(iteration)
        done = 0 if count is None else min(iteration.run, count)  # a search follows the last restart
        return callback(
            Progress(speed.text(), done, count, iteration.left, iteration.run, iteration.params, iteration.objective)
        )

    model.set_params(callback=count_restarts)
    return restarts
