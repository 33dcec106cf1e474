"""Tests of scikit-learn, SciPy and hdbscan, run against coterie: `make peers`.

The installed packages contain their own tests. `plugin.py` replaces their classes and functions with those of coterie
before these tests are imported; `differences/` lists the tests that fail on purpose, with the reasons.
"""
