"""Kill fits at random times until one completes; run as a separate program.

Prints, for every case, how often it was killed, and whether the model in the end is that of a fit that never was.
"""

import os
import random
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

import coterie
from coterie.persistence import checkpoint_file

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(size=(120, 3)) + shift for shift in (0, 2, 4, 6)])
COUNTS = rng.poisson(np.repeat(rng.gamma(1, 4, (3, 4)), 80, axis=0)).astype(float)
SERIAL = {"random_state": 0, "engine": "serial"}
CASES = {
    "KMeans": (coterie.KMeans(12, n_init=8, **SERIAL), X),
    "accelerated": (coterie.GaussianMixture(4, accelerate=True, max_iter=20, init_params="random", **SERIAL), X),
    "Mixture": (coterie.Mixture(3, "poisson", n_init=3, init_params="random", **SERIAL), COUNTS),
    "MiniBatchKMeans": (coterie.MiniBatchKMeans(8, batch_size=32, max_no_improvement=20, **SERIAL), X),
}


def fit(name, path, out):
    model, rows = CASES[name]
    model.set_params(checkpoint=path).fit(rows)
    coterie.save(model, out, overwrite=True)


def killed(name, path, out, seconds):
    """Whether the fit was killed after this time, before it was complete."""
    child = os.fork()
    if child == 0:
        try:
            fit(name, path, out)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        sys.exit(f"{name} could not go on")
    return status != 0


def main(folder):
    rng = random.Random(0)
    for name in CASES:
        whole, pieces = folder / f"{name}.safetensors", folder / f"{name} in pieces.safetensors"
        began = time.perf_counter()
        fit(name, folder / "never", whole)
        longest = time.perf_counter() - began
        kills = 0
        while killed(name, folder / "checkpoint", pieces, rng.uniform(0.05, 0.6) * longest + 0.002 * kills):
            kills += 1
        assert list(folder.glob("*checkpoint*")) == list(folder.glob("*.part")) == []
        print(name, kills, whole.read_bytes() == pieces.read_bytes(), flush=True)


if __name__ == "__main__":
    checkpoint_file.MIN_INTERVAL = checkpoint_file.INTERVAL_FACTOR = (
        0.0  # a state after every iteration: half of the time is writing
    )
    os.fsync = lambda handle: None  # slow, and of use only where the machine dies, too
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
