"""Compile the kernels of a wheel: ``python -m wheels.compile_kernels FOLDER [host]``.

A tour of the library runs once for each floating-point type, in two processes. The kernels and signatures that it used
are then compiled for every level of this architecture; nothing is run for levels other than that of this machine. With
``host``, only this level is compiled.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from coterie.jobs import tour
from coterie.jobs.kernel_compilation import named_kernels
from coterie.kernels.cpu.compile_cache import sources_at_import
from coterie.kernels.cpu.level import level, levels
from coterie.kernels.cpu.package_kernels import write_kernels

PROCESSES = 2


def main(folder: Path, names: list[str]) -> None:
    """Write the compiled kernels of these levels to the folder."""
    with tempfile.TemporaryDirectory() as temporary:
        used = [Path(temporary, dtype) for dtype in tour.DTYPES]
        _in_parallel([("tour", dtype, str(file)) for dtype, file in zip(tour.DTYPES, used, strict=True)])
        kinds = sorted({kind for file in used for kind in pickle.loads(file.read_bytes())}, key=str)
        for level_name in names:
            parts = [Path(temporary, f"{level_name}-{part}") for part in range(PROCESSES)]
            for part, file in enumerate(parts):
                file.write_bytes(pickle.dumps(kinds[part::PROCESSES]))
            _in_parallel([("level", level_name, str(file)) for file in parts])
            compiled = {entry: code for file in parts for entry, code in pickle.loads(file.read_bytes()).items()}
            write_kernels(folder, level_name, sources_at_import(), compiled)
            size = Path(folder, f"{level_name}.bin").stat().st_size
            print(f"{level_name}: {len(compiled)} kernels, {size / 1e6:.1f} MB", flush=True)


def run_tour(dtype: str, file: str) -> None:
    """Run the tour, and store module, name and argument types of every kernel that was used."""
    tour.run((dtype,))
    used = [(*name, signature) for name, kernel in named_kernels().items() for signature in kernel.overloads]
    Path(file).write_bytes(pickle.dumps(used))


def compile_level(name: str, file: str) -> None:
    """Compile the kernels in the file for the level of this process, and replace them by their code."""
    assert level().name == name
    compiled = {}
    for module, kernel_name, signature in pickle.loads(Path(file).read_bytes()):
        kernel = getattr(import_module(module), kernel_name)
        kernel.compile(signature)
        entry, content = kernel._cache.entry(signature, kernel.targetctx)
        compiled[entry] = content
    Path(file).write_bytes(pickle.dumps(compiled))


def _in_parallel(calls: list[tuple[str, ...]]) -> None:
    """Run the steps in processes of their own."""
    environments = [
        {**os.environ, **({"COTERIE_CPU_LEVEL": call[1], "COTERIE_COMPILE_ONLY": "1"} if call[0] == "level" else {})}
        for call in calls
    ]
    command = [sys.executable, "-m", "wheels.compile_kernels"]
    processes = [
        subprocess.Popen([*command, *call], env=environment)
        for call, environment in zip(calls, environments, strict=True)
    ]
    statuses = [process.wait() for process in processes]
    if any(statuses):
        sys.exit("the kernels could not be compiled")


if __name__ == "__main__":
    step, *arguments = sys.argv[1:]
    if step == "tour":
        run_tour(*arguments)
    elif step == "level":
        compile_level(*arguments)
    else:
        main(Path(step), [level().name] if arguments == ["host"] else [each.name for each in levels()])
