import pytest

from coterie.persistence import checkpoint, container


@pytest.fixture
def always(monkeypatch):
    """A state is written after every iteration; the disk may take its time."""
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    monkeypatch.setattr(checkpoint, "PATIENCE", 0.0)
    monkeypatch.setattr(container.os, "fsync", lambda handle: None)
