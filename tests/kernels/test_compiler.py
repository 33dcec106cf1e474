"""Kernels are compiled with less work than Numba does by itself; this must not change what they compute."""

from collections import namedtuple

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from coterie.kernels.cpu.jit import compiling
from coterie.kernels.cpu.pairwise import compile_function

Pair = namedtuple("Pair", ("values", "scale"))
X = np.arange(12.0).reshape(3, 4)


def kernel(function):
    """Compile a function as if it were one of the package."""
    function.__module__ = "coterie.kernels.example"
    return compiling(cache=False)(function)


def counts_references(compiled):
    (result,) = compiled.overloads.values()
    return result.target_context.enable_nrt


def add(values, i):
    values[i] += 1.0
    return values[i]


def view(values, i):
    row = values[i]
    row[1:] = 2.0
    return row[0] + values[i, 1]


def field(pair, i):
    return pair.values[i] * pair.scale


def create(values, i):
    other = np.zeros(len(values))
    other[0] = i
    return other[0]


def select(values, i):
    return values[np.array([i, i])][1, 0]


def give(values, i):
    return values[i:]


def negate(values, i):
    return (-values)[i, 0]


@pytest.mark.parametrize("function", [add, view, field])
def test_functions_that_only_use_arguments_do_not_count_references(function):
    compiled = kernel(function)
    argument = Pair(X[0].copy(), 3.0) if function is field else X[0].copy() if function is add else X.copy()
    expected = Pair(X[0].copy(), 3.0) if function is field else argument.copy()
    assert compiled(argument, 1) == function(expected, 1)
    assert not counts_references(compiled)


@pytest.mark.parametrize("function", [create, select, give, negate])
def test_functions_that_create_or_return_arrays_count_references(function):
    compiled = kernel(function)
    np.testing.assert_array_equal(compiled(X.copy(), 1), function(X.copy(), 1))
    assert counts_references(compiled)


def test_every_array_is_freed_once():
    inner_field, inner_give = kernel(field), kernel(give)

    def total(n):
        result = 0.0
        for i in range(n):
            values = np.ones(4)
            pair = Pair(values, 2.0 + i)
            values = inner_give(np.full(3, 7.0), 1)
            result += inner_field(pair, 3) + values[1] + inner_field(Pair(values, 1.0), 0)
        return result

    compiled = kernel(total)
    compiled(1)
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    assert compiled(50) == total(50)
    after = rtsys.get_allocation_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0


def test_constants_are_not_compiled_by_themselves():
    inner = kernel(add)

    def total(values):
        last = 0
        for i in range(3):
            last = i + (inner(values, 0) > inner(values, last))
        return last

    assert kernel(total)(np.zeros(5)) == 3
    assert len(inner.inner.overloads) == 1


def sum_of_differences(x, y):
    return np.sum(np.abs(x - y)) + np.zeros(3).sum()


@pytest.mark.parametrize("compile_first", [False, True])
def test_functions_of_users_share_nothing_with_kernels(compile_first):
    """Numba's functions are compiled into kernels; the same functions in a user's code are compiled by Numba."""

    plain = numba.njit(nogil=True, error_model="numpy")(sum_of_differences)
    expected = np.abs(X[:, None] - X).sum(axis=2)
    if compile_first:
        assert plain(X[0], X[1]) == expected[0, 1]
    for function in (sum_of_differences, plain):
        out = np.empty((3, 3))
        compile_function(function)(X, X, out, ())
        np.testing.assert_array_equal(out, expected)
    again = numba.njit(nogil=True, error_model="numpy")(sum_of_differences)
    assert again(X[0], X[2]) == expected[0, 2]
