"""An interrupted fit resumes from its checkpoint with identical results."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import coterie
from core.left_over import left_over
from coterie.errors import CheckpointWarning, FitInterruptedWarning
from coterie.persistence import checkpoint_file
from coterie.persistence.checkpoint_file import CheckpointFile
from coterie.selection import stability, sweep
from many_parts import many_parts
from persistence.fitted import X
from persistence.interrupted import CASES, MIXED, ROUGH, CutShortError, cut_after, cut_short, results
from persistence.test_round_trip import same


@pytest.mark.filterwarnings(ROUGH)
@pytest.mark.parametrize("name", CASES)
def test_a_fit_in_pieces_is_the_whole_fit_to_the_last_bit(name, tmp_path, always):
    model, rows = CASES[name]
    whole, path, pieces = clone(model), tmp_path / "fit.checkpoint", 0
    has_long_search = "n_clusters" in model.get_params() and model.get_params().get("search") == "thorough"
    calls = 40 if has_long_search else 2
    while True:
        part = clone(model).set_params(checkpoint=path, callback=cut_after(calls))
        try:
            part.fit(rows)
            break
        except CutShortError:
            pieces += 1
            if pieces == 1 and model.random_state is None:  # the fit resumes with its initial random generator
                began = CheckpointFile(path, part, *part._open_rows(rows, None, True)[:2]).initial_generator
                whole.set_params(random_state=began)
    assert pieces >= (1 if name == "Mixture auto" else 2)
    assert list(tmp_path.iterdir()) == []
    assert same(results(part), results(whole.fit(rows)))


def test_a_fit_interrupted_after_a_search_resumes_to_the_last_bit(tmp_path, always):
    """The search is repeated with the same random numbers, and the fit to all rows resumes."""
    rows, seen = np.random.default_rng(1).normal(size=(14_000, 4)), []
    model = coterie.KMedians(5, random_state=0, tol=1e-8)
    whole = clone(model).set_params(callback=seen.append).fit(rows)
    cut_short(model, rows, tmp_path / "c", calls=len(seen) - 1)
    assert same(results(clone(model).set_params(checkpoint=tmp_path / "c").fit(rows)), results(whole))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork to kill")
def test_a_fit_that_is_killed_repeatedly_gives_the_same_result(tmp_path):
    program = Path(__file__).with_name("killed.py")
    done = subprocess.run([sys.executable, program, tmp_path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == 4
    assert [line for line in lines if line[2] != "True"] == []
    assert sum(int(line[1]) for line in lines) >= 4


def test_other_threads_and_engines_can_resume(tmp_path, always, monkeypatch):
    model, rows = CASES["KMeans"][0], np.random.default_rng(1).normal(size=(1500, 3))
    many_parts(monkeypatch, rows)
    cut_short(model, rows, tmp_path / "c")
    again = clone(model).set_params(checkpoint=tmp_path / "c", n_jobs=3).fit(rows)
    assert same(results(again), results(clone(model).set_params(n_jobs=1).fit(rows)))


def test_fits_of_dask_rows_resume(tmp_path, always):
    da = pytest.importorskip("dask.array")
    rows, model = da.from_array(MIXED, chunks=(50, 3)), CASES["KMeans"][0]
    cut_short(model, rows, tmp_path / "c")
    again = clone(model).set_params(checkpoint=tmp_path / "c").fit(rows)
    whole = clone(model).fit(rows)
    assert again.inertia_ == whole.inertia_
    np.testing.assert_array_equal(np.asarray(again.labels_), np.asarray(whole.labels_))


# the file comes and goes


def test_ctrl_c_keeps_the_file_and_the_result(tmp_path, always):
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


def test_nothing_is_written_before_the_interval_has_passed(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_file, "MIN_INTERVAL", np.inf)
    monkeypatch.setattr(checkpoint_file, "write_whole", lambda *args, **options: pytest.fail("it wrote"))
    coterie.KMeans(3, checkpoint=tmp_path / "c", random_state=0).fit(X)
    assert list(tmp_path.iterdir()) == []


def test_states_are_written_seldom_enough_to_cost_next_to_nothing(tmp_path, monkeypatch):
    model, rows = CASES["KMeans"]
    source, engine, _ = model._open_rows(rows, None, True)
    time, written = [0.0], []
    file = CheckpointFile(tmp_path / "c", model, source, engine, clock=lambda: time[0])

    def slow(path, data, overwrite):
        written.append(time[0])
        time[0] += 0.2

    monkeypatch.setattr(checkpoint_file, "write_whole", slow)
    while time[0] < 100:
        time[0] += 0.01
        file.write("end", lambda: None)
    assert 1.0 <= written[0] < 1.02
    assert 0.2 * len(written) / 100 < 0.03


def test_what_a_killed_write_left_is_removed_in_the_end(tmp_path, always):
    model, rows = CASES["KMeans"]
    left_over(tmp_path / "c").write_bytes(b"half of a st")
    (tmp_path / ".other.0123456789abcdef.part").write_bytes(b"not ours")
    clone(model).set_params(checkpoint=tmp_path / "c").fit(rows)
    assert [path.name for path in tmp_path.iterdir()] == [".other.0123456789abcdef.part"]


def test_a_full_disk_does_not_stop_the_fit(tmp_path, always, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint_file, "write_whole", full)
    model, rows = CASES["KMeans"]
    with pytest.warns(CheckpointWarning, match="No space left") as record:
        found = clone(model).set_params(checkpoint=tmp_path / "c").fit(rows)
    assert len(record) == 1
    assert same(results(found), results(clone(model).fit(rows)))


# what else knows of the option


def test_model_files_do_not_contain_the_checkpoint_option(tmp_path):
    model = coterie.KMeans(3, random_state=0, checkpoint=tmp_path / "c").fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        coterie.save(model, tmp_path / "m.safetensors")
    assert coterie.load(tmp_path / "m.safetensors").checkpoint is None
    assert clone(model).checkpoint == tmp_path / "c"


def test_many_fits_share_no_file(tmp_path, always):
    model = coterie.KMeans(random_state=0, checkpoint=tmp_path / "c")
    plain = coterie.KMeans(random_state=0)
    assert sweep(model, X, [2, 3, 4]).objectives.tolist() == sweep(plain, X, [2, 3, 4]).objectives.tolist()
    stability(model, X, [2, 3], n_resamples=3, random_state=0)
    assert list(tmp_path.iterdir()) == []
