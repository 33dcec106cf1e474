"""The iterations of a fit for the player: labels of the displayed rows at each step, and marks of the clusters."""

from typing import Any

import numpy as np

from coterie.app.blob import blob
from coterie.app.execution import recording_of
from coterie.app.failures import NotAvailable
from coterie.app.maps import Axes, axes_and_map
from coterie.app.run_views import colors_of
from coterie.app.session import Session
from coterie.app.state import Run
from coterie.core.arrays import Array
from coterie.palette import blends
from coterie.plots.animation import project_covariances
from coterie.plots.display import plain
from coterie.plots.projection import View
from coterie.traces import Step, Trace
from coterie.web import ellipses_of
from coterie.web.packing import label_codes

MAX_BYTES = 48 << 20  # of the labels of all steps
MAX_RGB_BYTES = 24 << 20  # of blended colours; beyond this, rows have the colour of one cluster
MAX_ITERATIONS, MIN_ITERATIONS = 120, 8
UNUSED = 160  # grey of rows that are not used


def trace_of(session: Session, run: str) -> bytes:
    """The steps of a fit as a header, and labels (or colours) of the displayed rows."""
    table, known, outcome = session.open_table(), session.run(run), session.outcome(run)
    recording = recording_of(known, outcome, table.path)
    if known.sample is not None and known.sample < outcome.prepared.prepared.rows.n:
        raise NotAvailable("A fit to a sample of the rows cannot be watched: leave out the sample.")
    displayed = outcome.prepared.positions[table.displayed]
    max_iterations = int(np.clip(MAX_BYTES // max(1, len(displayed)), MIN_ITERATIONS, MAX_ITERATIONS))
    trace, steps = recording.all_rows(max_iterations)
    k = outcome.content.result.k if outcome.content is not None else 0
    axes, _ = axes_and_map(table, outcome.prepared)
    n_assignments = min(recording.n_iterations, max_iterations)
    if trace.soft and 3 * len(displayed) * n_assignments <= MAX_RGB_BYTES:
        painter: _Painter = _SoftPainter(recording.of_rows(trace, displayed[displayed >= 0]), displayed, known, k)
    else:
        painter = _Painter(displayed, k)
    header = {
        "run": run, "k": k, "m": len(displayed), "title": f"{type(trace.model).__name__} of {trace.n:,} rows",
        "objective": {"name": trace.objective, "better": trace.better},
        "soft": isinstance(painter, _SoftPainter), "axes": axes.names,
        "frames": [_frame(trace, step, axes, painter) for step in steps],
    }  # fmt: skip
    return blob(plain(header), painter.arrays())


class _Painter:
    """Collects the labels of the displayed rows, once for steps that share them."""

    def __init__(self, displayed: Array, k: int) -> None:
        self.displayed, self.k = displayed, k
        self.labels: list[Array] = []
        self._last: Any = None

    def index(self, step: Step) -> int:
        """The number of the labels of a step; -1 before the first assignment."""
        if step.labels is None:
            return -1
        if step.labels is not self._last:
            self._last = step.labels
            self.paint(step)
        return len(self.labels) - 1

    def paint(self, step: Step) -> None:
        assert step.labels is not None
        self.labels.append(label_codes(np.where(self.displayed < 0, -1, step.labels[self.displayed]), self.k))

    def arrays(self) -> dict[str, Array]:
        empty = label_codes(np.empty((0, len(self.displayed)), np.int64), self.k)
        return {"labels": np.stack(self.labels) if self.labels else empty}


class _SoftPainter(_Painter):
    """Also collects the colours of the displayed rows, blended by their memberships; `trace` has these rows."""

    def __init__(self, trace: Trace, displayed: Array, run: Run, k: int) -> None:
        super().__init__(displayed, k)
        self.trace, self.shades, self.rgb = trace, colors_of(run, k), list[Array]()

    def paint(self, step: Step) -> None:
        super().paint(step)
        pixels = np.full((len(self.displayed), 3), UNUSED, np.uint8)
        shares = self.trace.shares(step)
        if shares is not None:
            pixels[self.displayed >= 0] = np.rint(255 * blends(shares, self.shades))
        self.rgb.append(pixels)

    def arrays(self) -> dict[str, Array]:
        return {
            **super().arrays(),
            "rgb": np.stack(self.rgb) if self.rgb else np.empty((0, len(self.displayed), 3), np.uint8),
        }


def _frame(trace: Trace, step: Step, axes: Axes, painter: _Painter) -> dict[str, Any]:
    return {
        "step": step.kind, "iteration": step.iteration, "caption": step.caption, "objective": step.objective,
        "bound": step.bound, "changed": step.changed, "sizes": step.sizes, "labels": painter.index(step),
        "centers": axes.positions(step.centers, 1.0) if step.centers.shape[1] == len(axes.A) else None,
        "ellipses": _ellipses(trace, step, axes),
    }  # fmt: skip


def _ellipses(trace: Trace, step: Step, axes: Axes) -> Any:
    """Ellipses of Gaussian components at two standard deviations, in the units of the map."""
    if axes.A.shape[1] != 2 or step.centers.shape[1] != len(axes.A):
        return None
    covariances = project_covariances(trace, step, View(np.zeros(len(axes.A)), axes.A, axes.names))
    return None if covariances is None else ellipses_of(step.centers @ axes.A + axes.b, covariances)
