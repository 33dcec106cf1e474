"""Adds compiled kernels to a wheel if `COTERIE_COMPILED_KERNELS` names their folder; `make wheel` sets it."""

import os
import platform
import sys
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledKernelsHook(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def initialize(self, version, build_data):
        folder = os.environ.get("COTERIE_COMPILED_KERNELS")
        if folder and version == "standard":
            build_data["force_include"][folder] = "coterie/kernels/compiled"
            build_data["pure_python"] = False
            build_data["tag"] = tag()


def tag() -> str:
    """Python version and platform of the wheel.

    Kernels call the C library through LLVM, as all code of Numba does, so they run wherever Numba's wheels do.
    """
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if system.startswith("linux"):
        system = f"manylinux_2_17_{platform.machine()}"
    return f"{python}-{python}{sys.abiflags if hasattr(sys, 'abiflags') else ''}-{system}"
