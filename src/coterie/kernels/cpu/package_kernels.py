"""Kernels that were compiled when the package was built; `make wheel` puts them into a wheel.

For each level there are two files in `kernels/compiled`: the compressed code of all kernels, and a record with the
versions that it was compiled with, and the place and hash of each kernel. The code of a kernel is used only if the
versions are those of this process and the hash matches. In all other cases the kernel is compiled as usual.
"""

import hashlib
import json
import sys
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numba

from coterie.kernels.cpu.level import level

FOLDER = Path(__file__).parents[1] / "compiled"


class Place(NamedTuple):
    """The code of a kernel in the file of its level."""

    offset: int
    size: int
    sha256: str


class PackageKernels:
    """The kernels of one level in a folder. `problem` says why none of them is used."""

    def __init__(self, folder: Path, name: str, sources: str) -> None:
        self._code = folder / f"{name}.bin"
        self._places: dict[str, Place] = {}
        self.problem = ""
        try:
            record = json.loads((folder / f"{name}.json").read_text("utf-8"))
            compiled_with = dict(record["versions"])
            places = {str(kernel): Place(*place) for kernel, place in record["kernels"].items()}
        except FileNotFoundError:
            self.problem = f"the package contains no kernels for {name}"
            return
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            self.problem = f"the record of the kernels for {name} is damaged"
            return
        for what, version in versions(sources).items():
            if compiled_with.get(what) != version:
                theirs = compiled_with.get(what)
                self.problem = (
                    "they were compiled from other sources"
                    if what == "sources"
                    else f"they were compiled for {what} {theirs}, and this is {what} {version}"
                )
                return
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    def read(self, kernel: str) -> bytes | None:
        """The code of a kernel, or None if there is none, or not the recorded one."""
        place = self._places.get(kernel)
        if place is None:
            return None
        try:
            with self._code.open("rb") as file:
                file.seek(place.offset)
                content = file.read(place.size)
            return zlib.decompress(content) if hashlib.sha256(content).hexdigest() == place.sha256 else None
        except (OSError, ValueError, TypeError, zlib.error):
            return None


def write_kernels(folder: Path, name: str, sources: str, kernels: Mapping[str, bytes]) -> None:
    """Write the kernels of a level as `PackageKernels` reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    places, offset = dict[str, Any](), 0
    with (folder / f"{name}.bin").open("wb") as file:
        for kernel, code in sorted(kernels.items()):
            content = zlib.compress(code, 9)
            file.write(content)
            places[kernel] = Place(offset, len(content), hashlib.sha256(content).hexdigest())
            offset += len(content)
    record = {"versions": versions(sources), "kernels": places}
    (folder / f"{name}.json").write_text(json.dumps(record, indent=0), "utf-8")


def versions(sources: str) -> dict[str, str]:
    """Versions that compiled code depends on; `sources` is a hash of the kernel sources."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
    return {"Python": python, "Numba": numba.__version__, "llvmlite": llvmlite.__version__, "sources": sources}


@cache
def package_kernels(sources: str) -> PackageKernels:
    """The kernels in this package for the level of this process."""
    return PackageKernels(FOLDER, level().name, sources)
