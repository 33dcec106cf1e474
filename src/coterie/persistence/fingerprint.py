"""The fingerprint of a fit: its data, its options and the version of coterie."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import __version__
from coterie.core.arrays import is_sparse
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.random_numbers import hashed, mixed
from coterie.core.stats import Stats
from coterie.errors import ModelFileError
from coterie.persistence.container import digest
from coterie.persistence.encode import Encoder

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
