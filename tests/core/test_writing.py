"""Files are written atomically, keep their permissions, and leave no temporary files."""

import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import coterie
from core.left_over import ended_process, left_over
from coterie.core import writing
from coterie.datasets import write_demo
from coterie.errors import ParameterError
from coterie.jobs.output_files import OutputFiles, check_outputs
from coterie.persistence.checkpoint_file import CheckpointFile

X = np.random.default_rng(0).normal(size=(30, 2))
TRACE = coterie.KMeans(2, random_state=0).fit_trace(X)

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no modes, and no links without a privilege")


def save_model(path):
    coterie.save(TRACE.model, path, overwrite=True)


def save_checkpoint(path):
    class Saved(CheckpointFile):
        def __init__(self, path):
            self.path, self.fingerprint, self.states, self.initial_generator = path, {}, {}, None
            self.failed = False

    Saved(path)._save()


def save_outputs(path):
    with OutputFiles(force=True) as files:
        files.write(path, lambda part: part.write_text("new"))


WRITERS = {  # all that writes files: name, and what does it
    "x.safetensors": save_model,
    "checkpoint": save_checkpoint,
    "x.html": lambda path: TRACE.save(path, overwrite=True),
    "x.csv": lambda path: write_demo("penguins", path, overwrite=True),
    "out.csv": save_outputs,
}
everything = pytest.mark.parametrize("name", WRITERS)


@posix
@everything
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, name, mode):
    path = tmp_path / name
    path.write_text("old")
    path.chmod(mode)
    WRITERS[name](path)
    assert path.read_bytes() != b"old"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
def test_nobody_can_read_the_temporary_file_of_a_private_one(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("old")
    path.chmod(0o600)
    with OutputFiles(force=True) as files:
        files.write(path, lambda part: part.write_text(oct(stat.S_IMODE(part.stat().st_mode))))
    assert path.read_text() == "0o600"


@posix
@everything
@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("dangling", [True, False])
def test_a_symbolic_link_stays_and_its_target_is_written(tmp_path, name, relative, dangling):
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / name, tmp_path / name
    if not dangling:
        target.write_text("old")
    link.symlink_to(Path("elsewhere") / name if relative else target)
    WRITERS[name](link)
    assert link.is_symlink()
    assert target.stat().st_size > 3 or target.read_text() == "new"
    assert os.listdir(tmp_path / "elsewhere") == [name]
    assert sorted(os.listdir(tmp_path)) == sorted(["elsewhere", name])


@posix
@pytest.mark.parametrize(
    "check",
    [
        lambda path: writing.check_path(path, overwrite=True),
        lambda path: check_outputs(Path("table.csv"), force=True, output=path),
    ],
    ids=["library", "command line"],
)
def test_a_link_into_a_folder_that_does_not_exist_is_rejected_before_any_work(tmp_path, check):
    """A dangling link is written through, so the folder that must exist is that of its target."""
    link, missing = tmp_path / "out.csv", tmp_path / "missing"
    link.symlink_to(missing / "out.csv")
    with pytest.raises((FileNotFoundError, ParameterError), match=f"folder.*{re.escape(str(missing))}"):
        check(link)
    assert os.listdir(tmp_path) == ["out.csv"]


@posix
def test_a_dangling_link_into_an_existing_folder_may_be_written_through(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "model.safetensors"
    link.symlink_to(tmp_path / "elsewhere" / "model.safetensors")
    writing.check_path(link, overwrite=False)


@posix
@everything
def test_a_device_or_a_pipe_is_not_replaced(tmp_path, name):
    os.mkfifo(tmp_path / name)
    if name == "out.csv":
        with pytest.raises(ParameterError, match="not a regular file"):
            check_outputs(Path("table.csv"), force=True, output=tmp_path / name)
    else:
        with pytest.raises(ParameterError, match="not a regular file"):
            WRITERS[name](tmp_path / name)
    assert stat.S_ISFIFO((tmp_path / name).stat().st_mode)


@everything
def test_names_as_long_as_the_file_system_allows_work(tmp_path, name):
    suffix = Path(name).suffix
    path = tmp_path / ("é" * ((255 - len(suffix)) // 2) + suffix)
    WRITERS[name](path)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@everything
def test_what_killed_runs_left_is_removed_by_the_next(tmp_path, name):
    temporary = left_over(tmp_path / name)
    temporary.write_text("half")
    WRITERS[name](tmp_path / name)
    assert os.listdir(tmp_path) == [name]


def test_temporary_files_that_may_be_in_use_stay(tmp_path):
    """Files of a running process, of another machine within a day, and all other files."""
    mine = writing.temporary_name(tmp_path / "x.csv", "part")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as running:
        theirs = mine.with_name(mine.name.replace(f"-{os.getpid()}-", f"-{running.pid}-"))
        other_machine = tmp_path / f".coterie-{'0' * 12}-{ended_process()}-{'0' * 12}.part.csv"
        unknown = [tmp_path / name for name in (".coterie-notes", ".x.part", "coterie.part", ".coterie-0-1-0.part")]
        kept = [mine, theirs, other_machine, *unknown]
        for path in kept:
            path.write_text("in use")
        writing.remove_left_over(tmp_path)
        assert sorted(tmp_path.iterdir()) == sorted(kept)
        running.communicate(b"\n")


def test_a_temporary_file_of_another_machine_is_removed_after_a_day(tmp_path):
    path = tmp_path / f".coterie-{'0' * 12}-1-{'0' * 12}.part"
    path.write_text("half")
    before = time.time() - writing.DAY - 60
    os.utime(path, (before, before))
    writing.remove_left_over(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_temporary_names_never_repeat_and_tell_machines_apart(tmp_path, monkeypatch):
    names = {writing.temporary_name(tmp_path / "x.HTML", "part").name for _ in range(1000)}
    assert len(names) == 1000
    assert all(writing.TEMPORARY.fullmatch(name) for name in names)
    writing._machine.cache_clear()
    monkeypatch.setattr(writing.socket, "gethostname", lambda: "another")
    try:
        other = writing.temporary_name(tmp_path / "x.HTML", "part").name
    finally:
        writing._machine.cache_clear()
    assert other.split("-")[1] not in {name.split("-")[1] for name in names}
