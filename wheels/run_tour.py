"""Run the tour of the installed package, and print which kernels were compiled and a hash of each result, as JSON."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import numpy as np
from numba.core import event

import coterie
from coterie.jobs import tour
from coterie.jobs.kernel_compilation import all_kernels
from coterie.kernels.cpu.level import level


def main() -> None:
    with event.install_recorder("numba:compile") as recorder:
        results = tour.run()
    compiled = sorted({str(each.data["dispatcher"]) for _, each in recorder.buffer})
    hashes = {name: hashlib.sha256(b"".join(contents(result))).hexdigest() for name, result in results.items()}
    loaded = sum(len(kernel.overloads) for kernel in all_kernels())
    print(json.dumps({
        "package": coterie.__file__, "level": level().name, "loaded": loaded, "compiled": compiled, "hashes": hashes,
    }))  # fmt: skip


def contents(result):
    """The bytes of all numbers and arrays in a result."""
    if isinstance(result, np.ndarray | np.generic | float | int):
        yield np.ascontiguousarray(result).tobytes() if np.asarray(result).dtype != object else b""
    elif isinstance(result, dict):
        yield from (part for key in sorted(result, key=str) for part in contents(result[key]))
    elif isinstance(result, list | tuple):
        yield from (part for each in result for part in contents(each))
    elif hasattr(result, "get_params"):
        yield from contents({name: value for name, value in vars(result).items() if name.endswith("_")})
    elif dataclasses.is_dataclass(result):
        yield from contents(vars(result))


if __name__ == "__main__":
    main()
