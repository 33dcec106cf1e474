"""Model files: the same bits back, damage rejected, whole or absent whatever happens while they are written."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import coterie
from coterie.errors import InputError, ModelFileError
from coterie.persistence import checkpoint_file, container
from fuzz import tables
from fuzz.call import attempt, quiet
from fuzz.estimators import ALL, benign_problem, problem
from fuzz.finding import LawBroken, require, require_same
from fuzz.law import Case, law
from fuzz.laws.fits import fit, require_same_results

FILES = ("save", "load")
CHILD_SECONDS = 60


@law(ALL)
def loaded_models_have_the_same_bits(case: Case) -> None:
    estimator, X, w = problem(case)
    model = fit(estimator, X, w)
    path = Path("model.safetensors")
    attempt(coterie.save, model, path, overwrite=True)
    loaded = attempt(coterie.load, path)
    require_same_results(loaded, model, "loaded model")
    require_same(loaded.predict(X), model.predict(X), "predictions of the loaded model")


def saved(case: Case) -> tuple[Any, Any, Path]:
    """A fitted model of any estimator, its rows, and the file it was saved to."""
    estimator, X = benign_problem(replace(case, subject=case.draw.one_of(ALL)), 20)
    with quiet():
        model, path = estimator.fit(X), Path("model.safetensors")
    attempt(coterie.save, model, path, overwrite=True)
    return model, X, path


def damaged(case: Case, data: bytes) -> bytes:
    """The bytes of a file with a random fault."""
    draw = case.draw
    fault = draw.one_of(["cut", "flip", "junk", "longer", "swap"])
    at = draw.integer(0, len(data) - 1)
    length = draw.integer(1, 40)
    case.note(f"{fault} at byte {at} of {len(data)}")
    return {
        "cut": data[:at],
        "flip": data[:at] + bytes([data[at] ^ (1 << draw.integer(0, 7))]) + data[at + 1 :],
        "junk": data[:at] + draw.rng.bytes(length) + data[at + length :],
        "longer": data + draw.rng.bytes(length),
        "swap": data[at:] + data[:at],
    }[fault]


@law(FILES, weight=12)
def damaged_model_files_are_rejected(case: Case) -> None:
    """Or are the same model: not every bit of a file matters."""
    model, _, path = saved(case)
    path.write_bytes(damaged(case, path.read_bytes()))
    try:
        loaded = coterie.load(path)
    except ModelFileError as error:
        require(str(error), "ModelFileError without a message")
        return
    require_same_results(loaded, model, "model from a damaged file")


@law(["load"], weight=12)
def forged_model_files_are_rejected_or_answer(case: Case) -> None:
    """Files with a correct checksum and arrays of wrong shapes, types or values."""
    _, X, path = saved(case)
    content, arrays = container.read(path)
    if not arrays:
        return
    name = case.draw.one_of(sorted(arrays))
    forge = case.draw.one_of(["type", "shape", "remove", "swap", "negative"])
    case.note(f"{forge} of {name}, {arrays[name].shape} of {arrays[name].dtype}")
    if forge == "type":
        arrays[name] = arrays[name].astype(case.draw.one_of(["float64", "float32", "int64", "uint8", "bool"]))
    elif forge == "shape":
        arrays[name] = np.resize(arrays[name], case.draw.integers(0, 4, (case.draw.integer(0, 3),)))
    elif forge == "remove":
        del arrays[name]
    elif forge == "swap":
        arrays[name] = arrays[case.draw.one_of(sorted(arrays))]
    else:
        arrays[name] = np.asarray(-arrays[name]) if arrays[name].dtype.kind in "fi" else arrays[name]
    path.write_bytes(container.to_bytes(content, arrays))
    try:
        with np.errstate(all="ignore"):
            coterie.load(path).predict(X)
    except (ModelFileError, InputError) as error:
        require(str(error), "an error without a message")


def in_child(work: Callable[[], Any], kill_after: float | None = None) -> int:
    """Run `work` in a forked process, which is killed after some seconds if it still runs. Returns its status."""
    child = os.fork()
    if child == 0:
        signal.alarm(CHILD_SECONDS)  # which ends the child even if the worker is gone
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def fill_disk(limit: int) -> None:
    """Let this process write no file of more than `limit` bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def model_of(case: Case, seed: int) -> Any:
    X = tables.blobs(case.draw, 200, 20)
    return coterie.KMeans(4, n_init=1, random_state=seed, engine="serial", max_iter=2, tol=0.1).fit(X)


@law(["save"], weight=6, hypothesis=False)
def a_killed_save_leaves_a_whole_file_or_none(case: Case) -> None:
    models = [model_of(case, seed) for seed in range(2)]
    folder = Path("killed")
    folder.mkdir(exist_ok=True)
    path = folder / "model.safetensors"
    if case.draw.happens(0.5):
        coterie.save(models[0], path, overwrite=True)
    existed = path.exists()

    def save_again_and_again() -> None:
        for _ in range(1000):
            coterie.save(models[1], path, overwrite=True)

    in_child(save_again_and_again, kill_after=float(case.draw.rng.uniform(0.0, 0.02)))
    require(path.exists() or not existed, "the file that was there before is gone")
    if path.exists():
        loaded = attempt(coterie.load, path)
        centers = loaded.cluster_centers_
        require(any(np.array_equal(centers, each.cluster_centers_) for each in models), "the file is of neither model")
        path.unlink()


@law(["save"], weight=6, hypothesis=False)
def a_full_disk_leaves_the_old_file(case: Case) -> None:
    """A limit on the size of files stands for a full disk."""
    models = [model_of(case, seed) for seed in range(2)]
    folder = Path(f"full-{case.draw.integer(0, 10**9)}")
    folder.mkdir(exist_ok=True)
    path = folder / "model.safetensors"
    sizes = []
    for model in reversed(models):
        coterie.save(model, path, overwrite=True)
        sizes.append(path.stat().st_size)
    before = path.read_bytes()
    limit = case.draw.integer(0, min(sizes) - 1)

    def save_to_full_disk() -> None:
        fill_disk(limit)
        try:
            coterie.save(models[1], path, overwrite=True)
        except OSError:
            return
        raise LawBroken("saving to a full disk raised nothing")

    require(in_child(save_to_full_disk) == 0, "saving to a full disk did not raise an OSError")
    require(path.read_bytes() == before, "saving to a full disk changed the old file")
    require(os.listdir(folder) == [path.name], f"left on the full disk: {os.listdir(folder)}")


RESUMABLE = ("KMeans", "GaussianMixture", "Mixture", "MiniBatchKMeans", "SphericalKMeans", "FuzzyCMeans")


@law(RESUMABLE, weight=2, hypothesis=False)
def a_killed_fit_resumes_to_the_same_bits(case: Case) -> None:
    n = case.draw.integer(40, 150)
    X = np.abs(tables.benign(case.draw, n, 3))
    number = {"n_components": 3} if "Mixture" in case.subject else {"n_clusters": 5}
    options: dict[str, Any] = {**number, "random_state": 0, "engine": "serial", "max_iter": 30}
    path = Path(f"checkpoint-{case.draw.integer(0, 10**9)}")
    case.note(f"{case.subject}(**{options})")
    estimator = getattr(coterie, case.subject)
    whole = fit(estimator(**options), X)

    def fit_with_checkpoints() -> None:
        checkpoint_file.MIN_INTERVAL = checkpoint_file.INTERVAL_FACTOR = 0.0  # a state after every iteration
        estimator(**options, checkpoint=path).fit(X)

    in_child(fit_with_checkpoints, kill_after=float(case.draw.rng.uniform(0.0, 0.05)))
    resumed = fit(estimator(**options, checkpoint=path), X)
    require_same_results(resumed, whole, "resumed fit")
    require(not list(Path().glob(f"{path}*")), f"left of the checkpoint: {list(Path().glob(f'{path}*'))}")
