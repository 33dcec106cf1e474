from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from coterie.garbage import no_collection


def test_collection_is_on_after_the_last_of_several_contexts():
    first, second = no_collection(), no_collection()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)  # as in two threads: the one that began first ends first
    assert not gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()


def test_an_error_turns_collection_on_again():
    with pytest.raises(ZeroDivisionError), no_collection():
        1 / 0  # noqa: B018
    assert gc.isenabled()


def test_a_program_without_collection_stays_without():
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_no_garbage_is_collected_while_numba_is_imported():
    program = """
import gc
import numpy as np, sklearn.base, scipy.sparse
from coterie import kernels
whole = gc.get_stats()[2]["collections"]
kernels.select("linkage", 1000, 10)
assert "numba" in __import__("sys").modules
assert gc.get_stats()[2]["collections"] == whole and gc.isenabled()
"""
    subprocess.run([sys.executable, "-c", program], check=True)
