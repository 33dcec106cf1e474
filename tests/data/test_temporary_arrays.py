"""Arrays on disk: like any other array while they are there, and nothing is left of them afterwards."""

import errno
import mmap
import os
import pickle
import resource
import signal
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import joblib
import numpy as np
import pytest

from coterie import machine
from coterie.data import as_source, temporary_arrays
from coterie.engines.local import Serial
from coterie.errors import InputError

LINUX = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads /proc")
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def on_disk(array):
    """Whether the numbers of an array are in a file."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array.obj if isinstance(array, memoryview) else array, mmap.mmap)


def mapped(folder):
    """How many files of a folder, named or not, this process has mapped."""
    return sum(str(folder) in line for line in Path("/proc/self/maps").read_text().splitlines())


@pytest.fixture
def no_memory(monkeypatch):
    monkeypatch.setattr(temporary_arrays, "SMALL", 0)
    monkeypatch.setattr(machine, "free_memory", lambda: 0)


# what an array on disk is


@pytest.mark.parametrize("shape", [(7,), (5, 3), (2, 3, 4), (0, 4), (4, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, bool])
def test_room_is_an_array_of_zeros_to_be_written_to(folder, shape, dtype):
    array = temporary_arrays.mapped_zeros(shape, dtype)
    assert array.shape == shape
    assert array.dtype == dtype
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert not array.any()
    assert on_disk(array) == (0 not in shape)
    array[:] = 1
    assert array.all()


def test_room_can_be_sent_to_another_process(folder):
    array = temporary_arrays.mapped_zeros((30, 4), np.float64)
    array[:] = np.arange(120.0).reshape(30, 4)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(array)), array)
    sums = joblib.Parallel(n_jobs=2, max_nbytes=1)(joblib.delayed(np.sum)(part) for part in (array[:10], array[10:]))
    assert sum(sums) == array.sum()


def test_space_is_in_memory_where_it_leaves_most_of_that_free(folder, monkeypatch):
    monkeypatch.setattr(temporary_arrays, "SMALL", 100)
    monkeypatch.setattr(machine, "free_memory", lambda: 8000)
    assert not on_disk(temporary_arrays.empty((249,), np.float64))
    assert on_disk(temporary_arrays.empty((250,), np.float64))
    monkeypatch.setattr(machine, "free_memory", lambda: 0)
    assert not on_disk(temporary_arrays.empty((12,), np.float64))
    assert on_disk(temporary_arrays.empty((13,), np.float64))


# nothing is left


@LINUX
def test_a_temporary_file_has_no_name_and_is_deleted_with_its_array(folder):
    array = temporary_arrays.mapped_zeros((1000, 8), np.float64)
    part = array[3:5]
    assert os.listdir(folder) == []
    assert mapped(folder) == 1
    del array
    assert mapped(folder) == 1
    del part
    assert mapped(folder) == 0
    assert not [at for at in os.listdir("/proc/self/fd") if _target(at).startswith(str(folder))]


def _target(descriptor):
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""


@LINUX
def test_a_process_that_is_killed_leaves_nothing(folder):
    code = (
        "import numpy as np, sys; from coterie.data import temporary_arrays\n"
        "array = temporary_arrays.mapped_zeros((1 << 20,), np.float64); array[:] = 1\n"
        "print('there', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout.readline() == "there\n"
        assert str(folder) in Path(f"/proc/{child.pid}/maps").read_text()
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert os.listdir(folder) == []


# where, and what if there is too little of it


def test_temporary_files_are_in_tmpdir_or_the_folder_for_large_files(tmp_path, monkeypatch):
    monkeypatch.setattr(temporary_arrays, "LARGE", tmp_path / "large")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert temporary_arrays.folder() == tmp_path
    monkeypatch.delenv("TMPDIR")
    assert temporary_arrays.folder() not in (tmp_path, tmp_path / "large")
    (tmp_path / "large").mkdir()
    assert temporary_arrays.folder() == tmp_path / "large"


def test_a_tmpdir_that_is_not_a_folder_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"TMPDIR='.*nowhere' is not a folder"):
        temporary_arrays.mapped_zeros((3,), np.float64)


WORDS = r"needs 8 GB on disk, but only 1\.5 GB are free in .*: set TMPDIR to a folder with more free space"


def test_a_disk_that_is_too_small_is_rejected_before_anything_is_written(folder, monkeypatch):
    monkeypatch.setattr(temporary_arrays.shutil, "disk_usage", lambda where: Usage(0, 0, 1_500_000_000))
    with pytest.raises(InputError, match=WORDS):
        temporary_arrays.mapped_zeros((10**9,), np.float64)


def test_a_disk_that_fills_up_meanwhile_is_rejected_in_the_same_words(folder, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(temporary_arrays.shutil, "disk_usage", lambda where: Usage(0, 0, 9_000_000_000))
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(InputError, match=r"needs 8 GB on disk, but only 9 GB are free"):
        temporary_arrays.mapped_zeros((10**9,), np.float64)


def test_a_limit_on_the_size_of_files_is_an_input_error(folder):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(InputError, match="set TMPDIR"):
            temporary_arrays.mapped_zeros((1 << 16,), np.float64)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("missing", [AttributeError(), OSError(errno.EOPNOTSUPP, "not supported")])
def test_file_systems_that_promise_no_room_are_used_all_the_same(folder, monkeypatch, missing):
    def fail(*_):
        raise missing

    monkeypatch.setattr(os, "posix_fallocate", fail, raising=False)
    array = temporary_arrays.mapped_zeros((100,), np.float64)
    array[:] = 2
    assert array.sum() == 200


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="nothing can be set aside")
def test_room_is_set_aside_on_the_disk(folder):
    with temporary_arrays.temporary_file(1 << 20) as file:
        assert os.fstat(file.fileno()).st_blocks * 512 >= 1 << 20


# sources


def test_copies_of_rows_are_on_disk_where_memory_is_short(folder, no_memory):
    X = np.random.default_rng(0).normal(size=(500, 6))
    source = as_source(X)
    assert source.X is X
    twice, some = source.map_rows(lambda rows: 2 * rows, Serial()), source.subset([3, 1, 1])
    assert on_disk(twice.X)
    assert on_disk(some.X)
    np.testing.assert_array_equal(twice.X, 2 * X)
    np.testing.assert_array_equal(some.X, X[[3, 1, 1]])


@pytest.mark.parametrize(
    "kind", [lambda X: X.astype(np.int16), np.asfortranarray, lambda X: X.astype(">f4"), lambda X: X[:, ::2]]
)
def test_numbers_that_must_be_converted_are_on_disk_where_memory_is_short(folder, no_memory, kind):
    X = kind(np.round(100 * np.random.default_rng(0).normal(size=(70_000, 4))))
    rows = as_source(X).X
    assert on_disk(rows)
    assert rows.dtype == (np.float32 if X.dtype.kind == "f" and X.dtype.itemsize == 4 else np.float64)
    assert rows.flags.c_contiguous
    np.testing.assert_array_equal(rows, X)
