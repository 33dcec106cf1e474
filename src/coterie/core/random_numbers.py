"""Random numbers and hash values by number of the row: they do not depend on the parts of the rows."""

from collections.abc import Callable
from typing import Any

import numpy as np

BLOCK_ROWS = 1 << 14  # rows that share a NumPy generator

_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def uniform(seed: int, first: int, size: int) -> np.ndarray[Any, Any]:
    """Numbers `first` to ``first + size`` of a sequence of uniform random numbers in (0, 1), by SplitMix64 [1]_.

    Any section of the sequence can be computed alone. Creating a NumPy generator for each would take longer.

    .. [1] Steele, Lea & Flood (2014), Fast splittable pseudorandom number generators, OOPSLA.
    """
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (np.arange(1, size + 1, dtype=np.uint64) + np.uint64(first)) * _GAMMA
    return (mixed(z) >> np.uint64(12)) * 2.0**-52 + 2.0**-53


def mixed(z: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The output function of SplitMix64: a bijection of 64-bit numbers, in which each bit depends on all others."""
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixture: np.ndarray[Any, Any] = z ^ (z >> np.uint64(31))
    return mixture


def hashed(z: np.ndarray[Any, Any], positions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Hash values of 64-bit numbers together with their positions: each bit depends on most others."""
    with np.errstate(over="ignore"):
        z = z * np.uint64(0xD6E8FEB86659FD93) + (positions.astype(np.uint64) + np.uint64(1)) * _GAMMA
        z ^= z >> np.uint64(32)
        z *= np.uint64(0xD6E8FEB86659FD93)
    return z


def by_row(
    draw: Callable[[np.random.Generator, int], np.ndarray[Any, Any]], seed: int, first: int, size: int
) -> np.ndarray[Any, Any]:
    """Random numbers of the rows `first` to ``first + size``; ``draw(generator, n)`` returns those of n rows.

    Each block of rows has its own generator. The numbers of a block are drawn from its first row on.
    """
    blocks = range(first // BLOCK_ROWS, (first + size - 1) // BLOCK_ROWS + 1)
    stop = first + size
    numbers = [
        draw(np.random.Generator(np.random.Philox(key=[seed, block])), min(BLOCK_ROWS, stop - block * BLOCK_ROWS))
        for block in blocks
    ]
    return np.concatenate(numbers)[first - blocks[0] * BLOCK_ROWS :] if numbers else draw(np.random.default_rng(0), 0)
