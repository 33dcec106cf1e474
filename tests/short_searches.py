"""Reports with fewer resamples, for tests that are not about the quality of a result.

Searches run as users run them. `tests/conftest.py` applies this to all tests, except of those with the marker
`whole_search` or `slow`.
"""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from coterie.report.build import reliability

RESAMPLES = {"RESAMPLES": 5, "FEW_RESAMPLES": 4}


@contextmanager
def short_searches():
    """A context in which reports have few resamples."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in RESAMPLES.items():
            patch.setattr(reliability, name, value)
        yield


def needs_whole_search(item):
    """Whether a test is about the quality of a result, or an example of the documentation."""
    return not isinstance(item, pytest.Function) or any(map(item.get_closest_marker, ("whole_search", "slow")))


@pytest.fixture(name="short_searches")
def _short_searches():
    """Few resamples for single tests of files with the marker `whole_search`."""
    with short_searches():
        yield
