"""Bounds change the speed of K-means only."""

from __future__ import annotations

from typing import Any

from coterie import KMeans
from coterie.kmeans.lloyd import BOUNDS_FROM
from fuzz import tables
from fuzz.finding import require_same
from fuzz.law import Case, law
from fuzz.laws.fits import fit, require_same_results


@law(["KMeans"], weight=40, hypothesis=False)
def bounds_change_the_speed_only(case: Case) -> None:
    """Tables whose scale changes during the fit, and so many clusters and columns that bounds are used."""
    draw = case.draw
    d = draw.one_of([8, 16, 33])
    k = draw.integer(-(-BOUNDS_FROM // d), 80)
    n = draw.integer(1500, 8000)
    kind = draw.one_of([tables.loose_blobs, tables.loose_blobs, tables.nested_scales, tables.shrinking, tables.grid])
    X = kind(draw, n, d).astype(draw.one_of(["float32", "float32", "float64"]))
    w = tables.weights(draw, n) if draw.happens(0.3) else None
    options: dict[str, Any] = {
        "init": draw.one_of(["k-means++", "forgy", "random_partition"]),
        "n_init": 1,
        "max_iter": 60,
        "random_state": draw.integer(0, 999),
        "n_jobs": draw.one_of([1, 2]),
    }
    case.note(f"KMeans({k}, **{options}) on {kind.__name__} {X.shape} of {X.dtype}")
    default = fit(KMeans(k, **options), X, w)
    require_same(default.predict(X), default.labels_, "predict(X) is not labels_")
    plain = fit(KMeans(k, algorithm="lloyd", **options), X, w)
    require_same_results(default, plain, "default and algorithm='lloyd'")
