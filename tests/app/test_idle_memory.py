"""Freed memory is returned once the server is idle, and not while it works."""

import threading
import time

import pytest

from coterie.app import idle_memory


@pytest.fixture
def released(monkeypatch):
    """The times at which memory was returned."""
    calls: list[float] = []
    seen = threading.Event()

    def release() -> None:
        calls.append(time.monotonic())
        seen.set()

    monkeypatch.setattr(idle_memory, "release_memory", release)
    return calls, seen


def test_memory_is_returned_after_the_last_of_many_requests_and_not_after_each(released):
    calls, seen = released
    memory = idle_memory.IdleMemory(seconds=0.2)
    for _ in range(40):
        memory.used()
        last = time.monotonic()
        time.sleep(0.01)
    seen.clear()
    assert seen.wait(20)
    memory.close()
    assert calls[-1] >= last
    assert len(calls) < 40
