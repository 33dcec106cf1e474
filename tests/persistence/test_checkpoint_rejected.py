"""Checkpoints of another fit, damaged or forged ones are rejected, with a remedy."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import coterie
from coterie.errors import CheckpointError, ParameterError
from coterie.persistence import container
from persistence.fitted import X
from persistence.interrupted import CASES, MIXED, ROUGH, K, cut_short


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"n_clusters": 5}, "n_clusters was 6 and is 5"),
        ({"tol": 1e-3}, "tol was 0.0001 and is 0.001"),
        ({"init": MIXED[:6], "n_init": 1}, "init changed"),
        ({"random_state": 1}, "random_state was 0 and is 1"),
    ],
)
def test_other_options_are_rejected(changes, words, tmp_path, always):
    model, rows = CASES["KMeans"]
    cut_short(model, rows, tmp_path / "c")
    with pytest.raises(CheckpointError, match=words) as info:
        clone(model).set_params(checkpoint=tmp_path / "c", **changes).fit(rows)
    assert "delete the file" in str(info.value)
    assert (tmp_path / "c").exists()


@pytest.mark.parametrize(
    "rows, weight, words",
    [
        (MIXED[:-1], None, "X was 130 rows of 3 columns, float64 and is 129 rows"),
        (MIXED.astype(np.float32), None, "X was .*float64 and is .*float32"),
        (MIXED + (np.arange(390).reshape(130, 3) == 7) * 1e-12, None, "values of X, sample_weight and y changed"),
        (MIXED, np.ones(130), "values of X, sample_weight and y changed"),
    ],
)
def test_other_rows_are_rejected(rows, weight, words, tmp_path, always):
    model, before = CASES["KMeans"]
    cut_short(model, before, tmp_path / "c")
    with pytest.raises(CheckpointError, match=words):
        clone(model).set_params(checkpoint=tmp_path / "c").fit(rows, sample_weight=weight)


def test_another_version_and_another_estimator_are_rejected(tmp_path, always, monkeypatch):
    model, rows = CASES["KMeans"]
    cut_short(model, rows, tmp_path / "c")
    with pytest.raises(CheckpointError, match="estimator was KMeans and is SphericalKMeans"):
        coterie.SphericalKMeans(**K, checkpoint=tmp_path / "c").fit(rows)
    monkeypatch.setattr("coterie.persistence.checkpoint_file.__version__", "9.9")
    with pytest.raises(CheckpointError, match=r"coterie was .* and is 9\.9"):
        clone(model).set_params(checkpoint=tmp_path / "c").fit(rows)


def check_rejected(model, rows, path):
    with pytest.raises(CheckpointError, match=r"(?i)delete the file"):
        clone(model).set_params(checkpoint=path).fit(rows)


def test_damaged_files_are_rejected(tmp_path, always):
    model, rows = CASES["GaussianMixture"]
    cut_short(model, rows, tmp_path / "c")
    whole = (tmp_path / "c").read_bytes()
    rng = np.random.default_rng(0)
    for length in (0, 5, 100, len(whole) // 2, len(whole) - 1):
        (tmp_path / "c").write_bytes(whole[:length])
        check_rejected(model, rows, tmp_path / "c")
    for place in rng.integers(8, len(whole), size=60):
        (tmp_path / "c").write_bytes(
            whole[:place] + bytes([whole[place] ^ (1 << rng.integers(8))]) + whole[place + 1 :]
        )
        check_rejected(model, rows, tmp_path / "c")
    for other in (b"\x80\x04" + whole[2:], b"PK\x03\x04" * 50, b"{}" * 40):
        (tmp_path / "c").write_bytes(other)
        check_rejected(model, rows, tmp_path / "c")


def test_a_model_file_is_no_checkpoint_and_the_other_way_round(tmp_path, always):
    model, rows = CASES["KMeans"]
    coterie.save(clone(model).fit(rows), tmp_path / "m.safetensors")
    check_rejected(model, rows, tmp_path / "m.safetensors")
    cut_short(model, rows, tmp_path / "c.safetensors")
    with pytest.raises(coterie.errors.ModelFileError, match="not a model file written by coterie"):
        coterie.load(tmp_path / "c.safetensors")


def forged(path, change):
    """The file, with its content changed and all checksums right."""
    content, tensors = container.read(path, "checkpoint")
    change(content, tensors)
    path.write_bytes(container.to_bytes(content, tensors, "checkpoint"))


def set_tensor(ending, make):
    def change(content, tensors):
        name = next(name for name in tensors if name.endswith(ending))
        tensors[name] = make(tensors[name])

    return change


def set_content(*keys, value):
    def change(content, tensors):
        node = content
        for key in keys[:-1]:
            node = node[key]
        node[keys[-1]] = value

    return change


END = ("states", "end")
FORGERIES = {
    "KMeans": [
        set_tensor("current.params", lambda centers: centers[:, :2].copy()),
        set_tensor("current.params", lambda centers: centers[:3].copy()),
        set_tensor("current.params", lambda centers: np.full_like(centers, np.nan)),
        set_tensor("current.params", lambda centers: centers.astype(np.int64)),
        set_tensor("current.history", lambda history: history[:0].copy()),
        set_tensor("current.history", lambda history: history * np.inf),
        set_content(*END, value={"tuple": []}),
        set_content(*END, value={"model": "KMeans", "options": {}, "state": {}}),
        set_content(*END, "record", value="os.system"),
        set_content(*END, "record", value="checkpoint.Batches"),
        set_content(*END, "fields", "run", value=-3),
        set_content(*END, "fields", value={"run": 1000, "current": None, "best": None, "records": None}),
        set_content(*END, "fields", "current", "fields", "converged", value=7),
        set_content("states", "more", value=None),
        set_content("rng", value=None),
        set_content("states", value=[]),
        set_content("fingerprint", value=[]),
    ],
    "KMeans search": [
        set_tensor("search.params", lambda centers: centers * np.nan),
        set_tensor("search.params", lambda centers: centers[:, :, :-1].copy()),
        set_tensor("search.params", lambda centers: centers.astype(np.float32)),
        set_tensor("search.objective", lambda objective: np.append(objective, 1.0)),
        set_content("states", "search", "fields", "work", value="much"),
        set_content("states", "search", "fields", "allowed", value=-1.0),
    ],
    "BalancedKMeans": [
        set_tensor("labels.0", lambda labels: labels + 100),
        set_tensor("labels.0", lambda labels: labels[:-1].copy()),
    ],
    "GaussianMixture accelerated": [
        set_content(*END, "fields", "records", value=None),
        set_content(*END, "fields", "records", value={"dict": [[0, {"tuple": [1, 2]}]]}),
        set_tensor("current.params.factor", lambda factor: factor[:, :2].copy()),
        set_tensor("current.params.means", lambda means: means * np.nan),
        set_content(*END, "fields", "records", "dict", 0, 1, "tuple", 5, value={"tuple": ["an event"]}),
        set_tensor("trail.0", lambda vector: vector[:-1].copy()),
    ],
    "GaussianMixture": [
        set_tensor("current.params.weights", np.negative),
        set_tensor("current.params.weights", np.zeros_like),
        set_tensor("current.params.means", lambda means: means * 1e300),
        set_tensor("current.params.factor", lambda factor: factor * 1e300),
    ],
    "Mixture student": [
        set_tensor("current.params.parts.dof", lambda dof: np.array(dof[0])),
        set_tensor("current.params.weights", np.negative),
    ],
    "Mixture sparse": [set_tensor("current.params.parts.probability", lambda shares: shares[:, :2].copy())],
    "MiniBatchKMeans": [
        set_tensor("params", lambda centers: centers[:, :2].copy()),
        set_content("states", "batches", "fields", "stopping", value={"tuple": [1.0]}),
    ],
}


@pytest.mark.filterwarnings(ROUGH)
@pytest.mark.parametrize("name, which", [(name, i) for name, all_of in FORGERIES.items() for i in range(len(all_of))])
def test_forged_files_are_rejected(name, which, tmp_path, always):
    model, rows = CASES[name]
    cut_short(model, rows, tmp_path / "c", calls=60 if "search" in name else 6)
    forged(tmp_path / "c", FORGERIES[name][which])
    with pytest.raises(CheckpointError):
        clone(model).set_params(checkpoint=tmp_path / "c").fit(rows)


@pytest.mark.parametrize(
    "path, words", [(3, "path of a file; got 3"), ("", "is a folder"), ("no/such/c", "does not exist")]
)
def test_invalid_paths_are_rejected(path, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match=words):
        coterie.KMeans(3, checkpoint=path).fit(X)
