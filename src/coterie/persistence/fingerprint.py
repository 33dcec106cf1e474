"""What a checkpoint belongs to: these rows, these options, this version."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import __version__
from coterie.core.errors import ModelFileError
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.persistence.container import digest
from coterie.persistence.encode import Encoder

WHERE = ("engine", "n_jobs", "callback", "verbose", "checkpoint")  # options that change no bit of the result
SHORT = 60  # characters of a value that are shown as they are


@dataclass(frozen=True)
class Digests(Stats):
    """Of all rows, part after part."""

    parts: bytes

    def __add__(self, other: Digests) -> Digests:
        return Digests(self.parts + other.parts)


def fingerprint(estimator: Any, source: Source, engine: Engine) -> dict[str, str]:
    """By name, what must be the same for a fit to go on from a checkpoint."""
    options = {name: _option(value) for name, value in estimator.get_params(deep=False).items() if name not in WHERE}
    n, d = source.shape
    return {
        "coterie": __version__,
        "estimator": type(estimator).__name__,
        **options,
        **_warm(estimator),
        "X": f"{n} rows of {d} columns, {source.dtype}",
        "values of X, sample_weight and y": hashlib.sha256(engine.sum(_rows, source).parts).hexdigest(),
    }


def differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """What is not the same, in words; long values are not shown."""
    found = []
    for name in {**now, **before}:
        old, new = before.get(name, "nothing"), now.get(name, "nothing")
        if old != new:
            shown = max(len(old), len(new)) <= SHORT
            found.append(f"{name} was {old} and is {new}" if shown else f"{name} changed")
    return found


def described(value: Any) -> str:
    """Any value as a text that is the same for the same value; of functions, their names."""
    encoder = Encoder()
    try:
        text = json.dumps(encoder.value(value, "value"), separators=(",", ":"))
    except ModelFileError:
        named = value if hasattr(value, "__qualname__") else type(value)
        return f"{named.__module__}.{named.__qualname__}"
    if not encoder.tensors and len(text) <= SHORT:
        return text
    return f"{type(value).__name__} {digest(text, encoder.tensors)}"


def _warm(estimator: Any) -> dict[str, str]:
    """The fit that a warm start goes on from."""
    if not (getattr(estimator, "warm_start", False) and hasattr(estimator, "_components")):
        return {}
    return {"the fit to start from": described(estimator._components)}


def _option(value: Any) -> str:
    """Chance goes on as it was when the fit began; what has become of it since does not matter."""
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return type(value).__name__
    return described(value)


def _rows(chunk: Chunk) -> Digests:
    total = hashlib.sha256()
    X = (chunk.X.data, chunk.X.indices, chunk.X.indptr) if hasattr(chunk.X, "indptr") else (chunk.X,)
    for array in (*X, chunk.w, chunk.y):
        if array is None:
            total.update(b"none")
        else:
            plain = np.ascontiguousarray(array)
            total.update(f"{plain.dtype.str} {plain.shape}".encode())
            total.update(plain.reshape(-1).view(np.uint8).data)
    return Digests(total.digest())
