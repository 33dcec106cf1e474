import pytest

from report.pages import keep


@pytest.fixture(autouse=True)
def kept_reports(monkeypatch):
    """Jobs of these tests leave their reports behind."""
    keep(monkeypatch)
