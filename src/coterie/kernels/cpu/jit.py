"""One decorator for every CPU kernel: compiled once, cached on disk, free of the GIL."""

from __future__ import annotations

import os

import numba

CACHE = os.environ.get("COTERIE_NUMBA_CACHE", "1") == "1"


def _enable_cache(kernel):
    """Keep the compiled code of `kernel` on disk, for as long as no kernel source changes.

    If this version of Numba does not have what `KernelCache` extends, the cache is that of ``numba.njit(cache=True)``,
    which does not see changes in files that the kernel calls into. If no folder can be written, nothing is kept.
    """
    try:
        try:
            from coterie.kernels.cpu.compile_cache import KernelCache

            kernel._cache = KernelCache(kernel.py_func)
        except (ImportError, AttributeError):
            kernel.enable_caching()
    except RuntimeError:  # Numba: "cannot cache function: no locator available"
        return


def _decorator(**options):
    compiling = numba.njit(nogil=True, error_model="numpy", **options)

    def decorate(function):
        kernel = compiling(function)
        if CACHE and not numba.config.DISABLE_JIT:
            _enable_cache(kernel)
        return kernel

    return decorate


jit = _decorator()
# For loops over numbers known to be finite.
jit_finite = _decorator(fastmath={"reassoc", "contract", "nsz", "nnan"})
# For loops that only add up: the order of additions may change, NaN and infinity keep their meaning.
jit_reassociating = _decorator(fastmath={"reassoc", "contract", "nsz"})
# For functions that kernels alone call: half of what it takes to compile a small one is making it callable from Python.
jit_inner = _decorator(no_cpython_wrapper=True, no_cfunc_wrapper=True)
