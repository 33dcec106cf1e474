"""Beam search for the conditions that describe one cluster best.

The values of a sample of rows are replaced by the numbers of their bins, between thresholds. A condition is then a
range of bins, and one pass over the rows gives the quality of all conditions that could be added to a rule.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.explanation.columns import Column
from coterie.explanation.rules import Condition, as_date, calendar_threshold

WIDTH = 5  # of the beam
PENALTY = 0.02  # a part of a condition must raise phi by so much
COLUMNS = 40  # considered after the first condition
PRECISIONS = np.array([0.2, 0.35, 0.5, 0.65, 0.8, 0.95])[:, np.newaxis]  # a range is extended to bins above these
MAX_VALUES = 3  # categories of a condition


@dataclass(frozen=True)
class BinnedColumn:
    """The bins of a column: ranges of numbers between thresholds, or categories."""

    name: str
    levels: tuple[str, ...] | None
    thresholds: Array  # (bins - 1,)
    values: Array | None  # (bins,) the only value in each bin, of columns with few different numbers
    bins: int
    codes: Array  # (m,) bin of each row; `bins` if the value is missing
    is_date: bool = False
    has_times: bool = False

    def bound(self, value: float) -> float | date:
        """A threshold or value of the column, as conditions have it."""
        return as_date(float(value), with_time=self.has_times) if self.is_date else float(value)


@dataclass(frozen=True)
class Choice:
    """Bins of a column: from `first` to `last`, or the categories in `levels`."""

    first: int = 0
    last: int = 0
    levels: tuple[int, ...] = ()


@dataclass(frozen=True)
class State:
    """A rule during the search."""

    choices: dict[int, Choice]  # by column
    mask: Array  # (m,) rows that satisfy all conditions
    score: float  # phi less the penalty


def binned(column: Column, codes: Array, k: int) -> BinnedColumn:
    """Bins for a column of rows in k clusters."""
    if column.levels is not None:
        values = np.where(column.values < 0, len(column.levels), column.values).astype(np.int64)
        return BinnedColumn(column.name, column.levels, np.empty(0), None, len(column.levels), values)
    x = column.values
    cuts = thresholds(x, codes, k, column.dtype, calendar_threshold if column.is_date else None)
    compared = cuts.astype(column.dtype).astype(np.float64)
    bins = np.searchsorted(compared, x, side="left")
    bins[np.isnan(x)] = len(cuts) + 1
    distinct = np.unique(x[np.isfinite(x)])
    has_few = len(distinct) <= QUANTILES and len(distinct) == len(cuts) + 1 <= FEW_VALUES
    # The shortest text of a number in its precision: 0.1 of float32(0.1), which is 0.10000000149 in float64.
    few = np.array([float(str(column.dtype(value))) for value in distinct]) if has_few else None
    return BinnedColumn(column.name, None, cuts, few, len(cuts) + 1, bins, column.is_date, column.has_times)


class RuleSearch:
    """Rules for the clusters of a sample of rows."""

    def __init__(self, columns: Sequence[BinnedColumn], codes: Array, w: Array):
        self.columns = columns
        self.codes, self.w = codes, w  # (m,) cluster, -1 for none; (m,) weight
        sizes = [column.bins + 1 for column in columns]
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.bins = np.stack([column.codes for column in columns], axis=1) + self.starts[:-1]  # (m, d)

    def best(self, cluster: int, max_conditions: int) -> tuple[Condition, ...]:
        """The best rule for a cluster; no conditions if none separates any of its rows."""
        goal = _Goal(self.codes == cluster, self.w)
        beam = [State({}, np.ones(len(self.w), bool), 0.0)]
        best, allowed = beam[0], list(range(len(self.columns)))
        for step in range(max_conditions):
            states = [state for each in beam for state in self._extensions(each, goal, allowed, max_conditions)]
            states = _distinct(sorted(states, key=lambda state: -state.score))
            if step == 0:
                allowed = [next(iter(state.choices)) for state in states[:COLUMNS]]
            beam = states[:WIDTH]
            if not beam or (step > 0 and beam[0].score <= best.score):
                break
            best = max(best, beam[0], key=lambda state: state.score)
        best = self._refined(best, goal, max_conditions)
        return tuple(self._condition(j, choice) for j, choice in best.choices.items())

    def _extensions(self, state: State, goal: "_Goal", allowed: Sequence[int], max_conditions: int) -> list[State]:
        """The state with the best condition on each column."""
        total, inside = self._histograms(state.mask, goal)
        result = []
        for j in allowed:
            if j not in state.choices and len(state.choices) == max_conditions:
                continue
            span = slice(self.starts[j], self.starts[j + 1] - 1)
            choice = _best_choice(self.columns[j], inside[span], total[span], goal)
            if choice is not None:
                choices = state.choices | {j: _intersection(state.choices.get(j), choice)}
                result.append(self._state(choices, state.mask & self._mask(j, choice), goal))
        return result

    def _refined(self, state: State, goal: "_Goal", max_conditions: int) -> State:
        """The state after each condition was dropped, or chosen again for the rows that satisfy the others."""
        for j in list(state.choices):
            others = {column: choice for column, choice in state.choices.items() if column != j}
            mask = np.ones(len(self.w), bool)
            for column, choice in others.items():
                mask &= self._mask(column, choice)
            without = self._state(others, mask, goal)
            candidates = [state, *([without] if others else []), *self._extensions(without, goal, [j], max_conditions)]
            state = max(candidates, key=lambda each: each.score)
        return state

    def _histograms(self, mask: Array, goal: "_Goal") -> tuple[Array, Array]:
        """Weight of the rows in `mask`, and of those in the cluster, in each bin of each column."""
        d, size = len(self.columns), int(self.starts[-1])
        rows = self.bins[mask]
        w = self.w[mask]
        total = np.bincount(rows.ravel(), np.repeat(w, d), size)
        is_member = goal.is_member[mask]
        inside = np.bincount(rows[is_member].ravel(), np.repeat(w[is_member], d), size)
        return total, inside

    def _mask(self, j: int, choice: Choice) -> Array:
        codes = self.columns[j].codes
        if choice.levels:
            return np.isin(codes, choice.levels)
        return (codes >= choice.first) & (codes <= choice.last)

    def _state(self, choices: dict[int, Choice], mask: Array, goal: "_Goal") -> State:
        correct, fitting = (np.array([self.w[rows].sum()]) for rows in (mask & goal.is_member, mask))
        phi = float(goal.phi(correct, fitting)[0])
        size = sum(_parts(self.columns[j], choice) for j, choice in choices.items())
        return State(choices, mask, phi - PENALTY * size)

    def _condition(self, j: int, choice: Choice) -> Condition:
        column = self.columns[j]
        if column.levels is not None:
            return Condition(column.name, values=tuple(column.levels[level] for level in sorted(choice.levels)))
        if column.values is not None and choice.first == choice.last:
            return Condition(column.name, values=(column.bound(column.values[choice.first]),))
        return Condition(
            column.name,
            lower=column.bound(column.thresholds[choice.first - 1]) if choice.first > 0 else None,
            upper=column.bound(column.thresholds[choice.last]) if choice.last < column.bins - 1 else None,
        )


class _Goal:
    """The rows of a cluster, and the quality of a set of rows as a description of it."""

    def __init__(self, is_member: Array, w: Array):
        self.is_member = is_member
        self.inside = float(w[is_member].sum())
        self.outside = float(w.sum()) - self.inside

    def phi(self, correct: Array, fitting: Array) -> Array:
        """Correlation of two properties: a row is in a set with weight `fitting`; a row is in the cluster."""
        total = self.inside + self.outside
        product = np.maximum(fitting * (total - fitting), 0.0) * self.inside * self.outside
        covariance = correct * self.outside - (fitting - correct) * self.inside
        return np.divide(covariance, np.sqrt(product), out=np.zeros_like(covariance), where=product > 0)


def _best_choice(column: BinnedColumn, inside: Array, total: Array, goal: _Goal) -> Choice | None:
    if column.levels is not None:
        return _best_levels(inside, total, goal)
    return _best_range(column, inside, total, goal)


def _best_levels(inside: Array, total: Array, goal: _Goal) -> Choice | None:
    """One to three categories: those with the highest share of the cluster."""
    share = np.divide(inside, total, out=np.full(len(inside), -1.0), where=total > 0)
    order = np.argsort(-share, kind="stable")[: min(MAX_VALUES, np.count_nonzero(total) - 1)]
    if len(order) == 0:
        return None
    phi = goal.phi(np.cumsum(inside[order]), np.cumsum(total[order]))
    n = int(np.argmax(phi - PENALTY * np.arange(1, len(order) + 1))) + 1
    return Choice(levels=tuple(order[:n].tolist()))


def _best_range(column: BinnedColumn, inside: Array, total: Array, goal: _Goal) -> Choice | None:
    """A range of bins: the best with one end, and the heaviest ranges for several precisions."""
    last = column.bins - 1
    if last == 0:
        return None
    sum_inside, sum_total = (np.concatenate([[0.0], np.cumsum(each)]) for each in (inside, total))
    ends = np.arange(last)
    gain = np.cumsum(inside - PRECISIONS * total, axis=1)
    before = np.concatenate([np.zeros((len(gain), 1)), gain[:, :-1]], axis=1)
    lowest = np.minimum.accumulate(before, axis=1)
    stop = np.argmax(gain - lowest, axis=1)
    start = np.argmax(before == np.take_along_axis(lowest, stop[:, None], axis=1), axis=1)
    first = np.concatenate([np.zeros(last, np.int64), ends + 1, start]).astype(np.int64)
    final = np.concatenate([ends, np.full(last, last), stop]).astype(np.int64)
    phi = goal.phi(sum_inside[final + 1] - sum_inside[first], sum_total[final + 1] - sum_total[first])
    has_one_value = (first == final) & (column.values is not None)
    parts = np.where(has_one_value, 1, (first > 0).astype(int) + (final < last))
    best = int(np.argmax(np.where(parts == 0, -np.inf, phi - PENALTY * parts)))
    return Choice(int(first[best]), int(final[best])) if parts[best] else None


def _intersection(old: Choice | None, new: Choice) -> Choice:
    if old is None:
        return new
    if new.levels:
        return replace(new, levels=tuple(level for level in new.levels if level in old.levels))
    return Choice(max(old.first, new.first), min(old.last, new.last))


def _parts(column: BinnedColumn, choice: Choice) -> int:
    """How much there is to read: categories, or ends of a range."""
    if choice.levels:
        return len(choice.levels)
    if column.values is not None and choice.first == choice.last:
        return 1
    return (choice.first > 0) + (choice.last < column.bins - 1)


def _distinct(states: Sequence[State]) -> list[State]:
    """The first of each set of states with the same conditions."""
    seen = {tuple(sorted((j, choice.first, choice.last, choice.levels) for j, choice in state.choices.items())): state
            for state in reversed(states)}  # fmt: skip
    return sorted(seen.values(), key=lambda state: -state.score)


# Thresholds for the columns of a table: numbers with few digits, near the quantiles of rows and of clusters.

FEW_VALUES = 64  # a column with at most so many different values has a threshold between any two
QUANTILES = 32  # of all rows
CLUSTER_QUANTILES = (0.0, 1.0, 0.02, 0.98, 0.1, 0.9, 0.25, 0.75, 0.5)
MAX_THRESHOLDS = 255
LARGEST_POWER = 300  # of ten, for numbers that are rounded
WINDOW = 400  # a threshold may move past one row in so many if it gets shorter


def thresholds(
    x: Array, codes: Array, k: int, dtype: Any, roundest: Callable[[float, float, Any], float] | None = None
) -> Array:
    """Thresholds for the values `x` (n,) of rows in k clusters (`codes`; -1: none), ascending; NaN is ignored.

    Each has the fewest digits of all numbers between two neighbouring values, or in a short range of values if there
    are many. They are in the precision of the column, `dtype`. `roundest` replaces `shortest` for values that are no
    decimal numbers.
    """
    roundest = roundest or shortest
    is_present = np.isfinite(x)
    x, codes = x[is_present], codes[is_present]
    distinct, counts = np.unique(x, return_counts=True)
    if len(distinct) <= FEW_VALUES:
        pairs = list(zip(distinct[:-1].tolist(), distinct[1:].tolist(), strict=True))
        is_whole = bool((distinct == np.round(distinct)).all())
        if is_whole and len(distinct) <= QUANTILES and roundest is shortest:  # of whole numbers: the values themselves
            return distinct[:-1]
    else:
        pairs = _ranges(x, codes, k, distinct, np.cumsum(counts))
    return np.unique([roundest(low, high, dtype) for low, high in pairs])


def _ranges(x: Array, codes: Array, k: int, distinct: Array, ranks: Array) -> list[tuple[float, float]]:
    """Ranges of values, each of which gets one threshold: near quantiles of all rows and of every cluster."""
    n = len(x)
    inner = np.arange(1, QUANTILES) / QUANTILES
    targets = [(np.quantile(x, inner, method="lower"), n // WINDOW)]
    cluster_quantiles = CLUSTER_QUANTILES[: max(2, (MAX_THRESHOLDS - QUANTILES) // max(k, 1))]
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(k + 1))
    for start, stop in pairwise(starts.tolist()):
        if stop > start:
            members = x[order[start:stop]]
            values = np.quantile(members, cluster_quantiles, method="lower")
            values[0] = np.nextafter(values[0], -np.inf)  # a threshold below the minimum
            targets.append((values, len(members) // WINDOW))
    result: set[tuple[float, float]] = set()
    for values, margin in targets:
        positions = np.searchsorted(distinct, values, side="right") - 1
        positions = positions[(positions >= 0) & (positions < len(distinct) - 1)]
        low = np.searchsorted(ranks, ranks[positions] - margin)
        high = np.minimum(np.searchsorted(ranks, ranks[positions] + margin) + 1, len(distinct) - 1)
        result.update(zip(distinct[low].tolist(), distinct[high].tolist(), strict=True))
    return sorted(result)


def shortest(low: float, high: float, dtype: Any = np.float64) -> float:
    """The number of the fewest decimal digits in [low, high); of these, the one nearest to the middle.

    In the precision `dtype` it is still in [low, high), so it separates the two numbers there, too.
    """
    if low <= 0.0 < high:
        return 0.0
    middle = low / 2 + high / 2
    exponent = math.floor(math.log10(max(abs(low), abs(high))))
    for digits in range(18):
        power = exponent - digits
        if abs(power) > LARGEST_POWER:
            break
        scale = 10.0 ** abs(power)
        scaled = [value / scale if power >= 0 else value * scale for value in (low, middle, high)]
        first, last = math.ceil(scaled[0]), math.ceil(scaled[2]) - 1
        if first > last:
            continue
        value = float(f"{min(max(round(scaled[1]), first), last)}e{power}")
        if low <= value < high and low <= float(dtype(value)) < high:
            return value
    return low
