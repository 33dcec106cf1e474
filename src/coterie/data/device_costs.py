"""Estimated duration of a fit on the CPU and on a GPU, from measured rates."""

from typing import NamedTuple

PASSES = 20  # of a typical fit
CPU_RATE = 5e10  # multiply-adds of a pass per second and core
CPU_ROW = 7e-8  # seconds of a core for each row of a pass, for what does not depend on columns and clusters
CPU_FIT = 0.03  # seconds of a fit that do not depend on the rows
GPU_RATE = 1.2e14  # multiply-adds of a pass per second
GPU_READ = 1.5e12  # bytes of rows per second that a pass reads, if it has little to compute
GPU_FIT = 0.01  # seconds of a fit that do not depend on the rows
GPU_PASS = 4e-4  # seconds of a pass for launches and M-steps
COPY_RATE = 6e9  # bytes per second from main memory, not pinned, with checks of the rows
KERNELS = 5.0  # seconds until the kernels of a number of columns are compiled
START = 5.7  # seconds until PyTorch is imported and the GPU is initialised


class Costs(NamedTuple):
    """Seconds of a fit."""

    cpu: float
    gpu: float


def estimated_costs(n: int, d: int, k: int, nbytes: int, cores: int, has_torch: bool) -> Costs:
    """Costs of a fit of n rows of d columns and k clusters; `has_torch` is whether PyTorch is imported already.

    The rates were measured on 16 cores and one H200; `benchmarks/bench_gpu.py` prints estimated and real durations.
    """
    work = float(n) * d * k
    cpu = CPU_FIT + PASSES * (n * CPU_ROW + work / CPU_RATE) / cores
    gpu_pass = GPU_PASS + max(work / GPU_RATE, nbytes / GPU_READ)
    start = GPU_FIT + KERNELS + (0.0 if has_torch else START)
    return Costs(cpu, start + nbytes / COPY_RATE + PASSES * gpu_pass)
