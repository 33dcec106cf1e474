"""The fingerprint of a fit: its data, its options and the version of coterie."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coterie import __version__
from coterie.core.arrays import is_sparse
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.errors import ModelFileError
from coterie.persistence.container import digest
from coterie.persistence.encode import Encoder

WITHOUT_EFFECT = ("engine", "n_jobs", "callback", "verbose", "checkpoint")  # options that do not change the result
SHORT = 60  # maximum number of characters of a value that is shown in full


@dataclass(frozen=True)
class Digests(Stats):
    """Checksums of all parts of the data, concatenated."""

    parts: bytes

    def __add__(self, other: Self) -> Self:
        return type(self)(self.parts + other.parts)


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
        "values of X, sample_weight and y": hashlib.sha256(engine.sum(_rows, source).parts).hexdigest(),
    }


def differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """Texts that describe the differences; long values are not shown."""
    changes = []
    for name in {**now, **before}:
        old, new = before.get(name, "nothing"), now.get(name, "nothing")
        if old != new:
            is_short = max(len(old), len(new)) <= SHORT
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


def _rows(chunk: Chunk) -> Digests:
    total = hashlib.sha256()
    X = (chunk.X.data, chunk.X.indices, chunk.X.indptr) if is_sparse(chunk.X) else (chunk.X,)
    for array in (*X, chunk.w, chunk.y):
        if array is None:
            total.update(b"none")
        else:
            plain = np.ascontiguousarray(array)
            total.update(f"{plain.dtype.str} {plain.shape}".encode())
            total.update(plain.reshape(-1).view(np.uint8).data)
    return Digests(total.digest())
