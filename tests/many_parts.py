"""Divide small tables into many parts, as large tables are: a result that depends on the order of sums then differs."""

from importlib import import_module

import numpy as np

from coterie.data import as_source, memory

PAIRWISE = import_module("coterie.distances.pairwise")  # `coterie.distances.pairwise` is the function


def many_parts(monkeypatch, X):
    """Divide tables of the size of `X` into eight parts, or into parts of the minimum number of rows."""
    monkeypatch.setattr(memory, "SMALL_PART", max(1, X.shape[0] * X.shape[1] * as_source(X).dtype.itemsize // 8))
    assert has_many_parts(X)


def has_many_parts(X):
    """Whether `X` has at least three parts: the sum of two does not depend on their order."""
    return len(as_source(X).parts()) >= 3


def weights_of_many_digits(X):
    """Random weights, one for each row: without them, float64 holds sums of float32 rows exactly, in any order."""
    return np.random.default_rng(7).exponential(size=X.shape[0])


def many_strips(monkeypatch, numbers):
    """Compute matrices of distances in strips of that many numbers."""
    monkeypatch.setattr(PAIRWISE, "STRIP", numbers)
