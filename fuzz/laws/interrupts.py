"""Ctrl-C: a KeyboardInterrupt or the best result so far, and nothing broken afterwards."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

from sklearn.base import clone

from fuzz import estimators, tables
from fuzz.call import quiet
from fuzz.estimators import ALL, KINDS
from fuzz.finding import require_finite, require_same
from fuzz.law import Case, law
from fuzz.laws.fits import fit, require_same_results

CHANGED: dict[str, dict[str, Any]] = {  # fits of a second or less
    "KMeans": {"n_clusters": 20, "search": "none", "search_budget": None},
    "MiniBatchKMeans": {"batch_size": 256},
    "KMedians": {"search": "auto"},
    "SphericalKMeans": {"search": "auto"},
    "KMedoids": {"search": "auto"},
    "FuzzyCMeans": {"search": "none"},
}
LARGE = ("KMeans", "MiniBatchKMeans", "SphericalKMeans", "GaussianMixture", "BisectingKMeans")


@law(ALL, weight=2, hypothesis=False)
def an_interrupt_is_a_keyboard_interrupt_or_a_result(case: Case) -> None:
    n = case.draw.one_of([200, 20000 if case.subject in LARGE else 400])
    estimator = estimators.build(case, n, **CHANGED.get(case.subject, {}))
    X = estimators.rows(case, estimator, tables.benign(case.draw, n, 8))
    began = time.monotonic()
    whole = fit(clone(estimator), X)
    seconds = time.monotonic() - began
    for _ in range(3):
        delay = float(case.draw.rng.uniform(0, 1.1 * seconds))
        case.note(f"SIGINT after {delay:.4f} of {seconds:.4f} s")
        interrupted = fit_with_signal(clone(estimator), X, delay)
        if interrupted is not None:
            require_finite(interrupted.labels_, "labels_ of the interrupted fit")
            if KINDS[case.subject].labels_are_predictions:
                require_same(interrupted.predict(X), interrupted.labels_, "predict(X) after an interrupted fit")
    require_same_results(fit(clone(estimator), X), whole, "a fit after interrupts")


def fit_with_signal(model: Any, X: Any, delay: float) -> Any:
    """The fitted model, or None if the signal came through as a KeyboardInterrupt. Other errors are findings."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(delay, os.kill, [os.getpid(), signal.SIGINT])
    try:
        timer.start()
        with quiet():
            model.fit(X)
        timer.cancel()
        timer.join()  # the signal may come here, after the fit
        return model
    except KeyboardInterrupt:
        return None
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
