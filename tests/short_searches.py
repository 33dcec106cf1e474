"""Shorter searches for a good initialisation, by the same steps: for tests that are not about the quality of a result.

Reports have fewer resamples for the same reason.

Estimators are then constructed as users construct them, with all their defaults, and every step of a search still runs.
`tests/conftest.py` shortens the searches of all tests, except of those with the marker `whole_search` or `slow`.
"""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from coterie.kmeans import swap_search
from coterie.medoids import medoid_search
from coterie.report.build import reliability

SHORT = [
    (
        swap_search,
        {
            "EFFORTS": swap_search.EFFORTS
            | {kind: swap_search.EFFORTS[kind]._replace(quiet=1, rounds=3) for kind in ("auto", "short")}
        },
    ),
    (medoid_search, {"JUMPS": 3, "LONG_JUMPS": 3}),
    (reliability, {"RESAMPLES": 5, "FEW_RESAMPLES": 4}),
]


@contextmanager
def short_searches():
    """A context in which searches of centers and medoids are short."""
    with pytest.MonkeyPatch.context() as patch:
        for module, constants in SHORT:
            for name, value in constants.items():
                patch.setattr(module, name, value)
        yield


def needs_whole_search(item):
    """Whether a test is about the quality of a result, or an example of the documentation."""
    return not isinstance(item, pytest.Function) or any(map(item.get_closest_marker, ("whole_search", "slow")))


@pytest.fixture(name="short_searches")
def _short_searches():
    """Short searches for single tests of files with the marker `whole_search`."""
    with short_searches():
        yield
