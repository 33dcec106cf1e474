"""The available memory."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from coterie import machine


@pytest.fixture
def group(tmp_path, monkeypatch):
    """A control group of 1000 bytes, 700 of which are in use."""
    monkeypatch.setattr(machine, "GROUPS", ((str(tmp_path), "memory.max", "memory.current"),))
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    return tmp_path


def test_a_control_group_allows_what_it_does_not_use(group):
    assert machine.free_memory() == 300


def test_the_file_cache_counts_as_free_memory(group):
    (group / "memory.stat").write_text("anon 100\ninactive_anon 7\ninactive_file 550\nactive_file 50\n")
    assert machine.free_memory() == 850


def test_a_group_without_a_limit_leaves_the_machine_its_own(group):
    (group / "memory.max").write_text("max\n")
    assert machine.free_memory() > 1000


def test_the_limit_of_the_group_of_this_process_counts(tmp_path, monkeypatch):
    group = tmp_path / "system" / "job"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("3000")
    (group / "memory.current").write_text("1000")
    (tmp_path / "own").write_text("4:cpu,memory:/system/job\n3:pids:/elsewhere\n")
    monkeypatch.setattr(machine, "GROUPS", ((str(tmp_path), "memory.max", "memory.current"),))
    monkeypatch.setattr(machine, "OWN_GROUPS", tmp_path / "own")
    assert machine.free_memory() == 2000


def test_free_memory_of_windows(monkeypatch):
    def fill(pointer):
        pointer._obj.free = 5000
        return 1

    kernel32 = SimpleNamespace(GlobalMemoryStatusEx=fill)
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel32), raising=False)
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.delattr(os, "sysconf_names")
    assert machine.free_memory() == 5000


LIMITED = """
import resource, sys
from coterie import machine
kind = getattr(resource, sys.argv[1])
before = machine.free_memory()
resource.setrlimit(kind, (int(sys.argv[2]), resource.RLIM_INFINITY))
print(before, machine.free_memory())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_a_resource_limit_counts_with_what_the_process_uses(kind):
    limit = 4_000_000_000
    run = subprocess.run([sys.executable, "-c", LIMITED, kind, str(limit)], capture_output=True, text=True, check=True)
    before, free = map(int, run.stdout.split())
    assert 0 < free < limit
    assert free <= before
