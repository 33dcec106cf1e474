from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import coterie
from coterie.core.errors import CheckpointError, CheckpointWarning, FitInterruptedWarning, ParameterError
from coterie.files import checkpoint, container, kinds
from coterie.files.checkpoint import CheckpointFile
from coterie.selection import stability, sweep
from files.fitted import COUNTS, HOLES, SERIES, SPARSE, X
from files.test_round_trip import same

MIXED = np.random.default_rng(0).normal(size=(130, 3))  # which nothing settles on at once
K = {"n_clusters": 6, "random_state": 0, "n_init": 2}
C = {"n_components": 3, "random_state": 0, "n_init": 2, "max_iter": 8}
ROUGH = "ignore:.*did not converge"

CASES = {  # name: estimator, rows
    "KMeans": (coterie.KMeans(**K), MIXED),
    "KMeans float32": (coterie.KMeans(**K, n_jobs=1), MIXED.astype(np.float32)),
    "KMeans sparse": (coterie.KMeans(**K), SPARSE),
    "KMeans holes": (coterie.KMeans(**K, missing="ignore"), HOLES),
    "KMeans scaled": (coterie.KMeans(**K, metric_weights=[1, 2, 0], frozen_centers=X[:1]), MIXED),
    "KMeans chance": (coterie.KMeans(4, n_init=2, random_state=None), MIXED),
    "KMeans search": (coterie.KMeans(**K, search="fast", search_budget=300), MIXED),
    "KMeans global": (coterie.KMeans(**K, search="global", search_budget=600), MIXED),
    "SphericalKMeans": (coterie.SphericalKMeans(**K), MIXED),
    "KMedians": (coterie.KMedians(**K), MIXED),
    "KMedians l2": (coterie.KMedians(**K, metric="l2"), MIXED),
    "FuzzyCMeans": (coterie.FuzzyCMeans(**K, max_iter=8), MIXED),
    "BalancedKMeans": (coterie.BalancedKMeans(**K, must_link=[(0, 1)]), MIXED),
    "TimeSeriesKMeans": (coterie.TimeSeriesKMeans(3, random_state=0, n_init=2), SERIES),
    "GaussianMixture": (coterie.GaussianMixture(**C, init_params="random"), MIXED),
    "GaussianMixture EVE": (coterie.GaussianMixture(**C, covariance_type="EVE", init_params="random"), MIXED),
    "GaussianMixture hard": (coterie.GaussianMixture(**C, e_step="hard", init_params="random"), MIXED),
    "GaussianMixture stochastic": (coterie.GaussianMixture(**C, e_step="stochastic"), MIXED),
    "GaussianMixture accelerated": (coterie.GaussianMixture(**C, accelerate=True, init_params="random"), MIXED),
    "BayesianGaussianMixture": (coterie.BayesianGaussianMixture(**C), MIXED),
    "Mixture": (coterie.Mixture("poisson", **C, init_params="random"), COUNTS),
    "Mixture sparse": (coterie.Mixture("multinomial", **C, init_params="random"), SPARSE),
    "Mixture student": (coterie.Mixture("student_t", **C), MIXED),
    "Mixture auto": (coterie.Mixture("poisson", "auto", random_state=0), COUNTS),
    "MiniBatchKMeans": (coterie.MiniBatchKMeans(4, batch_size=16, random_state=0), MIXED),
}


class CutShortError(Exception):
    pass


@pytest.fixture
def always(monkeypatch):
    """A state is written after every iteration; the disk may take its time."""
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    monkeypatch.setattr(checkpoint, "PATIENCE", 0.0)
    monkeypatch.setattr(container.os, "fsync", lambda handle: None)


def cut_after(calls):
    left = [calls]

    def callback(progress):
        left[0] -= 1
        if left[0] < 0:
            raise CutShortError

    return callback


def cut_short(model, rows, path, calls=3):
    """A checkpoint of that model, after so many iterations."""
    with pytest.raises(CutShortError):
        clone(model).set_params(checkpoint=path, callback=cut_after(calls)).fit(rows)
    assert path.exists()


def results(model):
    return {name: value for name, value in vars(model).items() if name not in model.get_params()}


@pytest.mark.filterwarnings(ROUGH)
@pytest.mark.parametrize("name", CASES)
def test_a_fit_in_pieces_is_the_whole_fit_to_the_last_bit(name, tmp_path, always):
    model, rows = CASES[name]
    whole, path, pieces = clone(model), tmp_path / "fit.checkpoint", 0
    calls = 40 if model.get_params().get("search", "none") != "none" else 2
    while True:
        part = clone(model).set_params(checkpoint=path, callback=cut_after(calls))
        try:
            part.fit(rows)
            break
        except CutShortError:
            pieces += 1
            if pieces == 1 and model.random_state is None:  # the fit goes on with the chance it began with
                began = CheckpointFile(path, part, *part._given(rows, None, True)[:2]).began_with
                whole.set_params(random_state=began)
    assert pieces >= (1 if name == "Mixture auto" else 2)
    assert list(tmp_path.iterdir()) == []
    assert same(results(part), results(whole.fit(rows)))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork to kill")
def test_a_fit_that_is_killed_again_and_again_ends_as_one_that_never_was(tmp_path):
    program = Path(__file__).with_name("killed.py")
    done = subprocess.run([sys.executable, program, tmp_path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == 6
    assert [line for line in lines if line[2] != "True"] == []
    assert sum(int(line[1]) for line in lines) >= 6


def test_other_threads_and_engines_may_go_on(tmp_path, always):
    model, rows = CASES["KMeans"]
    cut_short(model, rows, tmp_path / "c")
    again = clone(model).set_params(checkpoint=tmp_path / "c", n_jobs=3).fit(rows)
    assert same(results(again), results(clone(model).fit(rows)))


def test_dask_rows_go_on(tmp_path, always):
    da = pytest.importorskip("dask.array")
    rows, model = da.from_array(MIXED, chunks=(50, 3)), CASES["KMeans"][0]
    cut_short(model, rows, tmp_path / "c")
    again = clone(model).set_params(checkpoint=tmp_path / "c").fit(rows)
    whole = clone(model).fit(rows)
    assert again.inertia_ == whole.inertia_
    np.testing.assert_array_equal(np.asarray(again.labels_), np.asarray(whole.labels_))


# the file comes and goes


def test_ctrl_c_keeps_the_file_and_what_there_is(tmp_path, always):
    model, rows = CASES["KMeans"]

    def watch(progress):
        if progress.run == 1 and progress.iteration == 1:
            raise KeyboardInterrupt

    with pytest.warns(FitInterruptedWarning):
        found = clone(model).set_params(checkpoint=tmp_path / "c", callback=watch).fit(rows)
    assert len(found.labels_) == len(rows)
    assert (tmp_path / "c").exists()
    again = clone(model).set_params(checkpoint=tmp_path / "c").fit(rows)
    assert same(results(again), results(clone(model).fit(rows)))
    assert not (tmp_path / "c").exists()


def test_a_stop_by_the_callback_keeps_the_file(tmp_path, always):
    for name in ("KMeans", "MiniBatchKMeans", "KMeans search"):
        model, rows = CASES[name]
        calls = []
        stop = clone(model).set_params(checkpoint=tmp_path / "c", callback=lambda p, c=calls: c.append(p) or len(c) > 4)
        stop.fit(rows)
        assert (tmp_path / "c").exists()
        again = clone(model).set_params(checkpoint=tmp_path / "c").fit(rows)
        assert same(results(again), results(clone(model).fit(rows)))
        assert not (tmp_path / "c").exists()


def test_nothing_is_written_before_it_is_time(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "INTERVAL", np.inf)
    monkeypatch.setattr(container, "write_whole", lambda *args, **options: pytest.fail("it wrote"))
    coterie.KMeans(3, checkpoint=tmp_path / "c", random_state=0).fit(X)
    assert list(tmp_path.iterdir()) == []


def test_states_are_written_seldom_enough_to_cost_next_to_nothing(tmp_path, monkeypatch):
    model, rows = CASES["KMeans"]
    source, engine, _ = model._given(rows, None, True)
    time, written = [0.0], []
    file = CheckpointFile(tmp_path / "c", model, source, engine, clock=lambda: time[0])

    def slow(path, data, overwrite):
        written.append(time[0])
        time[0] += 0.2

    monkeypatch.setattr(container, "write_whole", slow)
    while time[0] < 100:
        time[0] += 0.01
        file.write("end", lambda: None)
    assert 1.0 <= written[0] < 1.02
    assert 0.2 * len(written) / 100 < 0.03


def test_what_a_killed_write_left_is_removed_in_the_end(tmp_path, always):
    model, rows = CASES["KMeans"]
    (tmp_path / ".c.0123456789abcdef.part").write_bytes(b"half of a st")
    (tmp_path / ".other.0123456789abcdef.part").write_bytes(b"not ours")
    clone(model).set_params(checkpoint=tmp_path / "c").fit(rows)
    assert [path.name for path in tmp_path.iterdir()] == [".other.0123456789abcdef.part"]


def test_a_full_disk_ends_no_fit(tmp_path, always, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(container, "write_whole", full)
    model, rows = CASES["KMeans"]
    with pytest.warns(CheckpointWarning, match="No space left") as said:
        found = clone(model).set_params(checkpoint=tmp_path / "c").fit(rows)
    assert len(said) == 1
    assert same(results(found), results(clone(model).fit(rows)))


# what is refused


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"n_clusters": 5}, "n_clusters was 6 and is 5"),
        ({"tol": 1e-3}, "tol was 0.0001 and is 0.001"),
        ({"init": MIXED[:6]}, "init changed"),
        ({"random_state": 1}, "random_state was 0 and is 1"),
    ],
)
def test_other_options_are_refused(changes, words, tmp_path, always):
    model, rows = CASES["KMeans"]
    cut_short(model, rows, tmp_path / "c")
    with pytest.raises(CheckpointError, match=words) as said:
        clone(model).set_params(checkpoint=tmp_path / "c", **changes).fit(rows)
    assert "delete the file" in str(said.value)
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
def test_other_rows_are_refused(rows, weight, words, tmp_path, always):
    model, before = CASES["KMeans"]
    cut_short(model, before, tmp_path / "c")
    with pytest.raises(CheckpointError, match=words):
        clone(model).set_params(checkpoint=tmp_path / "c").fit(rows, sample_weight=weight)


def test_another_version_and_another_estimator_are_refused(tmp_path, always, monkeypatch):
    model, rows = CASES["KMeans"]
    cut_short(model, rows, tmp_path / "c")
    with pytest.raises(CheckpointError, match="estimator was KMeans and is SphericalKMeans"):
        coterie.SphericalKMeans(**K, checkpoint=tmp_path / "c").fit(rows)
    monkeypatch.setattr("coterie.files.fingerprint.__version__", "9.9")
    with pytest.raises(CheckpointError, match=r"coterie was .* and is 9\.9"):
        clone(model).set_params(checkpoint=tmp_path / "c").fit(rows)


def refusing(model, rows, path):
    with pytest.raises(CheckpointError, match=r"(?i)delete the file"):
        clone(model).set_params(checkpoint=path).fit(rows)


def test_damaged_files_are_refused(tmp_path, always):
    model, rows = CASES["GaussianMixture"]
    cut_short(model, rows, tmp_path / "c")
    whole = (tmp_path / "c").read_bytes()
    chance = np.random.default_rng(0)
    for length in (0, 5, 100, len(whole) // 2, len(whole) - 1):
        (tmp_path / "c").write_bytes(whole[:length])
        refusing(model, rows, tmp_path / "c")
    for place in chance.integers(8, len(whole), size=60):
        (tmp_path / "c").write_bytes(
            whole[:place] + bytes([whole[place] ^ (1 << chance.integers(8))]) + whole[place + 1 :]
        )
        refusing(model, rows, tmp_path / "c")
    for other in (b"\x80\x04" + whole[2:], b"PK\x03\x04" * 50, b"{}" * 40):
        (tmp_path / "c").write_bytes(other)
        refusing(model, rows, tmp_path / "c")


def test_a_model_file_is_no_checkpoint_and_the_other_way_round(tmp_path, always):
    model, rows = CASES["KMeans"]
    coterie.save(clone(model).fit(rows), tmp_path / "m.safetensors")
    refusing(model, rows, tmp_path / "m.safetensors")
    cut_short(model, rows, tmp_path / "c.safetensors")
    with pytest.raises(coterie.core.errors.ModelFileError, match="holds no model"):
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
        set_tensor("now.params", lambda centers: centers[:, :2].copy()),
        set_tensor("now.params", lambda centers: centers[:3].copy()),
        set_tensor("now.params", lambda centers: np.full_like(centers, np.nan)),
        set_tensor("now.params", lambda centers: centers.astype(np.int64)),
        set_tensor("now.history", lambda history: history[:0].copy()),
        set_tensor("now.history", lambda history: history * np.inf),
        set_content(*END, value={"tuple": []}),
        set_content(*END, value={"model": "KMeans", "options": {}, "state": {}}),
        set_content(*END, "record", value="os.system"),
        set_content(*END, "record", value="core.checkpoint.Batches"),
        set_content(*END, "fields", "run", value=-3),
        set_content(*END, "fields", value={"run": 1000, "now": None, "best": None, "notes": None}),
        set_content(*END, "fields", "now", "fields", "converged", value=7),
        set_content("states", "more", value=None),
        set_content("chance", value=None),
        set_content("states", value=[]),
        set_content("fingerprint", value=[]),
    ],
    "KMeans search": [
        set_tensor("home.5", lambda labels: labels + 1000),
        set_tensor("home.6", lambda values: values[:-1].copy()),
    ],
    "BalancedKMeans": [
        set_tensor("labels.0", lambda labels: labels + 100),
        set_tensor("labels.0", lambda labels: labels[:-1].copy()),
    ],
    "GaussianMixture accelerated": [
        set_content(*END, "fields", "notes", value=None),
        set_content(*END, "fields", "notes", value={"dict": [[0, {"tuple": [1, 2]}]]}),
        set_tensor("now.params.factor", lambda factor: factor[:, :2].copy()),
        set_tensor("now.params.means", lambda means: means * np.nan),
        set_tensor("trail.0", lambda vector: vector[:-1].copy()),
    ],
    "Mixture sparse": [set_tensor("now.params.parts.probability", lambda shares: shares[:, :2].copy())],
    "MiniBatchKMeans": [
        set_tensor("params", lambda centers: centers[:, :2].copy()),
        set_content("states", "batches", "fields", "stopping", value={"tuple": [1.0]}),
    ],
}


@pytest.mark.filterwarnings(ROUGH)
@pytest.mark.parametrize("name, which", [(name, i) for name, all_of in FORGERIES.items() for i in range(len(all_of))])
def test_forged_files_are_refused(name, which, tmp_path, always):
    model, rows = CASES[name]
    cut_short(model, rows, tmp_path / "c", calls=60 if "search" in name else 6)
    forged(tmp_path / "c", FORGERIES[name][which])
    with pytest.raises(CheckpointError):
        clone(model).set_params(checkpoint=tmp_path / "c").fit(rows)


@pytest.mark.parametrize("path, words", [(3, "path of a file; got 3"), ("", "is a folder"), ("no/such/c", "no folder")])
def test_places_that_cannot_be_are_refused(path, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match=words):
        coterie.KMeans(3, checkpoint=path).fit(X)


# what else knows of the option


def test_records_of_states_are_where_files_say():
    for tag in kinds.STATES - kinds.RECORDS:
        assert kinds.tag_of(kinds.record_or_object(tag)) == tag


def test_model_files_do_not_hold_it(tmp_path):
    model = coterie.KMeans(3, random_state=0, checkpoint=tmp_path / "c").fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        coterie.save(model, tmp_path / "m.safetensors")
    assert coterie.load(tmp_path / "m.safetensors").checkpoint is None
    assert clone(model).checkpoint == tmp_path / "c"


def test_many_fits_share_no_file(tmp_path, always):
    model = coterie.KMeans(random_state=0, checkpoint=tmp_path / "c")
    plain = coterie.KMeans(random_state=0)
    assert sweep(model, [2, 3, 4], X).objectives.tolist() == sweep(plain, [2, 3, 4], X).objectives.tolist()
    stability(model, X, [2, 3], n_resamples=3, random_state=0)
    assert list(tmp_path.iterdir()) == []
