"""A k-d tree of bounding boxes, for nearest neighbours by Ward's distance.

Box k has the children 2 k + 1 and 2 k + 2, split across its longest side; the last level are the leaves. It is
efficient for few columns only.
"""

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.sums import squared_distance

LEAF = 8  # maximum number of points of a leaf
MAX_DEPTH = 64  # maximum number of pending boxes of a search, one for each level


class KDTree(NamedTuple):
    """Bounding boxes, and the points of the leaves."""

    low: Any  # (boxes, d)
    high: Any  # (boxes, d)
    min_weight: Any  # (boxes,) minimum weight of the points inside
    group: Any  # (boxes,) int64, the group of all points inside; -1 if they have several
    first: Any  # (leaves,) int64, index of the first member of each leaf
    count: Any  # (leaves,) int64, number of points
    member: Any  # (n,) int64, points leaf by leaf
    leaf: Any  # (points,) int64, leaf of each point


def build(points: np.ndarray, weight: np.ndarray, members: np.ndarray) -> KDTree:
    """Build the tree of those `points` (n, d) whose indices are `members`."""
    d, leaves = points.shape[1], 1
    while leaves * LEAF < len(members):
        leaves *= 2
    low, high, min_weight = np.empty((2 * leaves - 1, d)), np.empty((2 * leaves - 1, d)), np.empty(2 * leaves - 1)
    first, count, group = np.empty(leaves, np.int64), np.empty(leaves, np.int64), np.full(2 * leaves - 1, -1)
    tree = KDTree(low, high, min_weight, group, first, count, members.copy(), np.zeros(len(points), np.int64))
    _split(points, weight, tree, np.empty(2 * leaves, np.int64))
    return tree


@jit
def _split(points, weight, tree, cuts):
    """Split each box into halves with equally many points; `cuts` (2 leaves,) is work space."""
    leaves, member = len(tree.first), tree.member
    level, step = 1, leaves  # boxes of a level; number of leaves of each
    cuts[0], cuts[leaves] = 0, len(member)
    while True:
        for i in range(level):
            box, start, stop = level - 1 + i, cuts[i * step], cuts[(i + 1) * step]
            side = _enclose(points, weight, tree, box, start, stop)
            if step > 1:
                cuts[i * step + step // 2] = (start + stop) // 2
                _halve(points, side, member, start, stop)
        if step == 1:
            break
        level, step = 2 * level, step // 2
    for i in range(leaves):
        tree.first[i], tree.count[i] = cuts[i], cuts[i + 1] - cuts[i]
        for k in range(cuts[i], cuts[i + 1]):
            tree.leaf[member[k]] = i


@jit
def _enclose(points, weight, tree, box, start, stop):
    """Compute a box around its points; return its longest side."""
    longest = 0
    for t in range(points.shape[1]):
        low, high = np.inf, -np.inf
        for k in range(start, stop):
            x = points[tree.member[k], t]
            low, high = min(low, x), max(high, x)
        tree.low[box, t], tree.high[box, t] = low, high
        if high - low > tree.high[box, longest] - tree.low[box, longest]:
            longest = t
    min_weight = np.inf
    for k in range(start, stop):
        min_weight = min(min_weight, weight[tree.member[k]])
    tree.min_weight[box] = min_weight
    return longest


@jit
def _halve(points, side, member, start, stop):
    """Move the lower half along `side` to the front, by Hoare's selection."""
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


def over_boxes(tree: KDTree, values: np.ndarray, reduce: np.ufunc) -> np.ndarray:
    """Reduction of `values` (n,) over the points of each box."""
    levels = [reduce.reduceat(values[tree.member], tree.first)]
    while len(levels[0]) > 1:
        levels.insert(0, reduce(levels[0][::2], levels[0][1::2]))
    return np.concatenate(levels)


def set_groups(tree: KDTree, group: np.ndarray) -> None:
    """Set the group of each box whose points are all of one `group` (n,)."""
    low, high = (over_boxes(tree, group, reduce) for reduce in (np.minimum, np.maximum))
    tree.group[:] = np.where(low == high, low, -1)


@jit
def ward_distance(points, weight, a, b):
    """Ward's distance: twice the increase of the sum of squares if a and b are merged; |a - b|^2 for weights of 1.

    It is symmetric to the last bit.
    """
    return 2.0 * squared_distance(points[a], points[b]) * (weight[a] * weight[b] / (weight[a] + weight[b]))


@jit
def box_square(tree, box, point):
    """Squared distance to the nearest point of a box; infinite for empty boxes."""
    total = 0.0
    for t in range(len(point)):
        outside = max(tree.low[box, t] - point[t], point[t] - tree.high[box, t], 0.0)
        total += outside * outside
    return total


@jit
def _min_distance(points, weight, a, tree, box):
    """Lower bound of Ward's distance from a to the points of a box; infinite for empty boxes."""
    return 2.0 * box_square(tree, box, points[a]) * (weight[a] / (weight[a] / tree.min_weight[box] + 1.0))


@jit
def search(tree, points, weight, group, a, limit, pending, distances):
    """The nearest point of another group than a's by Ward's distance, and the distance, if below `limit`; otherwise -1.

    pending, distances (MAX_DEPTH,) are work space.
    """
    first_leaf, group_of_a, nearest = len(tree.first) - 1, group[a], -1
    pending[0], distances[0], count = 0, 0.0, 1
    while count > 0:
        count -= 1
        box, distance = pending[count], distances[count]
        while distance < limit and tree.group[box] != group_of_a and box < first_leaf:
            left, right = 2 * box + 1, 2 * box + 2
            distance = _min_distance(points, weight, a, tree, left)
            other = _min_distance(points, weight, a, tree, right)
            box = left
            if other < distance:
                box, distance, right, other = right, other, left, distance
            pending[count], distances[count] = right, other
            count += 1
        if distance >= limit or tree.group[box] == group_of_a:
            continue
        start = tree.first[box - first_leaf]
        for k in range(start, start + tree.count[box - first_leaf]):
            b = tree.member[k]
            if group[b] != group_of_a:
                distance = ward_distance(points, weight, a, b)
                if distance < limit:
                    limit, nearest = distance, b
    return nearest, limit


@jit
def remove(tree, points, weight, point):
    """Remove a point from its leaf."""
    leaf = tree.leaf[point]
    start, last = tree.first[leaf], tree.first[leaf] + tree.count[leaf] - 1
    for k in range(start, last):
        if tree.member[k] == point:
            tree.member[k] = tree.member[last]
            break
    tree.count[leaf] -= 1
    update(tree, points, weight, point)


@jit
def update(tree, points, weight, point):
    """Update the boxes around a point that has moved."""
    leaf, first_leaf = tree.leaf[point], len(tree.first) - 1
    box = leaf + first_leaf
    _enclose(points, weight, tree, box, tree.first[leaf], tree.first[leaf] + tree.count[leaf])
    while box > 0:
        box = (box - 1) // 2
        left, right = 2 * box + 1, 2 * box + 2
        for t in range(points.shape[1]):
            tree.low[box, t] = min(tree.low[left, t], tree.low[right, t])
            tree.high[box, t] = max(tree.high[left, t], tree.high[right, t])
        tree.min_weight[box] = min(tree.min_weight[left], tree.min_weight[right])
