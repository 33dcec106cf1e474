"""Reconstruction of the half steps of a fit from its recorded parameters."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from coterie.core.arrays import is_sparse
from coterie.core.protocols import Chunk, Engine, JointAssignment, Maximizer, SoftAssignment, SortedComponents, Source
from coterie.core.stats import Stats, WeightedSums
from coterie.traces import captions
from coterie.traces.recorder import Iteration, Recorder
from coterie.traces.trace import Step

ROUNDING = 1e-11  # smaller relative differences are rounding errors


class HalfSteps:
    """The half steps of a recorded fit.

    `chunk` holds the rows whose labels the steps have, at `index`; None: the steps have the labels of all rows. `fill`
    are the column means. Of more than `max_iterations` recorded iterations, the first ones and later pairs are used.
    """

    def __init__(
        self, recorder: Recorder, chunk: Chunk, index: np.ndarray | None, fill: np.ndarray,
        max_iterations: int | None = None,
    ):  # fmt: skip
        self.model, self.is_online, self.numbers = recorder.model, recorder.is_online, recorder.numbers
        self.iterations = thinned(recorder.run.iterations, max_iterations)
        self.passes = RowPasses(recorder.model, recorder.source, recorder.engine)
        self.chunk, self.index, self.fill, self.n = chunk, index, fill, recorder.source.shape[0]
        is_penalised = self._has_bound and any(iteration.is_penalised for iteration in self.iterations)
        self.objective_name = f"penalised {self._maximised}" if is_penalised else self._maximised or ""

    def steps(self) -> Iterator[Step]:
        """The steps one by one, so that their labels need not be in memory together."""
        if self.is_online:
            yield from self._batches()
            return
        first = self.iterations[0]
        yield (step := self._start(first))
        yield (step := self._assign(step, first, None))
        for before, after in pairwise(self.iterations):
            if after.iteration == before.iteration + 1:
                yield (step := self._update(step, before, after))
            yield (step := self._assign(step, after, before))

    def _start(self, iteration: Iteration) -> Step:
        centers = self._centers(iteration, iteration)
        k = len(centers)
        caption = captions.start(k, "component" if self._maximised else "center")
        objective = self._objective(iteration)
        return Step(
            "start", 0, iteration.params, centers, np.zeros(k), None, None, objective, None, caption,
            places=self._places(iteration),
        )  # fmt: skip

    def _assign(self, last: Step, iteration: Iteration, before: Iteration | None) -> Step:
        """The step after the assignment of the rows."""
        labels, sizes, changed = self._labels(iteration, before, len(last.sizes), last.labels)
        places = self._places(iteration)
        step = replace(
            last,
            kind="E" if self._maximised else "assign",
            iteration=iteration.iteration,
            params=iteration.params,
            centers=self._centers(iteration, before or iteration),
            sizes=_reorder(iteration.weight if self._maximised else sizes, places),
            labels=labels,
            changed=changed,
            objective=self._objective(iteration),
            bound=-iteration.objective if self._has_bound else None,
            assign_params=iteration.params,
            places=places,
        )
        return replace(step, caption=self._caption_of_assignment(last, step))

    def _labels(
        self, iteration: Iteration, before: Iteration | None, k: int, last_labels: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, int | None]:
        """Labels of the rows to show, the weight of each of the k components, and the number of rows that changed.

        `last_labels` are those of the iteration `before`; without one, no number of changes is known.
        """
        params, places = iteration.params, self._places(iteration)
        changed: int | None = None
        if self.index is None and not self._is_joint:
            labels, sizes = self.passes.labels(params, k)
        else:
            previous, component_map = None, None  # number of each component at the previous iteration
            if before is not None:
                previous, previous_places = before.params, self._places(before)
                if places is not None and previous_places is not None:
                    component_map = np.argsort(previous_places)[places]
            assignment = self.passes.assignment(params, previous, k, component_map)
            sizes, changed = assignment.sizes, int(assignment.changed)
            if self._is_joint:
                rows = np.arange(self.n) if self.index is None else self.index
                labels = np.asarray(self.model.labels_at(params, rows))
            else:
                labels = np.asarray(self.model.assign(params, self.chunk))
        labels = labels if places is None else places[labels].astype(labels.dtype)
        if self.index is None and before is not None:
            changed = int(np.count_nonzero(labels != last_labels))
        return labels, sizes, None if before is None else changed

    def _update(self, last: Step, before: Iteration, after: Iteration) -> Step:
        """The step after the update of centers or components."""
        order = self.model.order(before.weight) if isinstance(self.model, SortedComponents) else None
        halfway = self.passes.halfway(before.params, after.params, order)
        step = replace(
            last,
            kind="M" if self._maximised else "update",
            iteration=after.iteration,
            params=after.params,
            centers=self._centers(after, before),
            changed=None,
            objective=self._objective(after) if self._has_bound else -halfway if self._maximised else halfway,
            bound=-halfway if self._has_bound else None,
        )
        return replace(step, caption=self._caption_of_update(last, step))

    def _batches(self) -> Iterator[Step]:
        """The steps of a fit by batches: each moves the centers and assigns the rows."""
        last: Step | None = None
        for iteration, before in zip(self.iterations, [None, *self.iterations], strict=False):
            centers = self._centers(iteration, iteration)
            labels, sizes, changed = self._labels(
                iteration, before, len(centers), None if last is None else last.labels
            )
            places = self._places(iteration)
            objective = self.passes.halfway(iteration.params, iteration.params)
            step = Step(
                "start" if last is None else "update", iteration.iteration, iteration.params, centers,
                _reorder(sizes, places), labels, changed, objective, None,
                captions.start(len(centers), "center"),
                assign_params=iteration.params, places=places,
            )  # fmt: skip
            if last is not None:
                movement = float(_movement(last, step).max())
                caption = captions.batch(iteration.iteration, movement, changed or 0, self.n)
                step = replace(step, caption=caption)
            yield step
            last = step

    @property
    def _maximised(self) -> str | None:
        """The name of the objective if it is maximised; None if the model minimises."""
        return self.model.maximizes if isinstance(self.model, Maximizer) else None

    @property
    def _has_bound(self) -> bool:
        """Whether the steps maximise a lower bound of a log-likelihood."""
        return self._maximised == "log-likelihood"

    @property
    def _is_joint(self) -> bool:
        """Whether the cluster of a row depends on all rows."""
        return isinstance(self.model, JointAssignment)

    def _objective(self, iteration: Iteration) -> float:
        if not self._maximised:
            return iteration.objective
        return -iteration.objective if iteration.likelihood is None else iteration.likelihood

    def _places(self, iteration: Iteration) -> np.ndarray | None:
        """Return the final number of each component (k,) if iterations sort the components, or a caller did."""
        last, numbers = self.iterations[-1].origin, self.numbers
        places = None if iteration.origin is None or last is None else np.argsort(last)[iteration.origin]
        return places if numbers is None else numbers if places is None else numbers[places]

    def _centers(self, iteration: Iteration, assigned_by: Iteration) -> np.ndarray:
        """Return the centers (k, d) in the final order, or means of the rows as assigned at `assigned_by`."""
        params = iteration.params
        location = getattr(getattr(params, "parts", None), "location", None)
        for centers in (params, getattr(params, "centers", None), getattr(params, "means", None), location):
            if isinstance(centers, np.ndarray):
                # Centers of series of different lengths end with NaN.
                filled = np.where(np.isnan(centers), self.fill, centers).astype(np.float64)
                return _reorder(filled, self._places(iteration))
        return _reorder(self.passes.means(assigned_by.params), self._places(assigned_by))

    def _caption_of_assignment(self, last: Step, step: Step) -> str:
        if not self._maximised:
            kind = "soft" if isinstance(self.model, SoftAssignment) else "joint" if self._is_joint else "nearest"
            return captions.assignment(step.changed, self.n, kind)
        if self._has_bound:
            gap = step.objective - (step.bound or 0.0)
            return captions.e_step(self.model.e_step_kind, self.objective_name, gap, step.changed, self.n)
        rise = None if last.kind == "start" else _rise(last.objective, step.objective)
        return captions.variational("E", self.objective_name, rise, step.changed, self.n)

    def _caption_of_update(self, last: Step, step: Step) -> str:
        if not self._maximised:
            movement = _movement(last, step)
            empty = np.flatnonzero((last.sizes == 0) & (movement > 0))
            return captions.update(movement, empty.tolist())
        rise = _rise(last.objective, step.objective)
        if not self._has_bound:
            return captions.variational("M", self.objective_name, rise, None, self.n)
        reinitialised = [event.component for event in step.params.events if event.what == "reseeded"]
        reinitialised = reinitialised if step.places is None else step.places[reinitialised].tolist()
        bound_rise = _rise(last.bound or 0.0, step.bound or 0.0)
        return captions.m_step(self.model.e_step_kind, self.objective_name, bound_rise, rise, reinitialised)


def thinned(iterations: list[Iteration], limit: int | None) -> list[Iteration]:
    """At most `limit` iterations: half of them are the first ones, the others are pairs at equal distances, and last.

    A pair of consecutive iterations has an update between its assignments.
    """
    n = len(iterations)
    if limit is None or n <= limit:
        return iterations
    first = max(1, limit // 2)
    n_pairs = max(1, (limit - first) // 2)
    seconds = np.unique(np.linspace(first, n - 1, n_pairs + 1)[1:].round().astype(int))
    rows = sorted({*range(first), *(i for second in seconds.tolist() for i in (second - 1, second))})
    return [iterations[i] for i in rows]


def _rise(before: float, after: float) -> float:
    """Return the difference, or 0 if rounding errors explain it."""
    return after - before if abs(after - before) > ROUNDING * max(abs(before), abs(after)) else 0.0


def _reorder(values: Any, places: np.ndarray | None) -> np.ndarray:
    """Return values of the components of the model in their final order."""
    return np.asarray(values) if places is None else np.asarray(values)[np.argsort(places)]


def _movement(before: Step, after: Step) -> np.ndarray:
    """Return the distance that each center moved (k,)."""
    return np.linalg.norm(after.centers - before.centers, axis=1)


# Statistics of all rows at the parameters of a recorded fit, computed by passes over the data.


@dataclass(frozen=True)
class Assignment(Stats):
    """Sizes of the clusters, and the number of rows whose cluster changed."""

    sizes: Any  # (k,) weight of the rows of each cluster
    changed: Any  # number of rows


class RowPasses:
    """Passes over all rows of a fit, on the engine of the fit."""

    def __init__(self, model: Any, source: Source, engine: Engine):
        self.model, self.source, self.engine = model, source, engine

    def assignment(self, params: Any, previous: Any, k: int, component_map: np.ndarray | None) -> Assignment:
        """Return the sizes of the clusters at `params`, and the number of rows whose cluster at `previous` differs.

        `component_map` (k,) maps components at `params` to components at `previous`, which may be None.
        """
        step = partial(_assignment, self.model, params, previous, k, component_map)
        return self.engine.sum(step, self.source)

    def labels(self, params: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels of all rows at `params` (n,), and the sizes of the clusters (k,)."""
        parts = self.engine.map(partial(_labels, self.model, params, k), self.source)
        labels = np.concatenate([np.asarray(part[0]) for part in parts])
        return labels, np.sum([part[1] for part in parts], axis=0)

    def halfway(self, assign_params: Any, params: Any, order: np.ndarray | None = None) -> float:
        """Return the objective at `params` for rows that are assigned by `assign_params`."""
        options = {} if order is None else {"order": order}
        stats = self.engine.sum(partial(self.model.halfway, assign_params, params, **options), self.source)
        return float(self.model.objective(params, stats))

    def means(self, params: Any) -> np.ndarray:
        """Return the mean of each component (k, d), weighted by responsibilities; the overall mean if it is empty."""
        sums = self.engine.sum(partial(_sums, self.model, params), self.source)
        overall = sums.sum_x.sum(axis=0) / np.maximum(sums.weight.sum(axis=0), np.finfo(np.float64).tiny)
        has_weight = sums.weight > 0
        return np.where(has_weight, sums.sum_x / np.where(has_weight, sums.weight, 1.0), overall)


def _assignment(
    model: Any, params: Any, previous: Any, k: int, component_map: np.ndarray | None, chunk: Chunk
) -> Assignment:
    labels = np.asarray(model.assign(params, chunk))
    sizes = np.bincount(labels, chunk.w, k).astype(np.float64)
    if previous is None:
        return Assignment(sizes, 0)
    labels = labels if component_map is None else component_map[labels]
    return Assignment(sizes, int(np.count_nonzero(labels != np.asarray(model.assign(previous, chunk)))))


def _labels(model: Any, params: Any, k: int, chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
    labels = np.asarray(model.assign(params, chunk))
    return labels, np.bincount(labels, chunk.w, k).astype(np.float64)


def _sums(model: Any, params: Any, chunk: Chunk) -> WeightedSums:
    r = np.asarray(model.probabilities(params, chunk), dtype=np.float64)
    r = (r if chunk.w is None else chunk.w[:, None] * r).T
    if is_sparse(chunk.X):
        weight = np.broadcast_to(r.sum(axis=1)[:, None], (len(r), chunk.X.shape[1]))
        return WeightedSums(weight, np.asarray((chunk.X.T @ r.T).T, dtype=np.float64))
    is_known = ~np.isnan(chunk.X)
    return WeightedSums(r @ is_known, r @ np.where(is_known, chunk.X, 0.0))
