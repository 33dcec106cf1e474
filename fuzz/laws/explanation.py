"""Rules of clusters hold as they are printed, on any table."""

from __future__ import annotations

import json

import numpy as np

import coterie
from coterie.explanation.rules import number_text
from fuzz import tables
from fuzz.call import attempt
from fuzz.finding import require, require_finite
from fuzz.law import Case, law


@law(["explain"], weight=2)
def rules_hold_as_they_are_printed(case: Case) -> None:
    n, d = case.draw.integer(1, 80), case.draw.integer(1, 4)
    X = tables.hostile(case.draw, n, d)
    labels = case.draw.integers(-1, case.draw.integer(0, 4), (n,))
    case.note(f"X: {X.shape} of {X.dtype}; labels: {labels!r}")
    labels[0] = 0
    explanation = attempt(coterie.explain, labels, X)
    json.dumps(explanation.to_dict(), allow_nan=False)
    for rule in explanation:
        mask = np.ones(n, bool)
        for condition in rule.conditions:
            x = X[:, int(condition.column.removeprefix("column "))]
            for bound, compare in ((condition.lower, np.greater), (condition.upper, np.less_equal)):
                if bound is not None:
                    mask &= compare(x, x.dtype.type(float(number_text(bound).replace(",", ""))))
            if condition.values:
                mask &= x == x.dtype.type(condition.values[0])
        is_member = labels == int(rule.label)
        expected = (int(is_member.sum()), int((mask & is_member).sum()))
        require((rule.rows, rule.correct) == expected or not rule.conditions, f"{rule}: expected {expected}")
        require(not rule.conditions or rule.fitting == mask.sum(), f"{rule}: {mask.sum()} rows fit")
        require_finite(np.array([rule.coverage, rule.precision, rule.phi]), "shares")
