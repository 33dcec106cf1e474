"""The checkpoint file of an unfinished fit."""

import copy
import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from coterie import __version__
from coterie.core.arrays import is_sparse
from coterie.core.checkpoint import DescentState
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.random_numbers import hashed, mixed
from coterie.core.stats import Stats
from coterie.core.writing import check_regular, real_path, remove_left_over, write_whole
from coterie.errors import CheckpointError, CheckpointWarning, ModelFileError, ParameterError
from coterie.persistence import classes, container
from coterie.persistence.container import digest
from coterie.persistence.decode import Decoder
from coterie.persistence.encode import Encoder
from coterie.persistence.rules import Lengths, is_consistent, tag_of
from coterie.persistence.trial_predictions import ROWS, as_model_file_errors, without_warnings

MIN_INTERVAL = 1.0  # minimum number of seconds between two writes
INTERVAL_FACTOR = 40.0  # minimum interval between two writes, as a multiple of the time that a write takes


class CheckpointFile:
    """Stores the states of one fit in a file; it implements `coterie.core.checkpoint.Store`.

    Like a model file, it is safetensors with JSON and contains no executable code. It is replaced atomically, about
    once a second and at most 1/40 of the time, so that a killed fit always leaves a complete file. A damaged file is
    rejected, as is a file of other data, other options or another version of coterie.
    """

    def __init__(
        self, path: str | PathLike[str], estimator: Any, source: Source, engine: Engine,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.path, self.clock = as_checkpoint_path(path), clock
        self.source, self.fingerprint = source, fingerprint(estimator, source, engine)
        self.states: dict[str, Any] = {}
        self.initial_generator: np.random.Generator | None = None
        self.has_failed = self.is_frozen = False
        self.undecoded: tuple[Decoder, dict[str, Any]] | None = None  # states of the fit to resume
        if self.path.exists():
            self._open()
        self.next_write = self.clock() + MIN_INTERVAL

    # the interface of Store

    def read(self, name: str, model: Any) -> Any:
        if self.undecoded is not None:
            with self._as_checkpoint_errors():
                decoder, states = self.undecoded
                lengths = Lengths()
                lengths.known.update(K=count_of(model), D=int(self.source.shape[1]))  # the arrays must match this fit
                decoded = {key: decoder.value(state, lengths) for key, state in states.items()}
                decoder.check_all_used()
                for key, state in decoded.items():
                    check_state(key, state, self.fingerprint["estimator"], model, self.source)
            self.states, self.undecoded = decoded, None
        return self.states.get(name)

    def write(self, name: str, make: Callable[[], Any], at_once: bool = False) -> None:
        start = self.clock()
        if self.is_frozen or (start < self.next_write and not at_once):
            return
        self.states[name] = make()
        self._save()
        end = self.clock()
        self.next_write = end + max(MIN_INTERVAL, INTERVAL_FACTOR * (end - start))

    def initial_rng(self, rng: np.random.Generator) -> np.random.Generator:
        if self.initial_generator is None:
            self.initial_generator = copy.deepcopy(rng)
            return rng
        return copy.deepcopy(self.initial_generator)

    def stop_writing(self) -> None:
        self.is_frozen = True

    def remove(self) -> None:
        if self.is_frozen:
            return
        target = real_path(self.path)
        target.unlink(missing_ok=True)
        remove_left_over(target.parent)

    # the file

    def _save(self) -> None:
        encoder = Encoder(for_checkpoint=True)
        content = {
            "fingerprint": self.fingerprint,
            "rng": encoder.value(self.initial_generator, "rng"),
            "states": {name: encoder.value(self.states[name], name) for name in sorted(self.states)},
        }
        data = container.to_bytes(content, encoder.tensors, "checkpoint")
        try:
            write_whole(self.path, data, overwrite=True)
        except OSError as error:
            if not self.has_failed:
                warnings.warn(f"the checkpoint cannot be written: {error}", CheckpointWarning, stacklevel=2)
            self.has_failed = True

    def _open(self) -> None:
        with self._as_checkpoint_errors():
            content, tensors = container.read(self.path, "checkpoint")
            stored_fingerprint, rng, states = _parts(content)
            changes = differences(stored_fingerprint, self.fingerprint)
            if changes:
                raise CheckpointError(
                    f'the checkpoint "{self.path}" is of another fit: {"; ".join(changes)}. '
                    "Use the same data and options to resume it, or delete the file to start a new fit"
                )
            decoder = Decoder(tensors, for_checkpoint=True)
            self.initial_generator = decoder.value(rng, Lengths())
            if not isinstance(self.initial_generator, np.random.Generator):
                raise ModelFileError("the initial random generator of the fit is missing")
        self.undecoded = decoder, states

    @contextmanager
    def _as_checkpoint_errors(self) -> Iterator[None]:
        try:
            yield
        except (ModelFileError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
            raise CheckpointError(
                f'cannot resume from the checkpoint "{self.path}": {reason}. Delete the file to start a new fit'
            ) from None


def as_checkpoint_path(path: Any) -> Path:
    """The path of the checkpoint file; `ParameterError` if no file can be written there."""
    if not isinstance(path, str | PathLike):
        raise ParameterError(f"checkpoint must be None or the path of a file; got {path!r}")
    target = Path(path)
    if target.is_dir():
        raise ParameterError(f'checkpoint must be a file; "{target}" is a folder: add a file name')
    check_regular(target)
    folder = real_path(target).parent if target.is_symlink() else target.parent
    if not folder.is_dir():
        raise ParameterError(f'checkpoint: the folder "{folder}" does not exist; create it first')
    return target


def _parts(content: Any) -> tuple[dict[str, str], Any, dict[str, Any]]:
    if not isinstance(content, dict) or set(content) != {"fingerprint", "rng", "states"}:
        raise ModelFileError("its content is not the state of a fit")
    stored_fingerprint, states = content["fingerprint"], content["states"]
    is_text = isinstance(stored_fingerprint, dict) and all(isinstance(v, str) for v in stored_fingerprint.values())
    if not is_text:
        raise ModelFileError("the values of its fingerprint must be texts")
    if not isinstance(states, dict):
        raise ModelFileError("its states must be a JSON object")
    return stored_fingerprint, content["rng"], states


# The fingerprint of a fit: its data, its options and the version of coterie.

WITHOUT_EFFECT = ("engine", "n_jobs", "callback", "verbose", "checkpoint")  # options that do not change the result
BLOCK_VALUES = 1 << 16  # values whose hash values are computed at a time
VALUES = "values of X, sample_weight and y"  # name of the hash value of the rows, which says nothing to a person
SHORT = 60  # maximum number of characters of a value that is shown in full


@dataclass(frozen=True)
class RowHashes(Stats):
    """Sums of hash values of the rows with their numbers, modulo 2^64: they do not depend on the parts of the rows."""

    total: Any  # (2,) uint64


def fingerprint(estimator: Any, source: Source, engine: Engine) -> dict[str, str]:
    """Values by name that must be equal to resume a fit from a checkpoint."""
    options = {}
    for name, value in estimator.get_params(deep=False).items():
        if name not in WITHOUT_EFFECT:
            # The state of a random generator is left out: the checkpoint restores its initial state.
            is_generator = isinstance(value, np.random.Generator | np.random.RandomState)
            options[name] = type(value).__name__ if is_generator else described(value)
    if getattr(estimator, "warm_start", False) and hasattr(estimator, "_components"):
        options["the fit to start from"] = described(estimator._components)
    n, d = source.shape
    return {
        "coterie": __version__,
        "estimator": type(estimator).__name__,
        **options,
        "X": f"{n} rows of {d} columns, {source.dtype}",
        VALUES: engine.sum(_rows, source).total.tobytes().hex(),
    }


def differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """Texts that describe the differences; long values are not shown."""
    changes = []
    for name in {**now, **before}:
        old, new = before.get(name, "nothing"), now.get(name, "nothing")
        if old != new:
            is_short = name != VALUES and max(len(old), len(new)) <= SHORT
            changes.append(f"{name} was {old} and is {new}" if is_short else f"{name} changed")
    return changes


def described(value: Any) -> str:
    """A text that is equal for equal values; for functions, their name."""
    encoder = Encoder()
    try:
        text = json.dumps(encoder.value(value, "value"), separators=(",", ":"))
    except ModelFileError:
        kind = value if hasattr(value, "__qualname__") else type(value)
        return f"{kind.__module__}.{kind.__qualname__}"
    if not encoder.tensors and len(text) <= SHORT:
        return text
    return f"{type(value).__name__} {digest(text, encoder.tensors)}"


def _rows(chunk: Chunk) -> RowHashes:
    total = np.zeros(2, np.uint64)
    step = max(1, BLOCK_VALUES // max(1, chunk.X.shape[1]))
    for start in range(0, chunk.X.shape[0], step):
        rows = slice(start, start + step)
        X = chunk.X[rows]
        values = _sparse_hashes(X) if is_sparse(X) else _dense_hashes(X)
        for kind, array in enumerate((chunk.w, chunk.y), start=1):
            if array is not None:
                values = values + hashed(_dense_hashes(array[rows]), np.array(kind))
        numbers = chunk.first + start + np.arange(len(values))
        total += [mixed(hashed(values, numbers + offset)).sum(dtype=np.uint64) for offset in (0, 1 << 62)]
    return RowHashes(total)


def _dense_hashes(values: Any) -> np.ndarray[Any, Any]:
    """Hash values of rows (n,); equal bits have equal hash values."""
    plain = np.ascontiguousarray(values)
    bits = plain.reshape(len(plain), -1).view(f"u{4 if plain.dtype.kind == 'U' else plain.dtype.itemsize}")
    return hashed(bits.astype(np.uint64), np.arange(bits.shape[1])).sum(axis=1, dtype=np.uint64)


def _sparse_hashes(X: Any) -> np.ndarray[Any, Any]:
    bits = X.data.view(f"u{X.data.dtype.itemsize}").astype(np.uint64)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashed(bits, X.indices), dtype=np.uint64)])
    return sums[X.indptr[1:]] - sums[X.indptr[:-1]]


# Check the states in a checkpoint before a fit is resumed from them.

PARAMETERS = {  # tags of the parameters by estimator; the parameters of all others are centers (k, d)
    "BalancedKMeans": ("checkpoint.Division",),
    "BayesianGaussianMixture": ("bayesian.Components",),
    "GaussianMixture": ("gaussian_mixture.Components",),
    "Mixture": ("dirichlet_process.Parameters", "mixture.Parameters", "gaussian_mixture.Components"),
}
WITH_RECORDS = ("BayesianGaussianMixture", "GaussianMixture", "Mixture")  # estimators with a history recorder
STATES = {  # tags of the states
    "starts": "checkpoint.Restarts",
    "end": "checkpoint.Restarts",
    "batches": "checkpoint.Batches",
    "search": "checkpoint.Search",
}


def check_state(name: str, state: Any, estimator: str, model: Any, source: Source) -> None:
    """Reject a state that does not belong to a fit of this estimator to data of this shape."""
    if name not in STATES or tag_of(state) != STATES[name]:
        raise ModelFileError(f"it contains {name!r}, which is not a state of a fit")
    if name == "batches":
        types = [type(value) for value in state.stopping] if isinstance(state.stopping, tuple) else []
        if types[3:] != [int, int] or not all(issubclass(kind, (float, type(None))) for kind in types[:3]):
            raise ModelFileError("the state of the stopping rule is malformed")
    elif name == "search":
        arrays, numbers = (state.params, state.objective), (state.allowed, state.work, state.seconds)
        are_doubles = all(array.dtype == np.float64 for array in arrays) and len(state.params) > 0
        if not are_doubles or not all(isinstance(x, float) and x > 0 for x in numbers):
            raise ModelFileError("the state of the search is malformed")
    else:
        descents = [descent for descent in (state.current, state.best) if descent is not None]
        for descent in descents:
            _check_descent(descent, estimator, model, source)
        if estimator in WITH_RECORDS:
            _check_records(state.records or {}, descents)


def _check_records(records: dict[Any, Any], descents: list[DescentState]) -> None:
    """Check the history of every restart: columns of equal length, and the events of components."""
    if not {descent.run for descent in descents} <= set(records):
        raise ModelFileError("the history of a restart is missing")
    for record in records.values():
        parts = record if isinstance(record, tuple) else (record,)
        events = [event for part in parts if isinstance(part, tuple) for event in part]
        columns = [part for part in parts if not isinstance(part, tuple)]
        are_columns = all(isinstance(column, np.ndarray) and column.ndim > 0 for column in columns)
        if (
            not are_columns
            or not all(tag_of(event) == "mixture.Event" for event in events)
            or len(set(map(len, columns))) > 1
        ):
            raise ModelFileError("the history of a restart is malformed")


def count_of(model: Any) -> int:
    """The number of clusters of a model."""
    return int(model.n_clusters if hasattr(model, "n_clusters") else model.n_components)


def _check_descent(descent: DescentState, estimator: str, model: Any, source: Source) -> None:
    are_vectors = all(isinstance(vector, np.ndarray) and vector.dtype == np.float64 for vector in descent.trail)
    types = type(descent.converged), type(descent.stretch)
    if not are_vectors or types != (bool, float) or len(descent.history) == 0:
        raise ModelFileError("the state of a restart is malformed")
    if not _matches(descent.params, estimator, model, source):
        raise ModelFileError("its parameters do not match the estimator and the data")
    if estimator != "BalancedKMeans":  # its parameters contain the labels of all rows, not only of a few
        with without_warnings(), as_model_file_errors("its parameters do not match the data"):
            chunk = source.pick(np.arange(min(ROWS, source.shape[0])))
            if chunk.w is not None:  # the density of rows with weight 0 may be 0
                positive = np.flatnonzero(chunk.w > 0)
                y = None if chunk.y is None else chunk.y[positive]
                chunk = chunk._replace(X=chunk.X[positive], w=chunk.w[positive], y=y)
            stats, _ = model.e_step(descent.params, chunk, None)
            objective = model.objective(descent.params, stats)
        if estimator in WITH_RECORDS and not np.isfinite(objective):
            raise ModelFileError("the likelihood of the data with its parameters is not finite")


def _matches(params: Any, estimator: str, model: Any, source: Source) -> bool:
    k, d = count_of(model), source.shape[1]
    if estimator == "TimeSeriesKMeans":
        return _are_series(params, k, d, model.channels)
    if estimator not in PARAMETERS:
        are_floats = isinstance(params, np.ndarray) and params.dtype.kind == "f" and params.shape == (k, d)
        return are_floats and bool(np.isfinite(params).all())
    if tag_of(params) not in PARAMETERS[estimator]:
        return False
    if estimator == "BalancedKMeans":
        return _is_division(params, k, source)
    family = getattr(model, "family", None)
    parts = {"_components": params, "_fitted_model": model, "family_": getattr(family, "family", family)}
    declaration = classes.model_declaration("Mixture" if family is not None else "GaussianMixture")
    return is_consistent(declaration, parts, {"K": k, "D": d})


def _are_series(params: Any, k: int, d: int, channels: int) -> bool:
    """Whether these are series of at least one value, with NaN only after the end of each series."""
    if not isinstance(params, np.ndarray) or params.dtype.kind != "f" or params.ndim != 2 or len(params) != k:
        return False
    if params.shape[1] < d or params.shape[1] % channels:
        return False
    missing = np.isnan(params)
    return not (missing[:, :channels].any() or (missing[:, :-1] & ~missing[:, 1:]).any() or np.isinf(params).any())


def _is_division(params: Any, k: int, source: Source) -> bool:
    sizes = [0 if part is None else len(part) for part in source.allocate(0, np.int8)]
    return len(sizes) == len(params.labels) and all(
        isinstance(labels, np.ndarray)
        and labels.dtype == np.int32
        and labels.shape == (n,)
        and (n == 0 or (labels.min() >= 0 and labels.max() < k))
        for labels, n in zip(params.labels, sizes, strict=True)
    )
