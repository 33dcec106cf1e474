"""Multiplying rows or weights by a power of two changes no index but its exponent, and no diagnosis."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import metrics
from coterie.diagnosis import diagnose
from coterie.errors import InputError
from laws.scales import LABELS, ROWS, WEIGHTS

INDICES = {  # power of the rows
    "inertia": (metrics.inertia, 2),
    "bcss": (metrics.bcss, 2),
    "tss": (lambda X, labels, **how: metrics.tss(X, **how), 2),
    "calinski_harabasz": (metrics.calinski_harabasz_score, 0),
    "davies_bouldin": (metrics.davies_bouldin_score, 0),
    "silhouette": (metrics.silhouette_score, 0),
    "silhouette of squares": (
        lambda X, labels, **how: metrics.silhouette_score(X, labels, metric="sqeuclidean", **how),
        0,
    ),
    "silhouette, manhattan": (
        lambda X, labels, **how: metrics.silhouette_score(X, labels, metric="manhattan", **how),
        0,
    ),
    "silhouette, simplified": (
        lambda X, labels, **how: metrics.silhouette_score(X, labels, approximation="simplified", **how),
        0,
    ),
    "dunn": (metrics.dunn_score, 0),
    "dunn of means": (
        lambda X, labels, **how: metrics.dunn_score(X, labels, intercluster="centroid", intracluster="centroid", **how),
        0,
    ),
}


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("n", [150, 20], ids=["compiled", "plain"])
def test_indices_of_rows_times_a_power_of_two(name, n):
    index, power = INDICES[name]
    X, labels, w = ROWS[:n], LABELS[:n], WEIGHTS[:n]
    for rows in (-450, 450, *(() if power else (-900, 900))):
        assert index(np.ldexp(X, rows), labels) == np.ldexp(index(X, labels), power * rows)
    for rows in (-60, 60):
        single = X.astype(np.float32)
        assert index(np.ldexp(single, rows), labels) == np.ldexp(index(single, labels), power * rows)
    if power:
        assert index(X, labels, sample_weight=np.ldexp(w, 900)) == np.ldexp(index(X, labels, sample_weight=w), 900)


def test_davies_bouldin_does_not_see_the_scale_of_weights():
    expected = metrics.davies_bouldin_score(ROWS, LABELS, sample_weight=WEIGHTS)
    for power in (-1000, 900):
        assert metrics.davies_bouldin_score(ROWS, LABELS, sample_weight=np.ldexp(WEIGHTS, power)) == expected


@pytest.mark.parametrize("index", [metrics.silhouette_score, metrics.dunn_score])
def test_weights_that_are_numbers_of_rows_have_a_scale(index):
    with pytest.raises(InputError, match="sample_weight has values up to about"):
        index(ROWS, LABELS, sample_weight=np.ldexp(WEIGHTS, 900))


@pytest.mark.parametrize("power", [-1000, -600, 600])
def test_a_diagnosis_does_not_depend_on_the_scale(power):
    plain, scaled = (diagnose(rows, random_state=0) for rows in (ROWS, np.ldexp(ROWS, power)))
    for name, check in plain.checks.items():
        assert scaled.checks[name].value == pytest.approx(check.value, rel=1e-6), name
