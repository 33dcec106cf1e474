"""Kernels in the package are used only if they are the recorded ones, and for the versions that are installed."""

import hashlib
import json
import pickle
import zlib
from itertools import pairwise
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import caching

from coterie.errors import ParameterError
from coterie.kernels.cpu import level as level_module
from coterie.kernels.cpu import package_kernels
from coterie.kernels.cpu.compile_cache import sources_at_import
from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.level import LEVELS, level
from coterie.kernels.cpu.package_kernels import PackageKernels, write_kernels

X = np.arange(3.0)


def total(x):
    result = 0.0
    for value in x:
        result += value
    return result


def run():
    """Result of the kernel in a new dispatcher, and whether it was loaded instead of compiled."""
    kernel = jit(total)
    return kernel(X), sum(kernel.stats.cache_hits.values()) == 1


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the compiled kernel, which is the only place that it can be loaded from."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    kernel = jit(total)
    kernel(X)
    (signature,) = kernel.overloads
    compiled = tmp_path / "compiled"
    entry = kernel._cache.entry(signature, kernel.targetctx)
    write_kernels(compiled, level().name, sources_at_import(), dict([entry]))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [caching.UserProvidedCacheLocator])
    kernels = package_kernels.package_kernels
    monkeypatch.setattr(package_kernels, "FOLDER", compiled)
    kernels.cache_clear()
    yield compiled
    kernels.cache_clear()


def code_of(folder):
    return folder / f"{level().name}.bin"


def record_of(folder):
    return folder / f"{level().name}.json"


def edit_record(folder, change):
    record = json.loads(record_of(folder).read_text())
    change(record)
    record_of(folder).write_text(json.dumps(record))


def test_a_kernel_of_the_package_is_loaded_without_a_cache(folder):
    assert run() == (3.0, True)


def test_without_the_package_it_would_be_compiled(folder, monkeypatch):
    monkeypatch.setattr(package_kernels, "FOLDER", folder / "missing")
    assert run() == (3.0, False)


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def with_kernels(value):
    return lambda folder: edit_record(folder, lambda record: record.update(kernels=value))


DAMAGE = {
    "truncated code": lambda folder: code_of(folder).write_bytes(code_of(folder).read_bytes()[:-1]),
    "empty code": lambda folder: code_of(folder).write_bytes(b""),
    "one bit of code": lambda folder: flip(code_of(folder)),
    "no code": lambda folder: code_of(folder).unlink(),
    "code is a folder": lambda folder: (code_of(folder).unlink(), code_of(folder).mkdir()),
    "truncated record": lambda folder: record_of(folder).write_text(record_of(folder).read_text()[:-9]),
    "record is no text": lambda folder: record_of(folder).write_bytes(b"\xff\xfe\x80"),
    "record is a list": lambda folder: record_of(folder).write_text("[1, 2]"),
    "no kernels": with_kernels({}),
    "kernels are a number": with_kernels(3),
    "places are numbers": with_kernels({"a": 1}),
    "places are short": with_kernels({"a": [1, 2]}),
    "other versions": lambda folder: edit_record(folder, lambda record: record["versions"].update(Numba="0.1")),
    "no versions": lambda folder: edit_record(folder, lambda record: record.pop("versions")),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_kernels_are_compiled_instead(folder, damage):
    DAMAGE[damage](folder)
    assert run() == (3.0, False)


@pytest.mark.parametrize("place", [[-5, 10], [0, 10**12], ["a", 1], [None, None], [1.5, 2]])
def test_forged_places_are_compiled_instead(folder, place):
    def change(record):
        record["kernels"] = {name: [*place, value[2]] for name, value in record["kernels"].items()}

    edit_record(folder, change)
    assert run() == (3.0, False)


class Trap:
    """Calls `sprung` when it is unpickled."""

    def __reduce__(self):
        return sprung.append, (1,)


sprung: list[int] = []


def test_code_that_is_not_recorded_is_never_unpickled(folder):
    body = pickle.dumps(Trap())
    content = zlib.compress(hashlib.sha256(body).digest() + body)
    code_of(folder).write_bytes(content)
    edit_record(folder, lambda record: [place.__setitem__(1, len(content)) for place in record["kernels"].values()])
    assert run() == (3.0, False)
    assert not sprung


@pytest.mark.parametrize(
    "what, theirs, message",
    [
        ("Python", "3.9", "compiled for Python 3.9, and this is Python 3."),
        ("Numba", "0.1", "compiled for Numba 0.1, and this is Numba"),
        ("llvmlite", "0.1", "compiled for llvmlite 0.1"),
        ("sources", "x", "compiled from other sources"),
    ],
)
def test_the_reason_is_given(folder, what, theirs, message):
    edit_record(folder, lambda record: record["versions"].update({what: theirs}))
    kernels = PackageKernels(folder, level().name, sources_at_import())
    assert message in kernels.problem
    assert len(kernels) == 0


def test_a_package_without_kernels_says_so():
    assert "contains no kernels for x86-64-v9" in PackageKernels(Path("/nowhere"), "x86-64-v9", "").problem


def test_levels_of_an_architecture_extend_each_other():
    for levels in LEVELS.values():
        for higher, lower in pairwise(levels):
            assert {*higher.features.split(",")} > {*lower.features.split(",")}
            assert higher.register > lower.register


@pytest.mark.parametrize("name", ["x86-64-v9", "", "V4"])
def test_an_unknown_level_is_rejected_with_all_levels(monkeypatch, name):
    monkeypatch.setenv("COTERIE_CPU_LEVEL", name)
    with pytest.raises(ParameterError, match=f"COTERIE_CPU_LEVEL must be one of .*native; got '{name}'"):
        level.__wrapped__()


def test_a_level_that_the_cpu_lacks_is_rejected(monkeypatch):
    """Its code would end the process with an illegal instruction. A wheel is compiled for it all the same."""
    v4, v3 = LEVELS["x86_64"]
    monkeypatch.setattr(level_module, "levels", lambda: (v4, v3))
    monkeypatch.setattr(level_module, "_host_features", lambda: {*v3.features.split(",")})
    monkeypatch.setenv("COTERIE_CPU_LEVEL", v4.name)
    with pytest.raises(ParameterError, match="'x86-64-v4', but this CPU supports only x86-64-v3, native: unset it"):
        level.__wrapped__()
    monkeypatch.setenv("COTERIE_COMPILE_ONLY", "1")
    assert level.__wrapped__() == v4
    monkeypatch.setenv("COTERIE_CPU_LEVEL", v3.name)
    assert level.__wrapped__() == v3


def test_the_exact_cpu_can_be_asked_for(monkeypatch):
    monkeypatch.setenv("COTERIE_CPU_LEVEL", "native")
    assert level.__wrapped__().name == "native"


def test_compiled_code_names_no_folder(folder):
    """Paths of the machine that built a wheel have no place in it."""

    def first(x):
        return x[3]

    kernel = jit(first)
    kernel.compile((numba.types.Array(numba.float64, 1, "C"),))
    code = next(iter(kernel.overloads.values())).library._get_compiled_object()
    assert str(Path(__file__).parents[2]).encode() not in bytes(code)
    assert str(Path(numba.__file__).parents[1]).encode() not in bytes(code)
