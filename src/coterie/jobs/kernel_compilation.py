"""Compile all kernels ahead of their first use."""

import sys
import time
from typing import Any

from coterie.core.progress import Callback
from coterie.jobs import tour
from coterie.kernels.cpu.compile_cache import cache_folder
from coterie.kernels.cpu.jit import Kernel
from coterie.report.inspection import CompiledKernels


def compile_all(callback: Callback) -> CompiledKernels:
    """Run a tour of the library, which compiles the kernels that are not in the package or the cache."""
    began = time.monotonic()
    tour.run(callback=callback)
    ready = sum(len(kernel.overloads) for kernel in all_kernels())
    compiled = sum(sum(kernel.stats.cache_misses.values()) for kernel in all_kernels())
    folder = cache_folder()
    return CompiledKernels(ready, compiled, time.monotonic() - began, "not kept" if folder is None else str(folder))


def all_kernels() -> list[Any]:
    """The kernels of all modules that are imported, in the order of their names."""
    modules = (module for name, module in sorted(sys.modules.items()) if name.startswith("coterie.kernels."))
    kernels = {id(value): value for module in modules for value in vars(module).values() if isinstance(value, Kernel)}
    return sorted(kernels.values(), key=lambda kernel: (kernel.__module__, kernel.__qualname__))
