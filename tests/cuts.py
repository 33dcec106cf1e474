"""Small tables cut into many parts, so that a sum in another order, or a cut by the number of threads, shows."""

from importlib import import_module

import numpy as np

from coterie.data import as_source, memory

PAIRWISE = import_module("coterie.distances.pairwise")  # `coterie.distances.pairwise` is the function


def many_parts(monkeypatch, X):
    """Rows like `X` come in eight parts, or in parts of as few rows as a part may have."""
    monkeypatch.setattr(memory, "SMALL_PART", max(1, X.shape[0] * X.shape[1] * as_source(X).dtype.itemsize // 8))
    assert has_many_parts(X)


def has_many_parts(X):
    """Whether they are three at least: two come to the same in any order."""
    return len(as_source(X).parts()) >= 3


def weights_of_many_digits(X):
    """One for each row: without them, float64 holds the sums of float32 rows exactly, in any order."""
    return np.random.default_rng(7).exponential(size=X.shape[0])


def many_strips(monkeypatch, numbers):
    """Tables of distances are made in strips of so many numbers."""
    monkeypatch.setattr(PAIRWISE, "STRIP", numbers)
