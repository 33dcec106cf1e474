"""What a law raises, and how any exception of a case becomes a finding."""

from __future__ import annotations

import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent


class LawBroken(Exception):
    """The library broke a law; the message says how. `place` is a line of the library, where it is known."""

    def __init__(self, message: str, place: str | None = None) -> None:
        super().__init__(message)
        self.place = place


class Rejected(Exception):
    """The library rejected the input with its own error: there is nothing to check in this case."""


@dataclass(frozen=True)
class Finding:
    """A case in which the library broke a law, crashed or hung."""

    case: int
    law: str
    subject: str
    kind: str  # name of the exception, or "crash" or "hang"
    place: str  # innermost line of the library, or of the law
    message: str
    details: str  # traceback

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Findings with the same key are shown once."""
        return self.law, self.subject, self.kind, self.place

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def from_exception(case: int, law: str, subject: str, error: BaseException) -> Finding:
    """The finding that `error`, raised by a law, stands for."""
    place = getattr(error, "place", None) or place_of(error)
    lines = traceback.format_exception(type(error), error, _from_law_on(error.__traceback__))
    return Finding(case, law, subject, type(error).__name__, place, str(error), "".join(lines))


def _from_law_on(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames that lead to the law."""
    start = trace
    while start is not None and "/fuzz/laws/" not in start.tb_frame.f_code.co_filename:
        start = start.tb_next
    return start or trace


def place_of(error: BaseException) -> str:
    """Innermost line of the library in the traceback; the line of the law if the library did not raise."""
    frames = traceback.extract_tb(error.__traceback__)
    in_library = [frame for frame in frames if "/coterie/" in frame.filename]
    in_fuzzer = [frame for frame in frames if str(ROOT / "fuzz") in frame.filename and "require" not in frame.name]
    nearest = in_library or in_fuzzer or list(frames)
    return f"{Path(nearest[-1].filename).name}:{nearest[-1].lineno}" if nearest else "unknown"


def require(holds: Any, message: str) -> None:
    """Raise `LawBroken` unless the condition holds."""
    if not holds:
        raise LawBroken(message)


def require_same(actual: Any, expected: Any, what: str) -> None:
    """Both must have the same bits, NaN included."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    require(actual.shape == expected.shape, f"{what}: shape {actual.shape} instead of {expected.shape}")
    same = actual == expected
    if actual.dtype.kind == "f" and expected.dtype.kind == "f":
        same = same | (np.isnan(actual) & np.isnan(expected))
    require(np.all(same), f"{what}: {int(np.size(same) - np.count_nonzero(same))} of {np.size(same)} values differ")


def require_close(actual: Any, expected: Any, what: str, rtol: float = 1e-9, atol: float = 0.0) -> None:
    """Both must agree up to rounding."""
    actual, expected = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    require(actual.shape == expected.shape, f"{what}: shape {actual.shape} instead of {expected.shape}")
    if np.allclose(actual, expected, rtol=rtol, atol=atol, equal_nan=True):
        return
    with np.errstate(all="ignore"):
        gap = np.abs(actual - expected) - atol - rtol * np.abs(expected)
    worst = int(np.argmax(np.where(np.isnan(gap), np.inf, gap)))
    raise LawBroken(f"{what}: {actual.ravel()[worst]!r} instead of {expected.ravel()[worst]!r} (rtol={rtol:g})")


def require_finite(value: Any, what: str) -> None:
    """No NaN and no infinity may leave the library."""
    values = np.asarray(value)
    if values.dtype.kind == "f":
        bad = np.size(values) - np.count_nonzero(np.isfinite(values))
        require(bad == 0, f"{what} has {bad} values of {np.size(values)} that are NaN or infinite")
