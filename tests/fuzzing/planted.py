"""Laws that a planted fault breaks: what the tests of the fuzzer let it find."""

import os
import signal
import time
import warnings

import numpy as np

from coterie.errors import InputError
from fuzz.call import attempt
from fuzz.finding import require_same
from fuzz.law import law


@law(["wrong"], weight=10)
def labels_are_right(case):
    """One table in about three is wrong, so that a finding has to say which."""
    x = case.draw.integer(0, 99)
    case.note(f"x = {x}")
    require_same([x > 66], [False], "labels_")


@law(["slow"])
def fits_end(case):
    while True:
        time.sleep(1)


@law(["fragile"], hypothesis=False)
def fits_do_not_crash(case):
    os.kill(os.getpid(), signal.SIGSEGV)


@law(["warns"], hypothesis=False)
def nothing_overflows(case):
    attempt(np.exp, np.array([1000.0]))


@law(["strict"], hypothesis=False)
def tables_are_rejected(case):
    def fit():
        warnings.warn("a warning that is allowed", UserWarning, stacklevel=1)
        raise InputError("X has no rows")

    attempt(fit)


@law(["right"], weight=5)
def nothing_is_wrong(case):
    pass
