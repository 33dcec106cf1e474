"""Integer scores change the speed of K-means only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from coterie import KMeans
from coterie.kernels.cpu.low_precision import MIN_CENTERS, MIN_COLUMNS, MIN_ROWS
from fuzz import tables
from fuzz.finding import require_same
from fuzz.law import Case, law
from fuzz.laws.fits import fit, require_same_results

VARIABLE = "COTERIE_LOW_PRECISION"


@contextmanager
def full_precision() -> Iterator[None]:
    """Without integer scores."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


@law(["KMeans"], weight=40, hypothesis=False)
def integer_scores_change_the_speed_only(case: Case) -> None:
    """Tables of any kind and scale, with so many clusters and columns that integer scores are used."""
    draw = case.draw
    n, d, k = draw.integer(MIN_ROWS, 4000), draw.integer(MIN_COLUMNS, 70), draw.integer(MIN_CENTERS, 300)
    kind = draw.one_of(tables.HOSTILE)
    X = kind(draw, n, d)
    if draw.happens(0.3):
        X = tables.scaled_by(X, draw.integer(-tables.EXPONENTS["float32"], tables.EXPONENTS["float32"]))
    X = X.astype("float32")
    w = tables.weights(draw, n) if draw.happens(0.3) else None
    options: dict[str, Any] = {
        "init": draw.one_of(["forgy", "forgy", "k-means++"]),
        "n_init": 1,
        "max_iter": draw.integer(1, 12),
        "search": "none",
        "random_state": draw.integer(0, 999),
        "algorithm": draw.one_of(["auto", "lloyd"]),
        "n_jobs": draw.one_of([1, 2]),
    }
    case.note(f"KMeans({k}, **{options}) on {kind.__name__} {X.shape}")
    model = fit(KMeans(k, **options), X, w)
    require_same(model.predict(X), model.labels_, "predict(X) is not labels_")
    with full_precision():
        other = fit(KMeans(k, **options), X, w)
        require_same(other.predict(X), model.labels_, "predict(X) without integer scores is not labels_")
    require_same_results(model, other, "with and without integer scores")
