"""The decorator of all CPU kernels: they are compiled once, cached on disk, and release the GIL."""

import os
from contextlib import suppress

import numba
from numba import types
from numba.core.registry import CPUDispatcher

from coterie import interrupts

TARGET = {"nopython": True, "boundscheck": None, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
CACHE = os.environ.get("COTERIE_NUMBA_CACHE", "1") == "1"


class Kernel(CPUDispatcher):
    """A compiled function. When it is called from Python, no signal handler can raise an exception within it.

    Ctrl-C is raised when the call is done; see `coterie.interrupts`. Other kernels call `inner`, which is compiled into
    them; see `coterie.kernels.cpu.compiler`.
    """

    inner: CPUDispatcher | None = None

    @property
    def _numba_type_(self):
        return super()._numba_type_ if self.inner is None else types.Dispatcher(self.inner)

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
    target = {**TARGET, **options}

    def decorate(function):
        if numba.config.DISABLE_JIT:
            return function
        try:
            return _compiled_once(function, target, cache)
        except (ImportError, AttributeError):  # a version of Numba without the classes that are extended
            kernel = Kernel(function, targetoptions=dict(target))
            if cache:
                with suppress(RuntimeError):  # "cannot cache function: no locator available"
                    kernel.enable_caching()
            return kernel

    return decorate


def _compiled_once(function, target, cache):
    """A kernel that is compiled together with the functions that it calls, and cached until a kernel source changes."""
    from coterie.kernels.cpu.compile_cache import KernelCache
    from coterie.kernels.cpu.compiler import InnerFunction, KernelCompiler

    kernel = Kernel(function, targetoptions=dict(target), pipeline_class=KernelCompiler)
    if cache:
        kernel._cache = KernelCache(function)
    kernel.inner = InnerFunction(function, target)
    return kernel


jit = compiling()
# For loops over finite numbers.
jit_finite = compiling(fastmath={"reassoc", "contract", "nsz", "nnan"})
# For sums: the order of additions may change; NaN and infinity keep their meaning.
jit_reassociating = compiling(fastmath={"reassoc", "contract", "nsz"})
