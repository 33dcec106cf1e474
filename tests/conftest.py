"""Set before SciPy is imported, so that scikit-learn's array API check runs instead of being skipped."""

import os

os.environ["SCIPY_ARRAY_API"] = "1"

from hypothesis import settings

from browser import chromium, visit  # noqa: F401  fixtures of all tests
from short_searches import _short_searches  # noqa: F401

settings.register_profile("untimed", deadline=None)  # a loaded machine, or a first compilation, is no failure
settings.load_profile("untimed")
