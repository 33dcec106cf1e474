"""Neighbours of rows with few columns, by a k-d tree: lists, mutual reachability, and neighbourhoods of a radius.

The points are in the order of the leaves. A search starts at the leaf of its point and goes up, so it is local.
"""

import numpy as np

from coterie.kernels.cpu.density import insert
from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.kd_tree import MAX_DEPTH, KDTree, box_square, build, over_boxes
from coterie.kernels.cpu.linkage import root
from coterie.kernels.cpu.sums import squared_distance


def sorted_tree(X: np.ndarray) -> tuple[KDTree, np.ndarray, np.ndarray]:
    """The k-d tree of rows (n, d), the rows in the order of its leaves, and this order."""
    n = len(X)
    points = X.astype(np.float64)
    tree = build(points, np.ones(n), np.arange(n))
    order = tree.member
    return tree._replace(member=np.arange(n), leaf=tree.leaf[order]), np.ascontiguousarray(points[order]), order


@jit
def _farthest_square(tree, box, point):
    """Squared distance to the farthest point of a box."""
    total = 0.0
    for t in range(len(point)):
        far = max(tree.high[box, t] - point[t], point[t] - tree.low[box, t])
        total += far * far
    return total


@jit
def _sibling(box):
    return box + 1 if box % 2 == 1 else box - 1


@jit
def nearest_lists(tree, points, rows, index, value):
    """The k nearest other points of each of `rows` (m,), and their squared distances; index (m, k) int32, value (m, k).

    Returns the number of leaves that were visited.
    """
    pending, squares = np.empty(MAX_DEPTH, np.int64), np.empty(MAX_DEPTH)
    first_leaf, k, visited = len(tree.first) - 1, index.shape[1], 0
    for r in range(len(rows)):
        row = rows[r]
        point, near, far = points[row], index[r], value[r]
        for t in range(k):
            near[t], far[t] = -1, np.inf
        box = first_leaf + tree.leaf[row]
        pending[0], squares[0], count = box, 0.0, 1
        while True:
            while count > 0:
                count -= 1
                other, square = pending[count], squares[count]
                if square >= far[k - 1]:
                    continue
                while other < first_leaf:
                    left = 2 * other + 1
                    square, right_square = box_square(tree, left, point), box_square(tree, left + 1, point)
                    other, away = left, left + 1
                    if right_square < square:
                        other, away, square, right_square = away, other, right_square, square
                    if right_square < far[k - 1]:
                        pending[count], squares[count] = away, right_square
                        count += 1
                if square >= far[k - 1]:
                    continue
                visited += 1
                start = tree.first[other - first_leaf]
                for b in range(start, start + tree.count[other - first_leaf]):
                    distance = squared_distance(points[b], point)
                    if distance < far[k - 1] and b != row:
                        insert(near, far, b, distance)
            if box == 0:
                break
            pending[0], squares[0], count = _sibling(box), box_square(tree, _sibling(box), point), 1
            box = (box - 1) // 2
    return visited


@jit
def search_outside(
    tree,  # in   k-d tree, with the minimum core distances of its boxes
    points,  # in   (n, d)
    core,  # in   (n,) squared core distances
    forest,  # i/o  squared mutual reachability distances
    limit,  # i/o  (n,) by tree of the forest: distances to search
    start,
    stop,
):
    """Find the nearest points of other trees for the points `start` to `stop` that may be nearer than the limit."""
    pending, reaches = np.empty(MAX_DEPTH, np.int64), np.empty(MAX_DEPTH)
    first_leaf = len(tree.first) - 1
    for i in range(start, stop):
        own = forest.tree[i]
        best = limit[own]
        if forest.lower[i] >= best:
            continue
        point, low, near = points[i], core[i], -1
        box = first_leaf + tree.leaf[i]
        pending[0], reaches[0], count = box, low, 1
        while True:
            while count > 0:
                count -= 1
                other, reach = pending[count], reaches[count]
                while reach < best and tree.group[other] != own and other < first_leaf:
                    left = 2 * other + 1
                    reach = max(low, tree.min_weight[left], box_square(tree, left, point))
                    right_reach = max(low, tree.min_weight[left + 1], box_square(tree, left + 1, point))
                    other, away = left, left + 1
                    if right_reach < reach:
                        other, away, reach, right_reach = away, other, right_reach, reach
                    pending[count], reaches[count] = away, right_reach
                    count += 1
                if reach >= best or tree.group[other] == own:
                    continue
                first = tree.first[other - first_leaf]
                for b in range(first, first + tree.count[other - first_leaf]):
                    if forest.tree[b] != own and core[b] < best:
                        reach = max(low, core[b], squared_distance(points[b], point))
                        if reach < best:
                            best, near = reach, b
            if box == 0 or low >= best:
                break
            away = _sibling(box)
            pending[0], count = away, 1
            reaches[0] = max(low, tree.min_weight[away], box_square(tree, away, point))
            box = (box - 1) // 2
        forest.lower[i] = max(forest.lower[i], best)
        if near >= 0:
            forest.near[i], forest.upper[i], limit[own] = near, best, best


@jit
def sum_weights(tree, weight):
    """The sum of `weight` (n,) in each box."""
    leaves = len(tree.first)
    total = np.zeros(2 * leaves - 1)
    for box in range(2 * leaves - 2, -1, -1):
        leaf = box - (leaves - 1)
        if leaf < 0:
            total[box] = total[2 * box + 1] + total[2 * box + 2]
            continue
        for k in range(tree.first[leaf], tree.first[leaf] + tree.count[leaf]):
            total[box] += weight[k]
    return total


@jit
def mark_core(tree, points, weight, box_weight, square, min_weight, is_core, start, stop):
    """Mark the points within whose squared radius the points have the minimum weight."""
    pending = np.empty(MAX_DEPTH, np.int64)
    first_leaf = len(tree.first) - 1
    for i in range(start, stop):
        point, total, box = points[i], 0.0, first_leaf + tree.leaf[i]
        pending[0], count = box, 1
        while total < min_weight:
            while count > 0 and total < min_weight:
                count -= 1
                other = pending[count]
                if box_weight[other] == 0 or box_square(tree, other, point) > square:
                    continue
                if _farthest_square(tree, other, point) <= square:
                    total += box_weight[other]
                elif other < first_leaf:
                    pending[count], pending[count + 1] = 2 * other + 1, 2 * other + 2
                    count += 2
                else:
                    first = tree.first[other - first_leaf]
                    for b in range(first, first + tree.count[other - first_leaf]):
                        if squared_distance(points[b], point) <= square:
                            total += weight[b]
            if box == 0:
                break
            pending[0], count = _sibling(box), 1
            box = (box - 1) // 2
        is_core[i] = total >= min_weight


@jit
def connect_small_boxes(tree, is_core, square, parent):
    """Connect the core points of each box whose diagonal is within the radius; one core point of each such box.

    The result (boxes,) is -1 for boxes without core points, and -2 for boxes with a longer diagonal.
    """
    leaves = len(tree.first)
    member = np.full(2 * leaves - 1, -1)
    for box in range(2 * leaves - 2, -1, -1):
        diagonal = 0.0
        for t in range(tree.low.shape[1]):
            side = tree.high[box, t] - tree.low[box, t]
            diagonal += side * side
        leaf = box - (leaves - 1)
        if diagonal > square:
            member[box] = -2
        elif leaf < 0:
            for child in range(2 * box + 1, 2 * box + 3):
                if member[child] >= 0:
                    _unite(parent, member, box, member[child])
        else:
            for k in range(tree.first[leaf], tree.first[leaf] + tree.count[leaf]):
                if is_core[k]:
                    _unite(parent, member, box, k)
    return member


@jit
def _unite(parent, member, box, point):
    if member[box] < 0:
        member[box] = point
    a, b = root(parent, member[box]), root(parent, point)
    parent[max(a, b)] = min(a, b)


@jit
def connect_core(tree, points, is_core, member, square, parent, start, stop):
    """Connect the core points `start` to `stop` with all core points within the radius."""
    pending = np.empty(MAX_DEPTH, np.int64)
    first_leaf = len(tree.first) - 1
    for i in range(start, stop):
        if not is_core[i]:
            continue
        point, count, own = points[i], 1, root(parent, i)
        pending[0] = 0
        while count > 0:
            count -= 1
            box = pending[count]
            if member[box] == -1 or (member[box] >= 0 and root(parent, member[box]) == own):
                continue
            if box_square(tree, box, point) > square:
                continue
            if box < first_leaf:
                pending[count], pending[count + 1] = 2 * box + 1, 2 * box + 2
                count += 2
                continue
            first = tree.first[box - first_leaf]
            for b in range(first, first + tree.count[box - first_leaf]):
                if is_core[b] and squared_distance(points[b], point) <= square:
                    a, other = root(parent, own), root(parent, b)
                    parent[max(a, other)] = own = min(a, other)
                    if member[box] >= 0:
                        break


@jit
def lowest_labels(tree, points, labels, box_label, queries, square, out, start, stop):
    """The lowest label of the points within the radius of `queries` `start` to `stop`; -1 if there is none.

    labels (n,) are -1 for points that do not count; box_label (boxes,) the lowest label in each box, or -1.
    """
    pending = np.empty(MAX_DEPTH, np.int64)
    first_leaf = len(tree.first) - 1
    for i in range(start, stop):
        point, lowest, count = queries[i], -1, 1
        pending[0] = 0
        while count > 0:
            count -= 1
            box = pending[count]
            label = box_label[box]
            if label < 0 or (0 <= lowest <= label) or box_square(tree, box, point) > square:
                continue
            if box < first_leaf:
                pending[count], pending[count + 1] = 2 * box + 1, 2 * box + 2
                count += 2
                continue
            first = tree.first[box - first_leaf]
            for b in range(first, first + tree.count[box - first_leaf]):
                if (
                    labels[b] >= 0
                    and (lowest < 0 or labels[b] < lowest)
                    and squared_distance(points[b], point) <= square
                ):
                    lowest = labels[b]
        out[i] = lowest


def lowest_in_boxes(tree: KDTree, labels: np.ndarray) -> np.ndarray:
    """The lowest label in each box; -1 if all labels in it are -1."""
    none = len(labels)
    lowest = over_boxes(tree, np.where(labels < 0, none, labels).astype(np.int64), np.minimum)
    return np.where(lowest == none, -1, lowest)
