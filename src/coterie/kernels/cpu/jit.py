"""One decorator for every CPU kernel: compiled once, cached on disk, free of the GIL."""

from __future__ import annotations

import os

import numba

_options = {
    "nogil": True,
    "error_model": "numpy",
    "cache": os.environ.get("COTERIE_NUMBA_CACHE", "1") == "1",
}

jit = numba.njit(**_options)
# For loops over numbers known to be finite.
jit_finite = numba.njit(fastmath={"reassoc", "contract", "nsz", "nnan"}, **_options)
# For loops that only add up: the order of additions may change, NaN and infinity keep their meaning.
jit_reassociating = numba.njit(fastmath={"reassoc", "contract", "nsz"}, **_options)
# For functions that kernels alone call: half of what it takes to compile a small one is making it callable from Python.
jit_inner = numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_options)
