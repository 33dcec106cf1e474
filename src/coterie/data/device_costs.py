"""Estimated duration of a fit on the CPU and on a GPU, from measured rates."""

from __future__ import annotations

from typing import NamedTuple

PASSES = 20  # of a typical fit
CPU_RATE = 3.0e9  # multiply-adds of a pass per second and core
CPU_CORES = 16  # beyond these, a pass of K-means hardly becomes faster
CPU_PASS = 2e-5  # seconds of a pass that do not depend on the rows
GPU_RATE = 1.2e14  # multiply-adds of a pass per second
GPU_READ = 1.5e12  # bytes of rows per second that a pass reads, if it has little to compute
GPU_PASS = 4e-4  # seconds of a pass for launches, and for M-steps
COPY_RATE = 8e9  # bytes per second from main memory, not pinned
KERNELS = 3.0  # seconds until the kernels of a shape are compiled or loaded
START = 4.0  # seconds until PyTorch is imported and the GPU is initialised


class Costs(NamedTuple):
    """Seconds of a fit."""

    cpu: float
    gpu: float


def estimated_costs(n: int, d: int, k: int, nbytes: int, cores: int, has_torch: bool) -> Costs:
    """Costs of a fit of n rows of d columns and k clusters; `has_torch` is whether PyTorch is imported already."""
    work = float(n) * d * k
    cpu = PASSES * (CPU_PASS + work / (CPU_RATE * min(cores, CPU_CORES)))
    gpu_pass = GPU_PASS + max(work / GPU_RATE, nbytes / GPU_READ)
    return Costs(cpu, KERNELS + (0.0 if has_torch else START) + nbytes / COPY_RATE + PASSES * gpu_pass)
