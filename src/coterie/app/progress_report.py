"""Progress of a run as events: stages, iterations with their centers, and criteria as they are evaluated."""

import time
from typing import Any

import numpy as np

from coterie.app.events import Events
from coterie.app.execution import centers_of
from coterie.app.maps import Axes, axes_and_map
from coterie.app.open_table import OpenTable
from coterie.app.run_views import LiveRun, criterion_view
from coterie.app.state import Run
from coterie.core.progress import Progress
from coterie.plots.display import plain
from coterie.selection.choose_k_result import CriterionResult

INTERVAL = 0.1  # seconds between events
HISTORY = 200  # objectives of a restart that an event has


class ProgressReport:
    """A callback for jobs. It returns True to stop a fit with the best result so far."""

    def __init__(self, run: Run, live: LiveRun, events: Events, table: OpenTable) -> None:
        self.run, self.live, self.events, self.table = run, live, events, table
        self.last_progress = self.last_step = 0.0
        self.restart, self.iteration = -1, 0
        self.objectives: list[float] = []
        self._axes: Axes | None = None

    def __call__(self, progress: Progress) -> bool:
        if isinstance(progress.stats, CriterionResult):
            self._publish("criteria", criterion_view(progress.stats))
        if progress.objective is not None:
            self._step(progress)
        now, stage = time.monotonic(), progress.step
        is_new = self.live.progress is None or self.live.progress["stage"] != stage
        if is_new or now - self.last_progress >= INTERVAL:
            self.last_progress = now
            self.live.progress = plain({
                "stage": stage, "done": progress.done, "total": progress.total, "left": progress.left,
            })  # fmt: skip
            self._publish("progress", self.live.progress)
        return self.live.is_cancelled

    def _step(self, progress: Progress) -> None:
        if progress.run != self.restart:
            self.restart, self.iteration, self.objectives = progress.run, 0, []
        self.iteration += 1
        self.objectives.append(float(progress.objective))
        now = time.monotonic()
        if now - self.last_step < INTERVAL:
            return
        self.last_step = now
        data = {
            "restart": progress.run, "iteration": self.iteration, "objective": self.objectives[-1],
            "history": self.objectives[-HISTORY:], "centers": self._centers(progress.params),
        }  # fmt: skip
        self._publish("step", data)

    def _centers(self, params: Any) -> list[list[float]] | None:
        centers = centers_of(params)
        if centers is None:
            return None
        if self._axes is None:
            prepared = self.table.prepared(self.run.preparation, self.run.algorithm)
            self._axes, _ = axes_and_map(self.table, prepared)
        if centers.shape[1] != len(self._axes.A) or not np.isfinite(centers).all():
            return None
        return np.round(self._axes.in_box(centers), 5).tolist()

    def _publish(self, name: str, data: dict[str, Any]) -> None:
        self.events.publish(name, {"table": self.table.id, "run": self.run.id, **plain(data)})
