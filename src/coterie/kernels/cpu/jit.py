"""The decorator of all CPU kernels: they are compiled once, cached on disk, and release the GIL."""

from __future__ import annotations

import os

import numba
from numba.core.registry import CPUDispatcher

from coterie import interrupts

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


class Kernel(CPUDispatcher):
    """A compiled function. When it is called from Python, no signal handler can raise an exception within it.

    Ctrl-C is raised when the call is done; see `coterie.interrupts`.
    """

    def __call__(self, *args):
        if interrupts.can_defer():
            with interrupts.deferred():
                return _call(self, *args)
        try:
            result = _call(self, *args)
        except SystemError as error:  # of a handler that the program has installed
            raise interrupts.cause(error) from None
        interrupts.check()
        return result


_call = CPUDispatcher.__call__


def compiling(cache=CACHE, **options):
    """Decorator of functions that are compiled when they are first called, like ``numba.njit``."""
    target = {"nopython": True, "boundscheck": None, "nogil": True, "error_model": "numpy", **options}

    def decorate(function):
        if numba.config.DISABLE_JIT:
            return function
        kernel = Kernel(function, targetoptions=dict(target))
        if cache:
            _enable_cache(kernel)
        return kernel

    return decorate


jit = compiling()
# For loops over finite numbers.
jit_finite = compiling(fastmath={"reassoc", "contract", "nsz", "nnan"})
# For sums: the order of additions may change; NaN and infinity keep their meaning.
jit_reassociating = compiling(fastmath={"reassoc", "contract", "nsz"})
# For functions that only kernels call: half of the time to compile a small one is for making it callable from Python.
jit_inner = compiling(no_cpython_wrapper=True, no_cfunc_wrapper=True)
