"""Invalid rows, and a check of error messages."""

import re

import numpy as np
import pytest

ROWS = np.random.default_rng(0).normal(size=(30, 3))


def with_missing(value):
    """`ROWS` with two of `value` in column 0 and one in column 2."""
    X = ROWS.copy()
    X[[4, 9], 0] = X[7, 2] = value
    return X


def as_frame(library, X, names):
    return library.DataFrame({name: X[:, j] for j, name in enumerate(names)})


def rejects(error, *words):
    """Expect `error` with every one of `words` (regular expressions) in its message."""
    return pytest.raises(error, match=re.compile("".join(f"(?=.*{word})" for word in words), re.DOTALL))
