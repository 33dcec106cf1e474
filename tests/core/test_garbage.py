"""Pauses of Python's garbage collection."""

from __future__ import annotations

import gc

import pytest

from coterie.garbage import no_collection


@pytest.fixture(autouse=True)
def with_collection():
    """The state of the process may be another one, if a thread of an earlier test is compiling."""
    was_enabled = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was_enabled else gc.disable)()


def test_a_pause_within_a_pause_does_not_end_it():
    with no_collection():
        with no_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_pauses_that_overlap_or_never_end_leave_collection_on():
    """As in two threads: the one that began first ends first, and the other one may never end."""
    first, second = no_collection(), no_collection()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()


def test_an_error_turns_collection_on_again():
    with pytest.raises(ZeroDivisionError), no_collection():
        1 / 0  # noqa: B018
    assert gc.isenabled()


def test_a_program_without_collection_stays_without():
    gc.disable()
    with no_collection():
        pass
    assert not gc.isenabled()
