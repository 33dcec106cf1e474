"""Run tests as on another processor: ``python tests/processors.py laptop -n 3 tests/laws``.

Results must not depend on the last digits of a matrix product, and these depend on the processor: OpenBLAS, NumPy and
the compiled kernels use other instructions on each generation. Options after the name are those of pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys

from coterie.kernels.cpu.level import supported

PROCESSORS = {
    # most laptops: registers of 32 bytes
    "laptop": {
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL",
        "OPENBLAS_CORETYPE": "HASWELL",
        "COTERIE_CPU_LEVEL": "x86-64-v3",
    },
    "nehalem": {"OPENBLAS_CORETYPE": "NEHALEM"},
    "skylakex": {"OPENBLAS_CORETYPE": "SKYLAKEX"},
}
NEEDS = {
    "laptop": "x86-64-v4",
    "nehalem": "x86-64-v3",
    "skylakex": "x86-64-v4",
}  # level of this machine


def main(name: str, *options: str) -> int:
    if NEEDS[name] not in supported():
        print(f"not run as {name}: this processor does not support {NEEDS[name]}, so the ordinary tests are this run")
        return 0
    print(f"tests as on {name}: {' '.join(f'{key}={value!r}' for key, value in PROCESSORS[name].items())}", flush=True)
    return subprocess.call([sys.executable, "-m", "pytest", *options], env=os.environ | PROCESSORS[name])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
