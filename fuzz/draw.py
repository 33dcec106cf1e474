"""Random choices, from a NumPy generator or from Hypothesis: generators and laws do not know which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from hypothesis import strategies as st

T = TypeVar("T")


class Draw(Protocol):
    """Where the random choices of a case come from."""

    @property
    def rng(self) -> np.random.Generator:
        """For large arrays and seeds of estimators."""

    def integer(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""

    def one_of(self, choices: Sequence[T]) -> T: ...

    def happens(self, probability: float) -> bool: ...

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """A small array of whole numbers from `low` to `high`."""


class RandomDraw:
    """Choices of a NumPy generator."""

    def __init__(self, *seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[self.integer(0, len(choices) - 1)]

    def happens(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        return self.rng.integers(low, high + 1, shape)


class HypothesisDraw:
    """Choices of Hypothesis, which can make a failing case smaller."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))

    def integer(self, low: int, high: int) -> int:
        return self.data.draw(st.integers(low, high))

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[self.integer(0, len(choices) - 1)]

    def happens(self, probability: float) -> bool:
        return self.integer(0, 99) >= 100 - round(100 * probability)  # smaller choices are the plainer ones

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        size = int(np.prod(shape))
        values = self.data.draw(st.lists(st.integers(low, high), min_size=size, max_size=size))
        return np.array(values, dtype=np.int64).reshape(shape)
