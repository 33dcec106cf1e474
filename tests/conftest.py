"""Settings and fixtures of all tests."""

import gc
import os

# Set before SciPy is imported, so that scikit-learn's array API check runs instead of being skipped.
os.environ["SCIPY_ARRAY_API"] = "1"

from contextlib import nullcontext

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from browser import chromium, visit  # noqa: F401  fixtures of all tests
from coterie import kernels
from short_searches import _short_searches, needs_whole_search, short_searches  # noqa: F401

# Several processes share the tests: BLAS would start as many threads in each as there are cores, and they would wait.
threadpool_limits(1, user_api="blas")
settings.register_profile("untimed", deadline=None)  # a loaded machine, or a first compilation, is no failure
settings.load_profile("untimed")


COMPILED = kernels.COMPILED


def pytest_addoption(parser):
    parser.addoption("--numpy-kernels", action="store_true", help="use NumPy kernels also for many rows")


def pytest_configure(config):
    if config.getoption("--numpy-kernels"):
        kernels.COMPILED = "plain"


@pytest.fixture
def compiled_kernels(monkeypatch):
    """Compiled kernels for many rows, also with the option: for tests of the choice between the two."""
    monkeypatch.setattr(kernels, "COMPILED", COMPILED)


gc.disable()  # until all tests are collected: their objects stay, and each pass over them takes half a second


def pytest_collection_finish():
    gc.enable()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Shorten searches for initial values, unless a test is about the quality of a result."""
    with nullcontext() if needs_whole_search(item) else short_searches():
        return (yield)
