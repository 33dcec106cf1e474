"""Tests of scikit-learn, run against coterie: `make peers`.

The installed package contains its own tests. `plugin.py` replaces its classes and functions with those of coterie
before these tests are imported; `differences/` lists the tests that fail on purpose, with the reasons.
"""
