"""Tuples and statistics of arrays with the same first axis: parameters by component, or of several runs."""

from collections.abc import Callable
from typing import Any

import numpy as np

from coterie.core.stats import Stats


def by_array(function: Callable[..., np.ndarray], *trees: Any) -> Any:
    """Apply `function` to the arrays of nested tuples and statistics of the same structure."""
    first = trees[0]
    if isinstance(first, Stats):
        return type(first)(*by_array(function, *(tuple(tree.leaves()) for tree in trees)))
    if isinstance(first, tuple):
        values = [by_array(function, *parts) for parts in zip(*trees, strict=True)]
        return type(first)(*values) if hasattr(first, "_fields") else tuple(values)
    return function(*trees) if isinstance(first, np.ndarray) else first


def select(tree: Any, which: Any) -> Any:
    """Some of the runs or components."""
    return by_array(lambda array: array[which], tree)


def join(trees: list[Any]) -> Any:
    """The runs or components of several trees as one."""
    return by_array(lambda *arrays: np.concatenate(arrays), *trees)
