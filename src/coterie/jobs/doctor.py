"""The machine and the installation, and problems with them."""

import platform
from importlib.metadata import PackageNotFoundError, version

import coterie
from coterie import machine
from coterie.core.formatting import format_bytes
from coterie.data.tensors import device_problem
from coterie.report.inspection import MachineInfo, Package

CORE = "everything"
PACKAGES = {  # purpose, and the extra of coterie or the package that installs it
    **dict.fromkeys(("numpy", "scipy", "scikit-learn", "numba", "narwhals", "safetensors"), (CORE, "coterie")),
    "cyclopts": ("the command line", "coterie[cli]"),
    "rich": ("the command line", "coterie[cli]"),
    "polars": ("tables in files", "coterie[cli]"),
    "fastexcel": ("Excel files", "coterie[excel]"),
    "xlsxwriter": ("output in .xlsx", "coterie[excel]"),
    "duckdb": ("tables in databases", "coterie[sql]"),
    "matplotlib": ("plots", "coterie[plot]"),
    "onnx": ("export to ONNX", "coterie[onnx]"),
    "starlette": ("the app", "coterie[app]"),
    "uvicorn": ("the app", "coterie[app]"),
    "torch": ("NVIDIA GPUs", "coterie[gpu]"),
    "dask": ("clusters of machines", "coterie[dask]"),
    "distributed": ("clusters of machines", "coterie[dask]"),
}


def examine() -> MachineInfo:
    """Versions, threads and memory; missing packages with the command that installs them."""
    from coterie.kernels.cpu import low_precision
    from coterie.kernels.cpu.compile_cache import cache_folder, sources_at_import
    from coterie.kernels.cpu.level import level
    from coterie.kernels.cpu.package_kernels import package_kernels

    packages = tuple(
        Package(name, _version(name), purpose, f'pip install "{extra}"') for name, (purpose, extra) in PACKAGES.items()
    )
    cache, kernels = cache_folder(), package_kernels(sources_at_import())
    problems = [
        f"{package.name} is missing, and nothing works without it. Run: {package.install}"
        for package in packages
        if package.version is None and package.needed_for == CORE
    ]
    if cache is None:
        problems.append(
            "No folder for compiled kernels can be written, so each process compiles them again. "
            "Set NUMBA_CACHE_DIR to a folder with write permission."
        )
    return MachineInfo(
        coterie=coterie.__version__,
        python=platform.python_version(),
        platform=platform.platform(terse=True),
        cores=machine.core_count(),
        threads=machine.thread_count(None),
        free_memory=machine.free_memory(),
        processor=f"{platform.machine()}, registers of {8 * level().register} bits, {low_precision.describe()}",
        kernels=f"not used: {kernels.problem}" if kernels.problem else f"{len(kernels)}, for {level().name}",
        cache="not kept" if cache is None else str(cache),
        gpu=_gpu(),
        packages=packages,
        problems=tuple(problems),
    )


def _gpu() -> str:
    """Name and memory of the GPU, or why none is used."""
    if problem := device_problem():
        return f"not used: device='cuda' {problem}"
    import torch

    free, total = torch.cuda.mem_get_info()
    return f"{torch.cuda.get_device_name()}, {format_bytes(free)} of {format_bytes(total)} free"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
