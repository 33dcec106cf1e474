"""Charts of criteria over the number of clusters."""

import re

import numpy as np
import pytest

from coterie.report.formatting import text_width
from coterie.report.html.charts.curves import Line, drawn_curves

KS = list(range(2, 11))
TEXT = "stable above"
BELOW = [0.2] * len(KS)
MARKS = {  # values at KS of marks near the threshold of 0.8
    "at the right": [*BELOW[:5], 0.82, 0.83, 0.82, 0.83],
    "at both ends, above": [0.82, 0.83, 0.83, *BELOW[:2], 0.82, 0.83, 0.82, 0.83],
    "at the right below, and at the left above": [0.82, 0.83, 0.83, *BELOW[:2], 0.78, 0.77, 0.78, 0.77],
    "none": BELOW,
    "the curve crosses the line at the left": [1.0, 0.75, 0.6, 0.7, 0.6, 0.79, 0.83, 0.82, 0.81],
}


@pytest.mark.parametrize("values", MARKS.values(), ids=MARKS)
@pytest.mark.parametrize("as_dots", [True, False])
def test_the_text_of_a_threshold_covers_no_mark(values, as_dots):
    dots = list(zip(KS, values, strict=True))
    line = Line("stability", KS, BELOW if as_dots else values)
    svg = str(drawn_curves("Stability", "y", [line], threshold=(0.8, TEXT), dots=dots if as_dots else ())[-1])
    ((x, y),) = re.findall(rf'<text x="([\d.]+)" y="([\d.]+)"[^>]*>{TEXT}</text>', svg)
    marks = [(float(cx), float(cy)) for cx, cy in re.findall(r'<circle[^>]*cx="([\d.]+)" cy="([\d.]+)"', svg)]
    assert len(marks) >= len(KS)
    right, top = float(x) + text_width(TEXT, 11), float(y) - 11
    if not as_dots:
        scale = [(mark[0] - marks[0][0]) / (marks[-1][0] - marks[0][0]) for mark in marks]
        assert scale == sorted(scale)
        between = np.linspace(marks[0][0], marks[-1][0], 400)
        marks += list(zip(between, np.interp(between, *zip(*marks, strict=True)), strict=True))
    assert not [mark for mark in marks if float(x) <= mark[0] <= right and top <= mark[1] <= float(y)]
