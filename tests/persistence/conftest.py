import pytest

from coterie.persistence import checkpoint, container


@pytest.fixture
def always(monkeypatch):
    """A state is written after every iteration; the disk may take its time."""
    monkeypatch.setattr(checkpoint, "MIN_INTERVAL", 0.0)
    monkeypatch.setattr(checkpoint, "INTERVAL_FACTOR", 0.0)
    monkeypatch.setattr(container.os, "fsync", lambda handle: None)
