"""What this machine can do at best: multiply-adds, bytes read, bytes used for the first time, import of Numba."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from time import perf_counter
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from benchmarks import load
from benchmarks.harness import Options, cores, main
from benchmarks.report import Result, Table

CACHES = (2**19, 2**23)  # bytes that fit into the second and the third level of many processors
ACCUMULATORS = 12  # covers latency times ports of current cores, and with two operands fits 16 registers


def vector_bytes() -> int:
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 64
    return 32 if features.get("avx") else 16


@intrinsic
def fma_chain(typing_context: Any, value: Any, steps: Any) -> Any:
    """ACCUMULATORS vectors v, each ``steps`` times v = v * value + value; returns a lane of their sum."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        scalar, n = arguments
        lanes = vector_bytes() // (4 if value == types.float32 else 8)
        vector = ir.VectorType(scalar.type, lanes)
        name = f"llvm.fma.v{lanes}f{32 if value == types.float32 else 64}"
        fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector] * 3), name)
        operand = _splat(builder, scalar, vector)
        # Different starts, or the compiler would see equal chains and keep one.
        starts = [builder.fadd(operand, ir.Constant(vector, [float(i)] * lanes)) for i in range(ACCUMULATORS)]
        slots = [cgutils.alloca_once_value(builder, start) for start in starts]
        with cgutils.for_range(builder, n):
            for slot in slots:
                builder.store(builder.call(fma, [builder.load(slot), operand, operand]), slot)
        total = builder.load(slots[0])
        for slot in slots[1:]:
            total = builder.fadd(total, builder.load(slot))
        return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))

    return value(value, types.int64), generate


def _splat(builder: Any, scalar: Any, vector: Any) -> Any:
    index = ir.IntType(32)
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(index, 0))
    zeros = ir.Constant(ir.VectorType(index, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, zeros)


@njit(nogil=True)
def run_chain(value: float, steps: int) -> float:
    return fma_chain(value, steps)  # type: ignore[call-arg]


@njit(nogil=True, fastmath=True)
def read_all(x: np.ndarray) -> float:
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    return total


def fastest(calls: list[Callable[[], object]], repeats: int) -> float:
    """Best wall time of running the calls together, a thread each."""
    best = float("inf")
    with ThreadPoolExecutor(len(calls)) as pool:
        for _ in range(repeats):
            start = perf_counter()
            list(pool.map(lambda call: call(), calls))
            best = min(best, perf_counter() - start)
    return best


def fma_gflops(dtype: str, steps: int, repeats: int) -> float:
    value = np.dtype(dtype).type(0.5)
    run_chain(value, 1)
    seconds = fastest([partial(run_chain, value, steps)] * cores(), repeats)
    flops = 2 * ACCUMULATORS * (vector_bytes() // value.itemsize) * steps * cores()
    return flops / seconds / 1e9


def read_gbytes(size: int, repeats: int) -> float:
    """GB/s of a sum over ``size`` bytes, which should be far larger than the last cache."""
    parts = np.array_split(np.ones(size // 8), cores())
    read_all(parts[0])
    calls: list[Callable[[], object]] = [partial(read_all, part) for part in parts]
    return size / fastest(calls, repeats) / 1e9


@njit(nogil=True, fastmath=True)
def read_often(x: np.ndarray, times: int) -> float:
    total = 0.0
    for _ in range(times):
        for i in range(x.shape[0]):
            total += x[i]
        x[0] = total  # or the compiler would read once
    return total


def one_core_gbytes(size: int) -> float:
    """GB/s of repeated sums over the same ``size`` bytes on one core: the bandwidth of the cache that holds them."""
    x, times = np.zeros(size // 8), 2**28 // size
    read_often(x, 1)
    return times * size / fastest([partial(read_often, x, times)], 5) / 1e9


def first_use_gbytes(size: int) -> tuple[float, float]:
    """GB/s of writing to each page of new memory: of the first array, and the best of later ones.

    A virtual machine may have to get the pages of the first array from its host.
    """
    rates = []
    for _ in range(4):
        memory = np.empty(size, np.uint8)
        begin = perf_counter()
        memory[::4096] = 1
        rates.append(size / (perf_counter() - begin) / 1e9)
        del memory
    return rates[0], max(rates[1:])


def import_seconds(module: str, repeats: int = 3) -> float:
    """Best time of an import in a new process that has imported scikit-learn, without collections of garbage."""
    program = (
        "import gc, time, sklearn.cluster; gc.disable(); begin = time.perf_counter(); "
        f"import {module}; print(time.perf_counter() - begin)"
    )
    command = [sys.executable, "-c", program]
    outputs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(repeats)]
    return min(map(float, outputs))


@cache
def measure(quick: bool = False) -> dict[str, float]:
    """GFLOP/s by type, GB/s read, and the cores that others used meanwhile."""
    steps, repeats, size = (2_000_000, 10, 2**28) if quick else (20_000_000, 20, 2**30)
    found: dict[str, float] = {}

    def fill() -> None:
        found["float32"] = fma_gflops("float32", steps, repeats)
        found["float64"] = fma_gflops("float64", steps, repeats)
        found["read"] = read_gbytes(size, repeats)

    found["foreign_cores"] = load.foreign_cores(fill) or 0.0
    return found


def run(options: Options) -> Result:
    found, fresh = measure(options.quick), first_use_gbytes(2**27 if options.quick else 2**30)
    rows = [
        ["float32 FMA", f"{found['float32']:.0f} GFLOP/s"],
        ["float64 FMA", f"{found['float64']:.0f} GFLOP/s"],
        ["memory read", f"{found['read']:.1f} GB/s"],
        *([f"{size >> 10} kB read on one core", f"{one_core_gbytes(size):.0f} GB/s"] for size in CACHES),
        ["memory used for the first time: first array, later ones", "{:.1f}, {:.1f} GB/s".format(*fresh)],
        ["import of Numba", f"{import_seconds('numba'):.3f} s"],
    ]
    warning = "**Disturbed**: other processes were running; the peak is higher and every share of it lower."
    notes = [warning] if found["foreign_cores"] > load.TOLERATED else []
    title = f"Peak of this machine, {cores()} cores"
    return Result([Table(title, ["what", "measured"], rows, notes)], raw=dict(found))


if __name__ == "__main__":
    main("peak", run)
