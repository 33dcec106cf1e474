"""Many quick cases as one test: thousands of tests of a millisecond take longer to collect and report than to run."""

from __future__ import annotations

from functools import wraps
from inspect import Signature, signature


def loop_over(names, cases):
    """Run a test for every case, with the arguments of `pytest.mark.parametrize`; a failure names its case."""
    names = [name.strip() for name in names.split(",")]

    def decorate(test):
        @wraps(test)
        def run(**arguments):
            for case in cases:
                values = dict(zip(names, case if len(names) > 1 else (case,), strict=True))
                try:
                    test(**arguments, **values)
                except BaseException as error:
                    error.add_note(f"case: {values}")
                    raise

        del run.__wrapped__  # pytest would look for the arguments of the test itself
        run.__signature__ = Signature([p for p in signature(test).parameters.values() if p.name not in names])
        return run

    return decorate
