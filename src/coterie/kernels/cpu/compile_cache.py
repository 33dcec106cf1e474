"""Compiled kernels: those of the package, then those on disk, one file for each signature.

Numba's own cache depends on the file of a kernel, but not on the files that this kernel calls into, so an upgrade could
leave old code in use. It also trusts its files: a truncated one raises an error, and two processes that compile at the
same time can exchange their entries. Here each file has a checksum, a hash of all kernel sources and its full key. A
file that does not match is ignored, and replaced after the kernel is compiled again.
"""

import hashlib
import os
import pickle
import sys
import uuid
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
from numba.core.caching import FunctionCache
from numba.core.runtime._nrt_python import c_helpers
from numba.core.serialize import dumps

from coterie.kernels.cpu.compiler import load_result
from coterie.kernels.cpu.level import target_context
from coterie.kernels.cpu.package_kernels import package_kernels, versions

SOURCES = Path(__file__).parents[1]  # kernels are compiled from files in this folder alone
DIGEST = hashlib.sha256().digest_size
NEEDED = ("check_cachable", "locator", "reduce")  # of Numba's cache implementation
ANNOTATION = 6  # position of the annotated source text in a reduced compile result: long, and of no use
ENVIRONMENTS = 8  # position of the constants of inner functions, which are Python objects


def hash_sources() -> str:
    """Hash of the names and contents of all kernel sources; empty where they cannot be read, as in a zip archive."""
    files = sorted(SOURCES.rglob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(SOURCES)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest() if files else ""


@cache
def sources_at_import() -> str:
    """The hash when the first kernel was imported: this process compiles these sources."""
    return hash_sources()


@cache
def _add_runtime_symbols() -> None:
    """Tell LLVM the addresses of Numba's C functions for the memory of arrays.

    Numba does so too before it first compiles, and then compiles functions that kernels on disk already contain.
    """
    for name, address in c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class KernelCache(FunctionCache):
    """The compiled code of one kernel: from the package, else from the folder that Numba chooses.

    Raises `AttributeError` if this version of Numba lacks an attribute that is used here.
    """

    def __init__(self, function) -> None:
        try:
            super().__init__(function)
            for name in NEEDED:
                getattr(self._impl, name)
        except RuntimeError:  # no folder can be written
            self._py_func, self._impl, self._cache_path = function, None, None
        python = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
        name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}".replace("<", "").replace(">", "")
        self._name = f"{name}-{function.__code__.co_firstlineno}.{python}"
        sources = sources_at_import()
        if not sources and self._impl is not None and getattr(sys, "frozen", False):
            sources = repr(self._impl.locator.get_source_stamp())  # Numba hashes a frozen program as a whole
        self._versions = versions(sources) if sources else None

    def load_overload(self, sig, context):
        """The compiled kernel, or None if there is no valid code of it."""
        _add_runtime_symbols()  # the rest of `context.refresh()` is only for the compiler
        context = target_context(context)
        key = self._index_key(sig, context.codegen())
        for read in (self._read_package, self._read_file):
            try:
                payload = self._checked(read(key), key)
                if payload is not None:
                    return load_result(context, *pickle.loads(payload))
            except Exception:  # unpickling can raise anything; the kernel is compiled again
                continue
        return None

    def save_overload(self, sig, data) -> None:
        """Write a compiled kernel; without write permission or space, the next process compiles it again."""
        if self._impl is None or self._versions is None or not self._impl.check_cachable(data):
            return
        key = self._index_key(sig, data.codegen)
        try:
            if hash_sources() != sources_at_import():  # they changed after import: the compiled version is unknown
                return
            self._impl.locator.ensure_cache_path()
            reduced = list(self._impl.reduce(data))
            reduced[ANNOTATION] = ""
            reduced[ENVIRONMENTS] = tuple(each for each in reduced[ENVIRONMENTS] if each.consts)
            body = dumps((self._versions, key, dumps(tuple(reduced))))
            self._write(self._path(key), hashlib.sha256(body).digest() + body)
        except OSError:
            return

    def flush(self) -> None:
        """Remove all files of this kernel."""
        for path in [] if self._impl is None else Path(self._cache_path).glob(f"{self._name}.*.nbc"):
            path.unlink(missing_ok=True)

    def entry(self, sig, context) -> tuple[str, bytes]:
        """Name and content of the file of a compiled signature, for `package_kernels.write_kernels`."""
        key = self._index_key(sig, target_context(context).codegen())
        return self._entry_name(key), self._read_file(key)

    def _entry_name(self, key) -> str:
        """The same name for all states of the sources, so that old files are replaced."""
        return f"{self._name}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}"

    def _path(self, key) -> Path:
        return Path(self._cache_path, f"{self._entry_name(key)}.nbc")

    def _read_package(self, key) -> bytes | None:
        return package_kernels(sources_at_import()).read(self._entry_name(key))

    def _read_file(self, key) -> bytes | None:
        return None if self._impl is None else self._path(key).read_bytes()

    def _checked(self, content: bytes | None, key) -> bytes | None:
        """The code in the content of a file, if it is whole and that of this key."""
        if content is None or hashlib.sha256(content[DIGEST:]).digest() != content[:DIGEST]:
            return None
        saved_versions, saved_key, payload = pickle.loads(content[DIGEST:])
        return payload if (saved_versions, saved_key) == (self._versions, key) else None

    def _write(self, path: Path, content: bytes) -> None:
        """Write all or nothing, under a name that no other process uses."""
        temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}.tmp")
        try:
            temporary.write_bytes(content)
            if path.is_dir():
                path.rmdir()
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def cache_folder() -> Path | None:
    """Folder of the kernels compiled on this machine; None if no folder can be written."""
    path = KernelCache(cache_folder).cache_path
    return None if path is None else Path(path)
