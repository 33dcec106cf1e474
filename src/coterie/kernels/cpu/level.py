"""The instruction set that kernels are compiled for.

Code for the exact CPU would differ between CPUs of the same instruction set: LLVM then chooses other widths of vectors
and other orders of sums. Kernels are compiled for one of a few levels instead. So results are the same on all CPUs of
a level, and compiled kernels can be part of the package.
"""

import hashlib
import os
import platform
from functools import cache
from typing import NamedTuple

import llvmlite.binding as llvm
import numba
from numba.core.callconv import CPUCallConv
from numba.core.codegen import JITCPUCodegen
from numba.core.cpu import CPUContext
from numba.core.ir import Loc
from numba.core.target_extension import CPU

from coterie.errors import ParameterError
from coterie.kernels.cpu.tuple_model import CONTEXT, data_models


class Level(NamedTuple):
    """A CPU as LLVM describes it."""

    name: str
    features: str  # such as "+avx2,+fma"; a minus turns a feature of this CPU off
    register: int  # size of a vector register in bytes


_V3 = "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+sahf,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave"
_V4 = f"{_V3},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"
LEVELS = {
    "x86_64": (
        Level("x86-64-v4", f"{_V4},-prefer-256-bit", 64),  # LLVM would use half of each register
        Level("x86-64-v3", _V3, 32),
    ),
    "aarch64": (Level("generic", "+neon", 16),),
}


def levels() -> tuple[Level, ...]:
    """The levels of this architecture, the highest first."""
    return LEVELS.get({"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine()), ())


def supported() -> list[str]:
    """Names of the levels that this CPU supports, the highest first."""
    host = _host_features()
    return [
        each.name for each in levels() if host.issuperset(name for name in each.features.split(",") if name[0] == "+")
    ]


@cache
def level() -> Level:
    """The level of this process: `COTERIE_CPU_LEVEL`, else the highest that this CPU supports.

    It is the CPU itself if it supports none of them, if `COTERIE_CPU_LEVEL` is "native", or if Numba is configured for
    another CPU. A level that this CPU does not support is rejected, unless `COTERIE_COMPILE_ONLY` is 1: kernels are
    then compiled for a wheel, and none is called.
    """
    configured = numba.config.CPU_NAME or numba.config.CPU_FEATURES
    name = os.environ.get("COTERIE_CPU_LEVEL", "native" if configured else next(iter(supported()), "native"))
    for candidate in levels():
        if candidate.name == name:
            if name not in supported() and os.environ.get("COTERIE_COMPILE_ONLY") != "1":
                names = ", ".join([*supported(), "native"])
                raise ParameterError(
                    f"COTERIE_CPU_LEVEL is {name!r}, but this CPU supports only {names}: unset it, or set one of these"
                )
            return candidate
    if name != "native":
        names = ", ".join([*(each.name for each in levels()), "native"])
        raise ParameterError(f"COTERIE_CPU_LEVEL must be one of {names}; got {name!r}")
    features = set(numba.config.CPU_FEATURES.split(",")) if configured else _host_features()
    return Level("native", "", _register_bytes(features))


def _host_features() -> set[str]:
    return {f"+{feature}" for feature, is_on in llvm.get_host_cpu_features().items() if is_on}


def _register_bytes(features: set[str]) -> int:
    if "+avx512f" in features:
        return 64
    return 32 if "+avx2" in features else 16


class _Codegen(JITCPUCodegen):
    """Numba's code generator for the level of this process."""

    def _get_host_cpu_name(self):
        return level().name

    def _get_host_cpu_features(self):
        return level().features

    def _create_empty_module(self, name):
        module = super()._create_empty_module(name)
        module.context = CONTEXT
        return module

    def create_library(self, name, **kwargs):
        """The code of a function that Numba compiles within a kernel."""
        from coterie.kernels.cpu.compiler import InnerLibrary

        return InnerLibrary(self, name, **kwargs)


class _CallingConvention(CPUCallConv):
    """Numba's calling convention. Exceptions name a source file without its folder, which differs between machines."""

    def build_excinfo_struct(self, exc, exc_args, loc, func_name):
        if loc is not None:
            loc = Loc(os.path.basename(loc.filename), loc.line, loc.col)
        return super().build_excinfo_struct(exc, exc_args, loc, func_name)


_sizes: dict[str, int] = {}


class Kernels(CPU):
    """The CPU, as a target of Numba with its own way to compile the functions that kernels call; see `compiler`."""


class _Context(CPUContext):
    def mangler(self, name, types, *, abi_tags=(), uid=None):
        """Name of a function in LLVM code, with a hash of its types: namedtuples of arrays have very long names."""
        mangled = super().mangler(name, types, abi_tags=abi_tags, uid=uid)
        return super().mangler(name, (), abi_tags=[hashlib.sha256(mangled.encode()).hexdigest()])

    def get_abi_sizeof(self, ty):
        """Size of an LLVM type. Numba asks for it at each assignment, and LLVM parses a module to find it."""
        text = str(ty)
        if text not in _sizes:
            _sizes[text] = ty.get_abi_size(self.target_data, context=CONTEXT)
        return _sizes[text]

    @property
    def call_conv(self):
        return _CallingConvention(self)


@cache
def target_context(context):
    """Numba's target context for the level of this process."""
    if level().name == "native":
        context = context.subtarget()
    else:
        context = context.subtarget(_internal_codegen=_Codegen("coterie"), data_model_manager=data_models())
    context.__class__ = _Context
    context.target = Kernels
    return context
