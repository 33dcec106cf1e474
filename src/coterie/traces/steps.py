"""From the parameters a fit went through to its half steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from coterie.core.protocols import Chunk
from coterie.traces import words
from coterie.traces.passes import Passes
from coterie.traces.recorder import Moment, Recorder
from coterie.traces.trace import Step

ALIKE = 1e-11  # a share of what differs by less only in rounding


class Steps:
    """The half steps of a fit that was recorded; `chunk` has the `rows` to show, `fill` the means of their columns."""

    def __init__(self, recorder: Recorder, chunk: Chunk, rows: np.ndarray, fill: np.ndarray):
        self.model, self.moments, self.online = recorder.model, recorder.run.moments, recorder.online
        self.passes = Passes(recorder.model, recorder.source, recorder.engine)
        self.chunk, self.rows, self.fill, self.n = chunk, rows, fill, recorder.source.shape[0]
        penalised = self._bounded and any(moment.penalised for moment in self.moments)
        self.called = f"penalised {self._climbs}" if penalised else self._climbs or ""

    def all(self) -> list[Step]:
        if self.online:
            return list(self._batches())
        first, *others = self.moments
        steps = [self._start(first)]
        steps.append(self._divided(steps[-1], first, None))
        for before, after in pairwise([first, *others]):
            if after.iteration == before.iteration + 1:
                steps.append(self._moved(steps[-1], before, after))
            steps.append(self._divided(steps[-1], after, before))
        return steps

    # half steps

    def _start(self, moment: Moment) -> Step:
        centers = self._centers(moment, moment)
        k = len(centers)
        caption = words.started(k, "component" if self._climbs else "center")
        zero = np.zeros(k)
        return Step("start", 0, moment.params, centers, zero, None, None, self._height(moment), None, caption)

    def _divided(self, last: Step, moment: Moment, before: Moment | None) -> Step:
        """Rows have gone where they belong."""
        k, places = len(last.sizes), self._places(moment)
        earlier, once = (None, None) if before is None else (before.params, self._places(before))
        found = self.passes.divided(moment.params, earlier, k, _renamed(places, once))
        changed = None if before is None else int(found.changed)
        sizes = _arranged(moment.weight if self._climbs else found.sizes, places)
        labels = self._labels(moment)
        labels = labels if places is None else places[labels].astype(labels.dtype)
        here = replace(
            last,
            kind="E" if self._climbs else "assign",
            iteration=moment.iteration,
            params=moment.params,
            centers=self._centers(moment, before or moment),
            sizes=sizes,
            labels=labels,
            changed=changed,
            objective=self._height(moment),
            bound=-moment.objective if self._bounded else None,
            by=moment.params,
            places=places,
        )
        return replace(here, caption=self._of_division(last, here))

    def _moved(self, last: Step, before: Moment, after: Moment) -> Step:
        """Centers or components have followed the rows."""
        order = self.model.order(before.weight) if hasattr(self.model, "order") else None
        between = self.passes.halfway(before.params, after.params, order)
        here = replace(
            last,
            kind="M" if self._climbs else "update",
            iteration=after.iteration,
            params=after.params,
            centers=self._centers(after, before),
            changed=None,
            objective=self._height(after) if self._bounded else -between if self._climbs else between,
            bound=-between if self._bounded else None,
        )
        return replace(here, caption=self._of_move(last, here))

    def _batches(self) -> Iterator[Step]:
        """Of a fit by batches every step is both: centers move, and rows go where they now belong."""
        last: Step | None = None
        for moment, before in zip(self.moments, [None, *self.moments], strict=False):
            centers = self._centers(moment, moment)
            found = self.passes.divided(moment.params, before and before.params, len(centers), None)
            changed = None if before is None else int(found.changed)
            here = Step(
                "start" if last is None else "update",
                moment.iteration,
                moment.params,
                centers,
                np.asarray(found.sizes),
                np.asarray(self.model.assign(moment.params, self.chunk)),
                changed,
                self.passes.halfway(moment.params, moment.params),
                None,
                words.started(len(centers), "center"),
                by=moment.params,
            )
            if last is not None:
                step = float(_lengths(last, here).max())
                here = replace(here, caption=words.batched(moment.iteration, step, int(found.changed), self.n))
            yield here
            last = here

    # what they have

    @property
    def _climbs(self) -> str | None:
        return getattr(self.model, "climbs", None)

    @property
    def _bounded(self) -> bool:
        """Whether there is a log-likelihood above what the steps raise."""
        return self._climbs == "log-likelihood"

    @property
    def _by_all(self) -> bool:
        """Whether all rows together decide which cluster each is in."""
        return hasattr(self.model, "labels_at")

    def _labels(self, moment: Moment) -> np.ndarray:
        """Of the rows to show (m,), in the model's own numbers."""
        if self._by_all:
            return np.asarray(self.model.labels_at(moment.params, self.rows))
        return np.asarray(self.model.assign(moment.params, self.chunk))

    def _height(self, moment: Moment) -> float:
        if not self._climbs:
            return moment.objective
        return -moment.objective if moment.likelihood is None else moment.likelihood

    def _places(self, moment: Moment) -> np.ndarray | None:
        """The number that each component has at the end (k,), where steps sort them."""
        last = self.moments[-1].came
        return None if moment.came is None or last is None else np.argsort(last)[moment.came]

    def _centers(self, moment: Moment, by: Moment) -> np.ndarray:
        """Where the clusters are (k, d), in the numbers they have at the end."""
        params = moment.params
        for found in (
            params,
            getattr(params, "centers", None),
            getattr(params, "means", None),
            getattr(getattr(params, "parts", None), "location", None),
        ):
            if isinstance(found, np.ndarray):
                whole = np.where(np.isnan(found), self.fill, found).astype(np.float64)  # series may end early
                return _arranged(whole, self._places(moment))
        return _arranged(self.passes.means(by.params), self._places(by))

    # in words

    def _of_division(self, last: Step, here: Step) -> str:
        if not self._climbs:
            how = "soft" if hasattr(self.model, "memberships") else "together" if self._by_all else "nearest"
            return words.assigned(here.changed, self.n, how)
        if self._bounded:
            gap = here.objective - (here.bound or 0.0)
            return words.expected(self.model.e_step_kind, self.called, gap, here.changed, self.n)
        rise = None if last.kind == "start" else _rise(last.objective, here.objective)
        return words.believed("E", self.called, rise, here.changed, self.n)

    def _of_move(self, last: Step, here: Step) -> str:
        if not self._climbs:
            empty = np.flatnonzero((last.sizes == 0) & (_lengths(last, here) > 0))
            return words.updated(_lengths(last, here), empty.tolist())
        climbed = _rise(last.objective, here.objective)
        if not self._bounded:
            return words.believed("M", self.called, climbed, None, self.n)
        anew = [event.component for event in here.params.events if event.what == "reseeded"]
        rise = _rise(last.bound or 0.0, here.bound or 0.0)
        return words.maximised(self.model.e_step_kind, self.called, rise, climbed, anew)


def _rise(before: float, after: float) -> float:
    """Nothing, where rounding alone could make it."""
    return after - before if abs(after - before) > ALIKE * max(abs(before), abs(after)) else 0.0


def _arranged(values: Any, places: np.ndarray | None) -> np.ndarray:
    """Values of the model's components in the order of the numbers they have here."""
    return np.asarray(values) if places is None else np.asarray(values)[np.argsort(places)]


def _renamed(now: np.ndarray | None, before: np.ndarray | None) -> np.ndarray | None:
    """Which component of the step before each one now is."""
    return None if now is None or before is None else np.argsort(before)[now]


def _lengths(before: Step, after: Step) -> np.ndarray:
    """How far each center went (k,)."""
    lengths: np.ndarray = np.linalg.norm(after.centers - before.centers, axis=1)
    return lengths
