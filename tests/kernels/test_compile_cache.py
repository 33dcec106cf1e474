"""Compiled kernels on disk are used only if they are whole and come from the sources that are installed."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import caching

from coterie import errors, garbage, interrupts
from coterie.kernels.cpu import compile_cache, jit

CPU = Path(jit.__file__).parent
X = np.arange(3.0)


def total(x):
    result = 0.0
    for value in x:
        result += value
    return result


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run():
    """Result of the kernel in a new dispatcher, and whether its code came from the cache."""
    kernel = jit.jit(total)
    return kernel(X), sum(kernel.stats.cache_hits.values()) == 1


def cache_file(folder):
    (path,) = folder.rglob("*.nbc")
    return path


def flip(path):
    """A changed byte in the machine code, which unpickling cannot see."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def with_folder(path):
    path.unlink()
    path.mkdir()


def with_full_folder(path):
    with_folder(path)
    (path / "file").touch()


DAMAGE = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "empty": lambda path: path.write_bytes(b""),
    "shorter than a checksum": lambda path: path.write_bytes(b"abc"),
    "random": lambda path: path.write_bytes(np.random.default_rng(0).bytes(5000)),
    "one bit": flip,
    "no permission": lambda path: path.chmod(0),
    "a folder": with_folder,
    "a link to nothing": lambda path: (path.unlink(), path.symlink_to("nowhere")),
    "removed": Path.unlink,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_cache_file_is_replaced(folder, damage):
    assert run() == (3.0, False)
    assert run() == (3.0, True)
    path = cache_file(folder)
    DAMAGE[damage](path)
    is_readable = damage == "no permission" and os.access(path, os.R_OK)  # root can read every file
    assert run() == (3.0, is_readable)
    assert run() == (3.0, True)
    assert not list(folder.rglob("*.tmp"))


def test_what_cannot_be_replaced_is_left_alone(folder):
    run()
    with_full_folder(cache_file(folder))
    assert run() == run() == (3.0, False)
    assert (cache_file(folder) / "file").exists()


def test_a_file_of_another_kernel_or_signature_is_not_used(folder):
    kernel = jit.jit(total)
    kernel(X)
    first = cache_file(folder)
    kernel(X.astype(np.float32))
    (second,) = set(folder.rglob("*.nbc")) - {first}
    first.write_bytes(second.read_bytes())
    assert run() == (3.0, False)


@pytest.mark.parametrize("where", ["a file is in the way", "no folder at all"])
def test_kernels_work_without_a_folder_to_write_in(tmp_path, monkeypatch, where):
    (tmp_path / "file").touch()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "file" / "cache") if "file" in where else "")
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [caching.UserProvidedCacheLocator])
    assert run() == run() == (3.0, False)


@pytest.mark.parametrize("step", ["ensure_cache_path", "write"])
def test_a_full_or_vanished_disk_costs_the_cache_only(folder, monkeypatch, step):
    def full(*_):
        raise OSError(28, "No space left on device")

    kernel = jit.jit(total)
    if step == "write":
        monkeypatch.setattr(os, "replace", full)
    else:
        monkeypatch.setattr(kernel._cache._impl.locator, "ensure_cache_path", full)
    assert kernel(X) == 3.0
    assert not list(folder.rglob("*.nbc*"))


def test_an_interrupted_write_leaves_no_file(folder, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run()
    assert not list(folder.rglob("*.nbc*"))


def test_nothing_is_saved_once_the_sources_have_changed(folder, tmp_path, monkeypatch):
    """An upgrade while a process runs: some kernels were imported before, others after."""
    kernel = jit.jit(total)
    monkeypatch.setattr(compile_cache, "SOURCES", tmp_path)
    (tmp_path / "new.py").touch()
    assert kernel(X) == 3.0
    assert not list(folder.rglob("*.nbc"))


def test_an_unknown_version_of_numba_gets_its_own_cache(folder, monkeypatch):
    monkeypatch.setattr(compile_cache, "NEEDED", (*compile_cache.NEEDED, "what_no_version_has"))
    assert run() == (3.0, False)
    assert run() == (3.0, True)
    assert list(folder.rglob("*.nbi"))


def imported(file):
    """Full names of what a file imports from the library."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module.startswith("coterie"))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("coterie"))


def test_kernels_import_from_files_that_are_hashed_only():
    # never called by compiled code
    plain_python = {"coterie.interrupts", "coterie.errors.ParameterError", "coterie.garbage.no_collection"}
    for file in CPU.rglob("*.py"):
        outside = {name for name in imported(file) if not name.startswith("coterie.kernels.")} - plain_python
        assert not outside, f"{file.name} imports {outside}: changes there would leave old compiled code in use"


INNER = """from coterie.kernels.cpu.jit import jit

@jit
def added(x):
    return x + {number}
"""
OUTER = """import sys
from coterie.kernels.cpu.inner import added
from coterie.kernels.cpu.jit import jit

@jit
def outer(x):
    return added(x)

print(outer(1), "loaded" if sum(outer.stats.cache_hits.values()) else "compiled", "numba.np.linalg" in sys.modules)
"""


@pytest.fixture
def package(tmp_path):
    """A package with the decorators of the library, and one kernel that calls into another file."""
    cpu = tmp_path / "coterie" / "kernels" / "cpu"
    cpu.mkdir(parents=True)
    for parent in (cpu, cpu.parent, cpu.parent.parent):
        (parent / "__init__.py").touch()
    for name in ("jit", "compile_cache", "compiler", "level", "package_kernels", "references", "tuple_model"):
        shutil.copy(CPU / f"{name}.py", cpu)
    shutil.copy(CPU.parent / "compile_notice.py", cpu.parent)
    for module in (errors, garbage, interrupts):
        shutil.copy(module.__file__, cpu.parents[1])
    (cpu / "outer.py").write_text(OUTER)
    return cpu


def test_a_change_in_an_inner_file_is_compiled_and_code_on_disk_is_loaded_without_the_compiler(package, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment.pop("COTERIE_NUMBA_CACHE", None)
    command = [sys.executable, "-c", "import coterie.kernels.cpu.outer"]
    printed = []
    for number in (1, 1, 20):
        (package / "inner.py").write_text(INNER.format(number=number))
        printed += subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
    assert printed == ["2", "compiled", "True", "2", "loaded", "False", "21", "compiled", "True"]
    assert len(list((tmp_path / "cache").rglob("outer*.nbc"))) == 1  # the file of the old state was replaced


def test_a_kernel_on_disk_that_creates_arrays_needs_no_compiler(tmp_path):
    program = """
import numpy as np
from numba.core.runtime import rtsys
from coterie.kernels.cpu.neighbours import pack
arrays = [pack(np.full((3, 2), float(i))) for i in range(1, 100)]
assert [array[0] for array in arrays] == list(range(1, 100))
print(sum(pack.stats.cache_hits.values()), rtsys._init)
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", program]
    runs = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    assert [run.stdout.split() for run in runs] == [["0", "True"], ["1", "False"]]
