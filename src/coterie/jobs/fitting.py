"""A method, as an estimator fitted to prepared rows."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from coterie.core.errors import FitInterruptedWarning, InputError
from coterie.families.table import product_of
from coterie.jobs import Progress, Step, TableJob
from coterie.jobs.answers import ROWS_AT_ONCE
from coterie.jobs.columns import DISTANCE, PROBABILITY
from coterie.jobs.methods import Method, method_of, parameters, sweep_parameters
from coterie.jobs.place import LOCAL, rows_for
from coterie.jobs.preparation import Preparation
from coterie.jobs.prepare import Prepared
from coterie.jobs.table import LABEL
from coterie.machine import check_room
from coterie.metrics import adjusted_rand_score
from coterie.plots.convergence_plot import Starts
from coterie.selection import Sweep

ROWS_OF_A_TREE = 20_000  # whose distances fit into any memory


@dataclass(frozen=True)
class Fit:
    """A fitted estimator, and what it says of the rows."""

    model: Any
    labels: NDArray[np.integer]  # (n,)
    scores: dict[str, float]
    iterations: int | None
    converged: bool
    seconds: float | None  # None if it was made while K was chosen
    options: dict[str, Any]  # parameters that were not left to the estimator
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    trace: Any = None  # its steps, if they were asked for
    starts: Starts | None = None  # the objectives of every start, where there were several
    sweep_ks: tuple[int, ...] | None = None  # numbers of clusters of the sweep that it is from

    def columns(self, given: Any, rows: slice) -> dict[str, NDArray[Any]]:
        """Labels of some rows, and what goes with them."""
        labels = self.labels[rows]
        more = {DISTANCE: "transform", PROBABILITY: "predict_proba"}
        found = {name: self._own(verb, given[rows], labels) for name, verb in more.items()}
        return {
            LABEL: labels.astype(np.int64),
            **{name: values.astype(np.float64) for name, values in found.items() if values is not None},
        }

    def probabilities(self, given: Any) -> NDArray[np.floating] | None:
        """Of each row to belong to its cluster; None where it either does or does not."""
        return self._own("predict_proba", given, self.labels)

    def _own(self, verb: str, given: Any, labels: NDArray[np.integer]) -> NDArray[np.floating] | None:
        """What the model says of each row and its own cluster; None if it does not."""
        if not hasattr(self.model, verb):
            return None
        ask = getattr(self.model, verb)
        return _by_blocks(lambda rows, own: np.take_along_axis(ask(rows), own, 1), given, labels)


def fit(
    job: TableJob,
    name: str,
    k: int | str,
    prepared: Prepared,
    options: Mapping[str, Any],
    progress: Progress,
    *,
    sample: int | None = None,
    engine: str = LOCAL,
    checkpoint: Path | None = None,
    traced: bool = False,
    sweep: Sweep | None = None,
) -> Fit:
    """Fit the method of that name to the rows, or to some drawn ones from which the others get their clusters.

    If K was chosen by fits to the same rows (`sweep`), the fit is the one that was judged.
    """
    method, told = method_of(name), parameters(name, options)
    given, weight, drawn = drawn_rows(prepared, sample, job.seed)
    if sweep is not None and told.get("covariance_type") != "auto":
        played = fit(job, name, k, prepared, options, progress, sample=sample, traced=True) if traced else None
        return _judged(name, int(k), prepared, options, sweep, played)
    if method.all_pairs:
        _check_room(method, given)
    notes: list[str] = []
    if told.get("covariance_type") == "auto":
        told["covariance_type"] = _best_structure(given, int(k), weight, job.seed, job.threads)
        notes.append(f"covariance chosen by BIC: {told['covariance_type']}.")
    model = estimator(method, k, told, prepared.preparation.missing, job.seed, job.threads)
    if checkpoint is not None:
        model.set_params(checkpoint=checkpoint)
    if method.mixed:
        model.set_params(family=product_of(given))
        notes.append(f"families: {_spoken(model.families_)}.")
    starts = _watch(model, f"fitting {method.title}", progress, told.get("n_init"))
    start = time.perf_counter()
    trace = None
    with own_words() as said, rows_for(engine, given) as rows:
        if traced:
            trace = model.fit_trace(rows, sample_weight=weight)
            trace.columns = _axes(prepared.preparation)
        else:
            model.fit(rows, sample_weight=weight)
        model.labels_ = np.asarray(model.labels_)  # Dask's are not there yet
    seconds = time.perf_counter() - start
    _leave(model)
    labels = model.labels_ if drawn is None else model.predict(prepared.rows.given)
    return Fit(
        model=model,
        labels=np.asarray(labels),
        scores=scores_of(model, given, weight),
        iterations=int(model.n_iter_) if hasattr(model, "n_iter_") else None,
        converged=bool(getattr(model, "converged_", True)),
        seconds=seconds,
        options=told,
        notes=tuple(notes),
        warnings=tuple(said),
        trace=trace,
        starts=starts,
    )


def _judged(name: str, k: int, prepared: Prepared, options: Mapping[str, Any], sweep: Sweep, played: Fit | None) -> Fit:
    """The fit of a sweep for `k` clusters; an animation plays another one, for those of a sweep begin at their end."""
    model = sweep.model(k)
    everything = len(model.labels_) == prepared.rows.n
    labels = np.asarray(model.labels_ if everything else model.predict(prepared.rows.given))
    same = played is None or adjusted_rand_score(played.labels, labels) == 1.0
    notes = () if same else ("the animation plays a fit that ends in other clusters than those of the result.",)
    return Fit(
        model=model,
        labels=labels,
        scores=scores_of(model, sweep.X, sweep.sample_weight),
        iterations=int(model.n_iter_) if hasattr(model, "n_iter_") else None,
        converged=bool(getattr(model, "converged_", True)),
        seconds=None,
        options=sweep_parameters(name, options),
        notes=notes,
        warnings=(),
        trace=None if played is None else played.trace,
        sweep_ks=tuple(sweep.ks.tolist()),
    )


def estimator(
    method: Method, k: int | str, told: Mapping[str, Any], missing: str, seed: int, threads: int | None
) -> Any:
    """The estimator, not yet fitted."""
    model = method.made(**{method.number: k}, **told)
    known = model.get_params()
    general = {"random_state": seed, "n_jobs": threads, **({"missing": "ignore"} if missing == "ignore" else {})}
    return model.set_params(**{name: value for name, value in general.items() if name in known})


@contextmanager
def own_words() -> Iterator[list[str]]:
    """Collect the library's warnings as sentences, and let an interrupt stop the job, not the fit alone.

    What a result says of itself, that it did not converge or that clusters are empty, is left to it.
    """
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("error", FitInterruptedWarning)
        try:
            yield said
        except FitInterruptedWarning as stopped:
            raise KeyboardInterrupt from stopped
        own = (warning for warning in caught if issubclass(warning.category, UserWarning))
        said.extend(dict.fromkeys(f"{warning.message}." for warning in own))


def drawn_rows(prepared: Prepared, sample: int | None, seed: int) -> tuple[Any, Any, Any]:
    """Rows and weights to fit, and which they are; None if all."""
    given, weight = prepared.rows.given, prepared.weight
    if sample is None or sample >= len(given):
        return given, weight, None
    rows = np.sort(np.random.default_rng(seed).choice(len(given), sample, replace=False))
    return given[rows], None if weight is None else weight[rows], rows


def _check_room(method: Method, X: Any) -> None:
    what = f"the distances of {len(X):,} rows for {method.title}"
    check_room(len(X) ** 2 * X.itemsize, what, f"try -a bisecting or ward, or --sample {ROWS_OF_A_TREE}.")


def _best_structure(X: Any, k: int, weight: Any, seed: int, threads: int | None) -> str:
    from coterie.selection import mixture_table

    best = mixture_table(X, [k], sample_weight=weight, n_jobs=threads, random_state=seed).best(1)
    if not best:
        raise InputError(f"no covariance structure fits {k} components: try fewer, or --covariance spherical.")
    return best[0].structure


def _spoken(families: Mapping[str, str]) -> str:
    by_family: dict[str, list[str]] = {}
    for column, family in families.items():
        by_family.setdefault(family.partition("(")[0], []).append(column)
    return "; ".join(f"{family} {', '.join(columns)}" for family, columns in by_family.items())


def _axes(how: Preparation) -> list[str]:
    """What the columns of the rows given are called."""
    return list(how.names) if how.scale == "none" else [f"{name} (scaled)" for name in how.names]


def _watch(model: Any, what: str, progress: Progress, n_init: Any) -> Starts | None:
    """Tell of merges done, or of starts done and the time left; starts are written down, too, where there are many."""
    known = model.get_params(deep=False)
    progress(Step(what))
    if "linkage" in known:
        model.set_params(callback=lambda done, total: progress(Step(what, done, total)))
        return None
    if "callback" not in known:
        return None
    count = n_init if isinstance(n_init, int) and n_init > 1 else None
    starts = None if count is None else Starts()

    def told(state: Any) -> None:
        if starts is not None:
            starts(state)
        if count is None:
            progress(Step(what, left=state.left))
        else:  # what comes after all starts is a search
            progress(Step(what, min(state.run, count), count, state.left))

    model.set_params(callback=told)
    return starts


def _leave(model: Any) -> None:
    """What watched the fit, and where it could have gone on from, are no part of the model."""
    known = model.get_params(deep=False)
    model.set_params(**{name: None for name in ("callback", "checkpoint") if name in known})


def scores_of(model: Any, given: Any, weight: Any) -> dict[str, float]:
    """What the fit made as small, or as large, as it could, by its name."""
    if hasattr(model, "bic"):
        found = {
            "log-likelihood a row": model.score(given, sample_weight=weight),
            "BIC": model.bic(given, sample_weight=weight),
        }
    else:
        names = {"inertia_": "inertia", "objective_": "objective", "lower_bound_": "evidence bound"}
        found = {name: getattr(model, key) for key, name in names.items() if hasattr(model, key)}
    return {name: float(value) for name, value in found.items()}


def _by_blocks(
    ask: Callable[[Any, NDArray[np.integer]], NDArray[np.floating]], given: Any, labels: NDArray[np.integer]
) -> NDArray[np.floating]:
    starts = range(0, len(labels), ROWS_AT_ONCE)
    found = [ask(given[i : i + ROWS_AT_ONCE], labels[i : i + ROWS_AT_ONCE, np.newaxis])[:, 0] for i in starts]
    return np.concatenate(found)
