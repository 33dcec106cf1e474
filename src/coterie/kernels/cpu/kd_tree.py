"""A tree of boxes around points (k-d tree), in which the nearest is found without looking at most.

Box k has the halves 2 k + 1 and 2 k + 2, cut across its longest side; the last level are the leaves. For few columns
only: the more there are, the more boxes are near.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_inner

LEAF = 8  # points that a leaf has at most
DEEP = 64  # boxes that wait while a search goes down: no more than there are levels


class Boxes(NamedTuple):
    low: Any  # (boxes, d)
    high: Any  # (boxes, d)
    light: Any  # (boxes,) no point inside weighs less
    group: Any  # (boxes,) int64, the group of all points inside; -1 if there are several
    first: Any  # (leaves,) int64, where the members of each leaf begin
    count: Any  # (leaves,) int64
    member: Any  # (n,) int64, points leaf by leaf
    leaf: Any  # (points,) int64, the leaf of each


def built(points: np.ndarray, weight: np.ndarray, members: np.ndarray) -> Boxes:
    """The boxes of those `points` (all, d) that are `members`."""
    d, leaves = points.shape[1], 1
    while leaves * LEAF < len(members):
        leaves *= 2
    low, high, light = np.empty((2 * leaves - 1, d)), np.empty((2 * leaves - 1, d)), np.empty(2 * leaves - 1)
    first, count, group = np.empty(leaves, np.int64), np.empty(leaves, np.int64), np.full(2 * leaves - 1, -1)
    boxes = Boxes(low, high, light, group, first, count, members.copy(), np.zeros(len(points), np.int64))
    _divide(points, weight, boxes, np.empty(2 * leaves, np.int64))
    return boxes


@jit
def _divide(points, weight, boxes, cuts):
    """Cuts box after box in two halves of equally many points; cuts (2 leaves,) is room."""
    leaves, member = len(boxes.first), boxes.member
    level, step = 1, leaves  # boxes of a level; how many leaves each has
    cuts[0], cuts[leaves] = 0, len(member)
    while True:
        for i in range(level):
            box, start, stop = level - 1 + i, cuts[i * step], cuts[(i + 1) * step]
            side = _enclose(points, weight, boxes, box, start, stop)
            if step > 1:
                cuts[i * step + step // 2] = (start + stop) // 2
                _halve(points, side, member, start, stop)
        if step == 1:
            break
        level, step = 2 * level, step // 2
    for i in range(leaves):
        boxes.first[i], boxes.count[i] = cuts[i], cuts[i + 1] - cuts[i]
        for k in range(cuts[i], cuts[i + 1]):
            boxes.leaf[member[k]] = i


@jit_inner
def _enclose(points, weight, boxes, box, start, stop):
    """Sets the sides of a box; the longest one."""
    longest = 0
    for t in range(points.shape[1]):
        low, high = np.inf, -np.inf
        for k in range(start, stop):
            x = points[boxes.member[k], t]
            low, high = min(low, x), max(high, x)
        boxes.low[box, t], boxes.high[box, t] = low, high
        if high - low > boxes.high[box, longest] - boxes.low[box, longest]:
            longest = t
    light = np.inf
    for k in range(start, stop):
        light = min(light, weight[boxes.member[k]])
    boxes.light[box] = light
    return longest


@jit_inner
def _halve(points, side, member, start, stop):
    """Hoare's selection: the lower half along `side` comes first."""
    middle, low, high = (start + stop) // 2, start, stop - 1
    while low < high:
        pivot = points[member[(low + high) // 2], side]
        i, j = low, high
        while i <= j:
            while points[member[i], side] < pivot:
                i += 1
            while points[member[j], side] > pivot:
                j -= 1
            if i <= j:
                member[i], member[j] = member[j], member[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            break


@jit
def find_groups(boxes, group):
    """Says of every box whether all points inside are of one group (all,), and of which."""
    leaves = len(boxes.first)
    for box in range(2 * leaves - 2, -1, -1):
        leaf = box - (leaves - 1)
        if leaf < 0:
            left, right = boxes.group[2 * box + 1], boxes.group[2 * box + 2]
            boxes.group[box] = left if left == right else -1
            continue
        boxes.group[box] = group[boxes.member[boxes.first[leaf]]]
        for k in range(boxes.first[leaf] + 1, boxes.first[leaf] + boxes.count[leaf]):
            if group[boxes.member[k]] != boxes.group[box]:
                boxes.group[box] = -1


@jit_inner
def joining_cost(points, weight, a, b):
    """Twice the rise of the sum of squares if a and b join, |a - b|^2 for weights of 1; the same number for (b, a)."""
    total = 0.0
    for t in range(points.shape[1]):
        difference = points[a, t] - points[b, t]
        total += difference * difference
    return 2.0 * total * (weight[a] * weight[b] / (weight[a] + weight[b]))


@jit_inner
def _least_cost(points, weight, a, boxes, box):
    """No point inside the box costs less to join; empty boxes, of infinite weight, are infinitely far."""
    total = 0.0
    for t in range(points.shape[1]):
        outside = max(boxes.low[box, t] - points[a, t], points[a, t] - boxes.high[box, t], 0.0)
        total += outside * outside
    return 2.0 * total * (weight[a] / (weight[a] / boxes.light[box] + 1.0))


@jit_inner
def search(boxes, points, weight, group, a, limit, waiting, costs):
    """The point of another group than a's that is cheapest to join, and its cost, less than `limit`; -1 for none.

    waiting, costs (DEEP,) are room.
    """
    halves, own, found = len(boxes.first) - 1, group[a], -1
    waiting[0], costs[0], count = 0, 0.0, 1
    while count > 0:
        count -= 1
        box, cost = waiting[count], costs[count]
        while cost < limit and boxes.group[box] != own and box < halves:
            left, right = 2 * box + 1, 2 * box + 2
            cost = _least_cost(points, weight, a, boxes, left)
            other = _least_cost(points, weight, a, boxes, right)
            box = left
            if other < cost:
                box, cost, right, other = right, other, left, cost
            waiting[count], costs[count] = right, other
            count += 1
        if cost >= limit or boxes.group[box] == own:
            continue
        start = boxes.first[box - halves]
        for k in range(start, start + boxes.count[box - halves]):
            b = boxes.member[k]
            if group[b] != own:
                cost = joining_cost(points, weight, a, b)
                if cost < limit:
                    limit, found = cost, b
    return found, limit


@jit_inner
def drop(boxes, points, weight, point):
    """Takes a point out of its leaf."""
    leaf = boxes.leaf[point]
    start, last = boxes.first[leaf], boxes.first[leaf] + boxes.count[leaf] - 1
    for k in range(start, last):
        if boxes.member[k] == point:
            boxes.member[k] = boxes.member[last]
            break
    boxes.count[leaf] -= 1
    renew(boxes, points, weight, point)


@jit_inner
def renew(boxes, points, weight, point):
    """Brings the boxes around a point that is another now up to date."""
    leaf, halves = boxes.leaf[point], len(boxes.first) - 1
    box = leaf + halves
    _enclose(points, weight, boxes, box, boxes.first[leaf], boxes.first[leaf] + boxes.count[leaf])
    while box > 0:
        box = (box - 1) // 2
        left, right = 2 * box + 1, 2 * box + 2
        for t in range(points.shape[1]):
            boxes.low[box, t] = min(boxes.low[left, t], boxes.low[right, t])
            boxes.high[box, t] = max(boxes.high[left, t], boxes.high[right, t])
        boxes.light[box] = min(boxes.light[left], boxes.light[right])
