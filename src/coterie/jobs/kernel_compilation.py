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
    """The kernels of all modules that are imported."""
    return list(named_kernels().values())


def named_kernels() -> dict[tuple[str, str], Any]:
    """The kernels by module and name, each once. The function of a kernel may be from another module."""
    modules = [(name, vars(module)) for name, module in sys.modules.items() if name.startswith("coterie.kernels.")]
    names = sorted((module, name) for module, values in modules for name in values if isinstance(values[name], Kernel))
    kernels: dict[int, tuple[tuple[str, str], Any]] = {}
    for module, name in names:
        kernel = vars(sys.modules[module])[name]
        kernels.setdefault(id(kernel), ((module, name), kernel))
    return dict(kernels.values())
