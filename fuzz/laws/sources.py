"""Where rows come from, where centers start, and traces of fits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone

import coterie
from coterie import data, engines, seeding
from coterie.data.memory import MemorySource
from coterie.engines.local import Serial
from fuzz import containers, estimators, tables
from fuzz.call import attempt
from fuzz.finding import require, require_close, require_same
from fuzz.law import Case, law
from fuzz.laws.fits import fit

Array = np.ndarray[Any, Any]

METHODS = ("farthest", "forgy", "plusplus", "random_partition", "scalable")
TRACED = ("KMeans", "KMedians", "SphericalKMeans", "FuzzyCMeans", "GaussianMixture", "BayesianGaussianMixture")


def as_file(X: Array, kind: str) -> Path:
    """The rows in a file of that kind."""
    path, frame = Path(f"rows.{kind}"), pl.DataFrame({f"x{j}": X[:, j] for j in range(X.shape[1])})
    if kind == "npy":
        np.save(path, X)
    else:
        getattr(frame, f"write_{'ipc' if kind == 'arrow' else kind}")(path)
    return path


@law(["data.as_source", "data.opened"], weight=3)
def rows_are_the_same_from_any_source(case: Case) -> None:
    n, d = tables.shape(case.draw)
    X = tables.hostile(case.draw, n, d)
    if case.draw.happens(0.5):
        rows: Any = case.draw.one_of(containers.DENSE)(X)
    else:
        X, kind = X.astype(float), case.draw.one_of(["csv", "parquet", "ndjson", "arrow", "npy"])
        case.note(f"from a file of kind {kind}")
        rows = as_file(X, kind)
    source = attempt(data.as_source, attempt(data.opened, rows))
    require(source.shape == X.shape and source.dtype == X.dtype, f"{source.shape} of {source.dtype}")
    require_same(np.concatenate([part().X for part in source.parts()]), X, "rows")


@law(["KMeans", "MiniBatchKMeans", "GaussianMixture"], hypothesis=False)
def dask_arrays_with_empty_chunks_are_fitted(case: Case) -> None:
    """The chunks of a Dask array, some of them without rows, hold the same rows as one array."""
    import dask.array as dask_array

    n, d = case.draw.integer(12, 60), case.draw.integer(1, 3)
    X = tables.blobs(case.draw, n, d)
    cuts = np.sort(case.draw.rng.integers(0, n + 1, size=case.draw.integer(1, 4)))
    chunks = tuple(int(size) for size in np.diff(np.r_[0, cuts, n]))
    case.note(f"chunks {chunks}")
    chunked = dask_array.from_array(X, chunks=((n,), (d,))).rechunk((chunks, (d,)))
    number = {"n_components": 2} if case.subject == "GaussianMixture" else {"n_clusters": 2}
    model = fit(getattr(coterie, case.subject)(**number, random_state=0, max_iter=5), chunked)
    require_same(np.asarray(model.labels_), np.asarray(model.predict(X)), "labels_ of a Dask array and predict(X)")


@law(["engines.as_engine"])
def engines_sum_alike(case: Case) -> None:
    X = tables.benign(case.draw, case.draw.integer(1, 500), 2)
    source = MemorySource(X, chunk_rows=case.draw.integer(1, 100))
    sums = [
        engines.as_engine(name, source, n_jobs).sum(lambda chunk: chunk.X.sum(axis=0), source)
        for name, n_jobs in (("serial", None), ("threads", 1), ("threads", 3), ("auto", 2))
    ]
    for each in sums:
        require_same(each, sums[0], "sums of two engines")


@law([f"seeding.{name}" for name in METHODS], weight=2)
def starts_are_rows_or_means_of_rows(case: Case) -> None:
    name = case.subject.partition(".")[2]
    n, d = case.draw.integer(1, 80), case.draw.integer(1, 5)
    X, w = tables.hostile(case.draw, n, d, scaled=False), tables.weights(case.draw, n)
    k = case.draw.integer(1, n if w is None else int(np.count_nonzero(w)))
    source = MemorySource(X, w, chunk_rows=case.draw.one_of([7, 100]))
    case.note(f"{k} centers of {X.shape}, weights {w is not None}")
    start = attempt(getattr(seeding, name), source, Serial(), np.random.default_rng(0), k, 1.0)
    require(start.shape == (k, d), f"centers of shape {start.shape}")
    if name in ("random_partition", "scalable"):
        low, high = X.min(axis=0), X.max(axis=0)
        room = 1e-5 * np.abs(X).max(axis=0)
        require(((low - room <= start) & (start <= high + room)).all(), "a mean is outside of the rows")
    else:
        counted = X if w is None else X[w > 0]
        rows = {row.tobytes() for row in counted + 0.0}
        require(all(row.tobytes() in rows for row in start.astype(X.dtype) + 0.0), "a center is not a row that counts")


@law(["seeding.METHODS", "seeding.start", "seeding.starts", "seeding.check_start"])
def every_start_has_a_name(case: Case) -> None:
    name = case.draw.one_of(sorted(seeding.METHODS))
    X = tables.blobs(case.draw, case.draw.integer(5, 40), 2)
    source = MemorySource(X)
    k = case.draw.integer(0, 4)
    require(seeding.check_start(name, source, k) == name, f"check_start({name!r})")
    require(seeding.starts(name, "auto", 10) in (1, 10), "number of starts")
    centers = attempt(seeding.start, name, source, Serial(), np.random.default_rng(0), k, 1.0)
    require(centers.shape == (k, 2), f"centers of shape {centers.shape}")


@law((*TRACED, "traces.Traced"))
def a_trace_ends_with_the_fit(case: Case) -> None:
    if case.subject == "traces.Traced":
        case = replace(case, subject="KMeans")
    estimator, X, w = estimators.problem(case)
    if case.subject == "KMeans":
        estimator.set_params(search="none", search_budget=None)
    model = fit(clone(estimator), X, w)
    traced = clone(estimator)
    trace = attempt(traced.fit_trace, X) if w is None else attempt(traced.fit_trace, X, sample_weight=w)
    require(len(trace.steps) > 0, "a trace without steps")
    require_same(trace.model.labels_ if hasattr(trace.model, "labels_") else traced.labels_, model.labels_, "labels_")
    if isinstance(model, coterie.KMeans):
        with np.errstate(over="ignore", under="ignore"):
            objective = np.ldexp(trace.steps[-1].objective, 2 * trace.scale.rows + trace.scale.weights)
        require_close(objective, model.inertia_, "objective of the last step", 1e-9)
