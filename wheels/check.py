"""Install the wheel in `dist` into an empty environment, and check that no kernel is compiled there.

A tour of the library runs with the kernels of the package, for every level in it that this CPU supports, and an empty
cache.
No kernel may be compiled, and all results must be equal, bit for bit, to those of kernels compiled from the sources.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOUR = ROOT / "wheels" / "run_tour.py"
LEVELS = """
from coterie.kernels.cpu.level import supported
from coterie.kernels.cpu.package_kernels import FOLDER
print(*(name for name in supported() if (FOLDER / f"{name}.json").exists()))
"""


def main() -> None:
    (wheel,) = (ROOT / "dist").glob("*.whl")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        venv.create(folder / "env", with_pip=True)
        python = folder / "env" / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel)], check=True, cwd=folder)
        levels = _output(python, folder, LEVELS).split()
        from_sources = {"PYTHONPATH": str(ROOT / "src"), "NUMBA_CACHE_DIR": os.environ["NUMBA_CACHE_DIR"]}
        runs = [
            _start(python, folder, {"NUMBA_CACHE_DIR": str(folder / name), "COTERIE_CPU_LEVEL": name})
            for name in levels
        ]
        runs.append(_start(python, folder, from_sources))
        *installed, expected = (_result(run) for run in runs)
    assert str(ROOT) in expected["package"], expected["package"]
    for result in installed:
        assert str(ROOT) not in result["package"], result["package"]
        if result["compiled"]:
            sys.exit(f"{wheel.name} lacks kernels for {result['level']}: {', '.join(result['compiled'])}")
        print(f"{result['level']}: {result['loaded']} kernels of the package, none compiled")
    same_level = next(result for result in installed if result["level"] == expected["level"])
    different = [name for name, value in expected["hashes"].items() if same_level["hashes"][name] != value]
    if different:
        sys.exit(f"results differ from those of kernels compiled here: {'; '.join(different)}")
    print(f"{len(expected['hashes'])} results are equal to those of kernels compiled here")


def _start(python: Path, folder: Path, variables: dict[str, str]) -> subprocess.Popen[str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "COTERIE", "PYTHON"))
    }
    return subprocess.Popen(
        [python, TOUR], env={**environment, **variables}, cwd=folder, stdout=subprocess.PIPE, text=True
    )


def _result(process: subprocess.Popen[str]) -> dict:
    output, _ = process.communicate()
    if process.returncode:
        sys.exit(f"the tour ended with status {process.returncode}")
    return json.loads(output)


def _output(python: Path, folder: Path, code: str) -> str:
    return subprocess.run([python, "-c", code], check=True, cwd=folder, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
