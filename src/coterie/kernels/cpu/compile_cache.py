"""Compiled kernels on disk: one file for each signature, valid for the kernel sources that it was compiled from.

Numba's own cache depends on the file of a kernel, but not on the files that this kernel calls into, so an upgrade could
leave old code in use. It also trusts its files: a truncated one raises an error, and two processes that compile at the
same time can exchange their entries. Here each file has a checksum, a hash of all kernel sources and its full key. A
file that does not match is ignored, and replaced after the kernel is compiled again.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import uuid
from functools import cache
from pathlib import Path

import numba
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

from coterie.kernels.cpu.compiler import load_result
from coterie.kernels.cpu.level import target_context

SOURCES = Path(__file__).parents[1]  # kernels are compiled from files in this folder alone
DIGEST = hashlib.sha256().digest_size
NEEDED = ("check_cachable", "filename_base", "locator", "reduce")  # of Numba's cache implementation


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


class KernelCache(FunctionCache):
    """The cache of one kernel, in the folder that Numba chooses.

    Raises `RuntimeError` if no folder can be written or the sources cannot be read, and `AttributeError` if this
    version of Numba lacks an attribute that is used here.
    """

    def __init__(self, function) -> None:
        super().__init__(function)
        for name in NEEDED:
            getattr(self._impl, name)
        if not (sources_at_import() or getattr(sys, "frozen", False)):  # Numba hashes a frozen program as a whole
            raise RuntimeError(f"there are no kernel sources in {SOURCES}")
        self._stamp = numba.__version__, self._impl.locator.get_source_stamp(), sources_at_import()

    def load_overload(self, sig, context):
        """The compiled kernel, or None if there is no valid file of it."""
        context.refresh()  # as Numba does, so that types of extensions are known
        context = target_context(context)
        key = self._index_key(sig, context.codegen())
        try:
            payload = self._read(self._path(key), key)
            return None if payload is None else load_result(context, *pickle.loads(payload))
        except Exception:  # unpickling can raise anything; the kernel is compiled again
            return None

    def save_overload(self, sig, data) -> None:
        """Write a compiled kernel; without write permission or space, the next process compiles it again."""
        if not self._impl.check_cachable(data):
            return
        key = self._index_key(sig, data.codegen)
        try:
            if hash_sources() != self._stamp[-1]:  # they changed after import: the compiled version is unknown
                return
            self._impl.locator.ensure_cache_path()
            body = dumps((self._stamp, key, dumps(self._impl.reduce(data))))
            self._write(self._path(key), hashlib.sha256(body).digest() + body)
        except OSError:
            return

    def flush(self) -> None:
        """Remove all files of this kernel."""
        for path in Path(self._cache_path).glob(f"{self._impl.filename_base}.*.nbc"):
            path.unlink(missing_ok=True)

    def _path(self, key) -> Path:
        """The same file for all states of the sources, so that old ones are replaced."""
        name = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return Path(self._cache_path, f"{self._impl.filename_base}.{name}.nbc")

    def _read(self, path: Path, key) -> bytes | None:
        content = path.read_bytes()
        digest, body = content[:DIGEST], content[DIGEST:]
        if hashlib.sha256(body).digest() != digest:
            return None
        stamp, saved_key, payload = pickle.loads(body)
        return payload if (stamp, saved_key) == (self._stamp, key) else None

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
    """Folder of the compiled kernels; None if no folder can be written."""
    try:
        return Path(KernelCache(cache_folder).cache_path)
    except RuntimeError:
        return None
