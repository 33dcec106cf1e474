"""Shorter searches for a good initialisation, by the same steps: for tests that are not about the quality of a result.

Estimators are then constructed as users construct them, with all their defaults, and every step of a search still runs.
"""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from coterie.kmeans import swap_search
from coterie.medoids import medoid_search
from coterie.mixture import search
from coterie.mixture.family_trials import FamilyTrials
from coterie.mixture.gaussian_trials import GaussianTrials

SHORT = [
    (search, {"STEPS": 900}),
    (GaussianTrials, {"effort": GaussianTrials.effort._replace(runs=9, patience=1, steps_for_few_rows=900)}),
    (FamilyTrials, {"effort": FamilyTrials.effort._replace(runs=6)}),
    (swap_search, {"EFFORTS": swap_search.EFFORTS | {"auto": swap_search.EFFORTS["auto"]._replace(quiet=1, rounds=3)}}),
    (medoid_search, {"JUMPS": 3, "LONG_JUMPS": 3}),
]


@contextmanager
def short_searches():
    """A context in which searches of mixtures, centers and medoids are short."""
    with pytest.MonkeyPatch.context() as patch:
        for module, constants in SHORT:
            for name, value in constants.items():
                patch.setattr(module, name, value)
        yield


@pytest.fixture(name="short_searches")
def _short_searches():
    with short_searches():
        yield
