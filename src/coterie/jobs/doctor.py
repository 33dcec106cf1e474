"""What this machine and this installation have."""

import os
import platform
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import coterie
from coterie import machine
from coterie.report.inspection import MachineInfo, Package

CORE = "everything"
PACKAGES = {
    "numpy": (CORE, "coterie"),
    "scipy": (CORE, "coterie"),
    "scikit-learn": (CORE, "coterie"),
    "numba": (CORE, "coterie"),
    "narwhals": (CORE, "coterie"),
    "safetensors": (CORE, "coterie"),
    "cyclopts": ("the command line", "coterie[cli]"),
    "rich": ("the command line", "coterie[cli]"),
    "polars": ("tables in files", "coterie[cli]"),
    "fastexcel": ("Excel files", "fastexcel"),
    "matplotlib": ("plots", "coterie[plot]"),
    "dask": ("clusters of machines", "coterie[dask]"),
    "distributed": ("clusters of machines", "coterie[dask]"),
}


def examine() -> MachineInfo:
    """Versions, threads, memory, and what is missing with how to get it."""
    packages = tuple(
        Package(name, _version(name), purpose, f'pip install "{extra}"') for name, (purpose, extra) in PACKAGES.items()
    )
    cache = _cache_folder()
    problems = [
        f"{package.name} is missing, and nothing works without it. Run: {package.install}"
        for package in packages
        if package.version is None and package.needed_for == CORE
    ]
    if not _writable(cache):
        problems.append(
            f"{cache} cannot be written: kernels are compiled anew in every process. Set NUMBA_CACHE_DIR to a folder."
        )
    return MachineInfo(
        coterie=coterie.__version__,
        python=platform.python_version(),
        platform=platform.platform(terse=True),
        cores=machine.core_count(),
        threads=machine.thread_count(None),
        free_memory=machine.free_memory(),
        processor=_processor(),
        cache=str(cache),
        packages=packages,
        problems=tuple(problems),
    )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    from coterie.kernels.cpu.vectors import REGISTER

    return f"{platform.machine()}, registers of {8 * REGISTER} bits"


def _cache_folder() -> Path:
    asked = os.environ.get("NUMBA_CACHE_DIR")
    return Path(asked) if asked else Path(coterie.__file__).parent


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
