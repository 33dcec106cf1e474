import pytest

from coterie.persistence import checkpoint_file, container


@pytest.fixture
def always(monkeypatch):
    """Write a state after every iteration, without waiting for the disk."""
    monkeypatch.setattr(checkpoint_file, "MIN_INTERVAL", 0.0)
    monkeypatch.setattr(checkpoint_file, "INTERVAL_FACTOR", 0.0)
    monkeypatch.setattr(container.os, "fsync", lambda handle: None)
