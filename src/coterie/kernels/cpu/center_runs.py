"""Runs of K-means and its relatives within one call, for tables that fit into the cache of a core.

A run alternates between the costs of all rows and new centers, in float64. Rows are stored by column too, so that
vector code runs over rows, whatever the number of centers.
"""

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_reassociating
from coterie.kernels.cpu.sums import inner, sum_of

BLOCK = 256  # rows whose costs stay in the cache
TINY = 1e-300  # a smaller distance is divided by as this one
# What a center is. The cost of a row at it is a squared distance (for directions, of rows and centers of unit length),
# an L1 distance, or a Euclidean distance; in fuzzy c-means each row has memberships in all clusters.
KINDS = ("means", "directions", "medians", "geometric medians", "fuzzy means")
MIN_DECREASE = 1e-10  # minimum relative decrease of the objective by a row that moves, which rounding cannot explain
ULP = 2.0**-52  # relative decrease below which the objective does not change
MEANS, DIRECTIONS, MEDIANS, GEOMETRIC_MEDIANS, FUZZY_MEANS = range(5)


class Table(NamedTuple):
    """The rows, and the kind of the centers."""

    X: Any  # (n, d)
    columns: Any  # (d, n) the transpose
    w: Any  # (n,) not negative
    order: Any  # (d, n) int32: rows in the order of each column, for medians; (0, 0) for other centers
    kind: int
    fuzzifier: float


class State(NamedTuple):
    """Arrays of one run."""

    centers: Any  # (k, d)
    sums: Any  # (k, d) of w x
    weight: Any  # (k,)
    count: Any  # (k,) rows
    is_changed: Any  # (k,) whether the rows of a cluster have changed
    is_moved: Any  # (k,) whether a center has moved since `first` was computed
    is_new: Any  # (k,) the same in the first step
    moved: Any  # (k,) indices of these centers
    near: Any  # (n,) cost of each row
    block: Any  # (k, BLOCK) costs of a block of rows at each center
    total: Any  # (at least BLOCK and 2 k,) costs at one center, or sums of memberships
    labels: Any  # (n,)
    nearest: Any  # (n,) nearest centers
    rest: Any  # (n,) rows that are compared with all centers
    columns: Any  # (d, BLOCK) some of them, by column
    rest_near: Any  # (BLOCK,) their costs
    rest_nearest: Any  # (BLOCK,) their nearest centers
    first: Any  # (n,) costs at the nearest centers when all were compared
    second: Any  # (n,) the same at the second nearest centers
    owners: Any  # (n,) nearest centers then
    path: Any  # (steps, k, d) centers before each step; (0, k, d) if they are not wanted
    values: Any  # (steps,) and their objectives


def as_table(X: np.ndarray, w: np.ndarray | None, kind: str = "means", fuzzifier: float = 2.0) -> Table:
    """Rows for runs with centers of one of the `KINDS`."""
    X = np.ascontiguousarray(X, np.float64)
    w = np.ones(len(X)) if w is None else np.ascontiguousarray(w, np.float64)
    columns = np.ascontiguousarray(X.T)
    order = np.argsort(columns, axis=1).astype(np.int32) if kind == "medians" else np.zeros((0, 0), np.int32)
    return Table(X, columns, w, order, KINDS.index(kind), float(fuzzifier))


def new_state(n: int, d: int, k: int, steps: int = 0) -> State:
    """Arrays of a run over n rows of d columns, with k centers, and for the path of so many steps."""
    labels, nearest, rest, owners = np.empty((4, n), np.int32)
    centers, sums = np.zeros((2, k, d))
    count, moved = np.zeros((2, k), np.int64)
    is_changed, is_moved, is_new = np.zeros((3, k), np.bool_)
    some, some_near, some_nearest = np.zeros((d, BLOCK)), np.empty(BLOCK), np.empty(BLOCK, np.int32)
    near, first, second = np.empty((3, n))
    block, total = np.empty((k, BLOCK)), np.empty(max(BLOCK, 2 * k))
    path, values = np.empty((steps, k, d)), np.empty(steps)
    return State(
        centers, sums, np.zeros(k), count, is_changed, is_moved, is_new, moved, near, block, total, labels, nearest,
        rest, some, some_near, some_nearest, first, second, owners, path, values,
    )  # fmt: skip


@jit
def descend(
    table,  # in   Table
    k,  # number of centers
    max_iter,
    tol,  # squared movement of all centers that ends a run
    precision,  # decrease of the objective, relative to it, that ends a run
    to_beat,  # a run ends if its objective exceeds this by more than
    patience,  # this multiple of its last decrease
    is_known,  # whether `state` is complete except for the centers in `is_moved`
    state,  # i/o  State
):
    """Improve the centers; return their objective, its last two decreases, and the number of passes.

    The last decrease is 0 if the run has converged.
    """
    if not is_known:
        clear(k, state)
        for j in range(k):
            state.is_moved[j] = True
    objective, gain, gain_before, is_last = np.inf, np.inf, np.inf, False
    for step in range(max_iter + 1):
        previous, gain_before = objective, gain
        if table.kind == FUZZY_MEANS:
            share_rows(table, k, state)
            changes = 1
        else:
            for j in range(k):  # centers that the caller has moved are not the means of their rows
                state.is_new[j] = step == 0 and is_known and state.is_moved[j]
            reassign(table, k, state)
            changes = update_clusters(table, k, state)
            for j in range(k):
                changes += state.is_new[j]
                state.is_changed[j] |= state.is_new[j]
        objective = inner(table.w, state.near)
        if step < len(state.path):
            copy_centers(state.centers, k, state.path[step])
            state.values[step] = objective
        gain = previous - objective
        if table.kind == GEOMETRIC_MEDIANS:
            changes = 1
        is_hopeless = step > 1 and objective - patience * gain > to_beat
        if changes == 0 or is_last or is_hopeless or step == max_iter:
            if changes == 0 or is_last:
                gain = 0.0
            break
        if step > 0 and gain <= precision * objective:
            gain = 0.0
            break
        is_last = move_centers(table, k, state) <= tol
    return objective, gain_before, gain, step + 1


@jit
def clear(k, state):
    """Remove all rows from all clusters."""
    for i in range(len(state.labels)):
        state.labels[i] = -1
    for j in range(k):
        state.weight[j] = 0.0
        state.count[j] = 0
        for t in range(state.sums.shape[1]):
            state.sums[j, t] = 0.0


@jit
def assign(table, k, state):
    """Nearest center of each row, the first one if several are, and the cost there."""
    for start in range(0, len(state.near), BLOCK):
        minimum, label = state.near[start : start + BLOCK], state.nearest[start : start + BLOCK]
        for i in range(len(minimum)):
            minimum[i] = np.inf
            label[i] = 0
        for j in range(k):
            costs(table.kind, table.columns, state.centers[j], start, len(minimum), state.total)
            update_nearest(state.total, minimum, label, np.int32(j))


@jit
def reassign(table, k, state):
    """As `assign`, but compare rows only with centers in `is_moved`, and with others if the bounds do not exclude them.

    If many have moved, all are compared, for new bounds.
    """
    n_moved, n_rest = 0, 0
    for j in range(k):
        if state.is_moved[j]:
            state.moved[n_moved] = j
            n_moved += 1
    if 2 * n_moved > k:
        two_nearest(table, state.centers[:k], state)
        for i in range(len(state.near)):
            state.near[i], state.nearest[i] = state.first[i], state.owners[i]
        for j in range(k):
            state.is_moved[j] = False
        return
    for start in range(0, len(state.near), BLOCK):
        near, label = state.near[start : start + BLOCK], state.nearest[start : start + BLOCK]
        first, owners = state.first[start : start + BLOCK], state.owners[start : start + BLOCK]
        for i in range(len(near)):
            near[i], label[i] = np.inf if state.is_moved[owners[i]] else first[i], owners[i]
        for j in state.moved[:n_moved]:
            costs(table.kind, table.columns, state.centers[j], start, len(near), state.total)
            update_first(state.total, near, label, np.int32(j))
        for i in range(len(near)):
            if near[i] >= state.second[start + i] and state.is_moved[owners[i]]:
                state.rest[n_rest] = start + i
                n_rest += 1
    near, label = state.rest_near, state.rest_nearest
    for start in range(0, n_rest, BLOCK):
        rows = state.rest[start : min(start + BLOCK, n_rest)]
        for q in range(len(rows)):
            near[q], label[q] = state.near[rows[q]], state.nearest[rows[q]]
            for t in range(table.X.shape[1]):
                state.columns[t, q] = table.X[rows[q], t]
        for j in range(k):
            if not state.is_moved[j]:
                costs(table.kind, state.columns, state.centers[j], 0, len(rows), state.total)
                update_first(state.total, near[: len(rows)], label, np.int32(j))
        for q in range(len(rows)):
            state.near[rows[q]], state.nearest[rows[q]] = near[q], label[q]


@jit
def update_first(cost, minimum, label, j):
    """Update the nearest centers with center j; of several, the first one."""
    for i in range(len(minimum)):
        is_less = (cost[i] < minimum[i]) | ((cost[i] == minimum[i]) & (j < label[i]))
        minimum[i] = cost[i] if is_less else minimum[i]
        label[i] = j if is_less else label[i]


@jit
def update_nearest(cost, minimum, label, j):
    """Update the nearest centers with center j."""
    for i in range(len(minimum)):
        is_less = cost[i] < minimum[i]
        minimum[i] = cost[i] if is_less else minimum[i]
        label[i] = j if is_less else label[i]


@jit
def costs(kind, columns, center, start, n, out):
    """Costs of n rows, at most a block, at one center."""
    if kind == MEDIANS:
        deviations(columns, center, start, n, out)
    else:
        squares(columns, center, start, n, out)
        if kind == GEOMETRIC_MEDIANS:
            for i in range(n):
                out[i] = np.sqrt(out[i])


@jit
def squares(columns, center, start, n, out):
    """Squared distances of n rows, at most a block, to one center."""
    for i in range(n):
        out[i] = 0.0
    d = len(center)
    for t in range(0, d - 3, 4):  # four columns at once: fewer loads and stores of the squares
        c0, c1, c2, c3 = center[t], center[t + 1], center[t + 2], center[t + 3]
        x0, x1 = columns[t, start : start + n], columns[t + 1, start : start + n]
        x2, x3 = columns[t + 2, start : start + n], columns[t + 3, start : start + n]
        for i in range(n):
            total = out[i] + (x0[i] - c0) * (x0[i] - c0)
            total += (x1[i] - c1) * (x1[i] - c1)
            total += (x2[i] - c2) * (x2[i] - c2)
            out[i] = total + (x3[i] - c3) * (x3[i] - c3)
    for t in range(d - d % 4, d):
        at, column = center[t], columns[t, start : start + n]
        for i in range(n):
            difference = column[i] - at
            out[i] += difference * difference


@jit
def deviations(columns, center, start, n, out):
    """L1 distances of n rows, at most a block, to one center."""
    for i in range(n):
        out[i] = 0.0
    for t in range(len(center)):
        at, column = center[t], columns[t, start : start + n]
        for i in range(n):
            out[i] += abs(column[i] - at)


@jit
def update_clusters(table, k, state):
    """Update labels and sums of clusters; return the number of rows whose label changed."""
    changes = 0
    for j in range(k):
        state.is_changed[j] = False
    for i in range(len(table.w)):
        if state.labels[i] != state.nearest[i]:
            changes += 1
            move_row(table, i, state)
    return changes


@jit
def move_row(table, i, state):
    """Move row `i` from its cluster, if it has one, to its nearest center."""
    w, x, sums, weight, count = table.w[i], table.X[i], state.sums, state.weight, state.count
    a, b = state.labels[i], state.nearest[i]
    d = len(x) if table.kind <= DIRECTIONS else 0
    state.labels[i] = b
    weight[b] += w
    count[b] += 1
    state.is_changed[b] = True
    for t in range(d):
        sums[b, t] += w * x[t]
    if a >= 0:
        count[a] -= 1
        state.is_changed[a] = True
        # The sums of an empty cluster are exactly zero, so that rounding errors do not remain.
        weight[a] = weight[a] - w if count[a] > 0 else 0.0
        for t in range(d):
            sums[a, t] = sums[a, t] - w * x[t] if count[a] > 0 else 0.0


@jit
def move_centers(table, k, state):
    """Move centers to the best places for their rows; return the sum of squared movements."""
    if table.kind == MEDIANS:
        movement = move_to_medians(table, k, state)
    elif table.kind == GEOMETRIC_MEDIANS:
        movement = move_towards_medians(table, k, state)
    else:
        movement = move_to_means(table, k, state)
    for j in range(k):
        if state.weight[j] == 0 and table.kind != FUZZY_MEANS:
            movement += move_to_costliest(table, j, state)
    return movement


@jit
def move_to_costliest(table, j, state):
    """Move an empty cluster to the row with the largest cost; return the squared movement."""
    X, w, near, far, movement = table.X, table.w, state.near, 0, 0.0
    for i in range(len(w)):
        if w[i] * near[i] > w[far] * near[far]:
            far = i
    near[far] = 0.0
    state.is_moved[j] = True
    for t in range(X.shape[1]):
        movement += (X[far, t] - state.centers[j, t]) ** 2
        state.centers[j, t] = X[far, t]
    return movement


@jit
def move_to_means(table, k, state):
    """Move centers to the weighted means of their rows, or to the directions of the means."""
    movement = 0.0
    for j in range(k):
        if not state.is_changed[j] and table.kind != FUZZY_MEANS:
            continue
        divisor = state.weight[j]
        if table.kind == DIRECTIONS:
            divisor = 0.0
            for t in range(table.X.shape[1]):
                divisor += state.sums[j, t] ** 2
            divisor = np.sqrt(divisor)
        if state.weight[j] > 0 and divisor > 0:
            state.is_moved[j] = True
            for t in range(table.X.shape[1]):
                target = state.sums[j, t] / divisor
                movement += (target - state.centers[j, t]) ** 2
                state.centers[j, t] = target
    return movement


@jit
def move_to_medians(table, k, state):
    """Move the centers of changed clusters to the medians, column by column."""
    movement, n = 0.0, len(table.w)
    below = state.total  # weight of the rows of each cluster so far
    for t in range(table.X.shape[1]):
        left = 0
        for j in range(k):
            below[j] = 0.0
            left += state.is_changed[j] and state.weight[j] > 0
        for position in range(n):
            if left == 0:
                break
            i = table.order[t, position]
            j = state.labels[i]
            half = 0.5 * state.weight[j]
            if not state.is_changed[j] or table.w[i] == 0 or below[j] > half:
                continue
            is_middle = below[j] == half
            below[j] += table.w[i]
            x = table.columns[t, i]
            if is_middle:  # half of the weight is below: the mean of both values
                state.sums[j, t] = 0.5 * (state.sums[j, t] + x)
                below[j] = np.inf
                left -= 1
            elif below[j] >= half:
                state.sums[j, t] = x
                left -= below[j] > half
    for j in range(k):
        if state.is_changed[j] and state.weight[j] > 0:
            state.is_moved[j] = True
            for t in range(table.X.shape[1]):
                movement += (state.sums[j, t] - state.centers[j, t]) ** 2
                state.centers[j, t] = state.sums[j, t]
    return movement


@jit
def move_towards_medians(table, k, state):
    """One step of Weiszfeld's algorithm, with the correction of Vardi & Zhang for rows on centers."""
    X, w, centers, sums = table.X, table.w, state.centers, state.sums
    inverse, on = state.total[:k], state.total[k : 2 * k]
    for j in range(k):
        inverse[j] = 0.0
        on[j] = 0.0
        for t in range(X.shape[1]):
            sums[j, t] = 0.0
    for i in range(len(w)):
        j = state.labels[i]
        if state.near[i] > 0:
            ratio = w[i] / state.near[i]
            inverse[j] += ratio
            for t in range(X.shape[1]):
                sums[j, t] += ratio * (X[i, t] - centers[j, t])
        else:
            on[j] += w[i]
    movement = 0.0
    for j in range(k):
        length = 0.0
        for t in range(X.shape[1]):
            length += sums[j, t] ** 2
        length = np.sqrt(length)
        state.is_moved[j] = True
        if length > on[j]:
            factor = (1.0 - on[j] / length) / inverse[j]
            movement += (length * factor) ** 2
            for t in range(X.shape[1]):
                centers[j, t] += sums[j, t] * factor
    return movement


@jit
def share_rows(table, k, state):
    """Memberships of all rows, and the sums of clusters with them; `near` are the costs."""
    d, n, exponent = table.X.shape[1], len(table.w), 1.0 / (table.fuzzifier - 1.0)
    for j in range(k):
        state.weight[j] = 0.0
        for t in range(d):
            state.sums[j, t] = 0.0
    for start in range(0, n, BLOCK):
        size = min(BLOCK, n - start)
        near, label, w = state.near[start : start + size], state.labels[start : start + size], table.w[start:]
        for i in range(size):
            near[i] = np.inf
            label[i] = 0
            state.total[i] = 0.0
        for j in range(k):
            squares(table.columns, state.centers[j], start, size, state.block[j])
            update_nearest(state.block[j], near, label, np.int32(j))
        for j in range(k):
            share = state.block[j]
            for i in range(size):
                share[i] = (near[i] + TINY) / (share[i] + TINY)
            if exponent != 1.0:
                for i in range(size):
                    share[i] = share[i] ** exponent
            for i in range(size):
                state.total[i] += share[i]
        for j in range(k):
            share = state.block[j]
            for i in range(size):
                share[i] /= state.total[i]
            if exponent == 1.0:
                for i in range(size):
                    share[i] = w[i] * share[i] * share[i]
            else:
                for i in range(size):
                    share[i] = w[i] * share[i] ** table.fuzzifier
            state.weight[j] += sum_of(share[:size])
            for t in range(d):
                state.sums[j, t] += inner(share[:size], table.columns[t, start : start + size])
        if exponent == 1.0:
            for i in range(size):
                near[i] /= state.total[i]
        else:
            for i in range(size):
                near[i] /= state.total[i] ** (table.fuzzifier - 1.0)


# Initial centers.


@jit
def plusplus(table, u, state):
    """Draw centers by greedy k-means++; without further distinct rows, the rest equal the first one."""
    k = len(state.centers)
    n_candidates = (len(u) - 1) // max(k - 1, 1)
    draw_first(table, u[0], state)
    copy_centers(state.sums, 1, state.centers)
    for i in range(len(table.w)):
        state.near[i] = np.inf
    add_center(table, -1, state.centers[0], state)
    for j in range(1, k):
        first = 1 + (j - 1) * n_candidates
        row = best_candidate(table, u[first : first + n_candidates], state)
        if row < 0:
            copy_centers(state.centers[:1], 1, state.centers[j : j + 1])
        else:
            add_center(table, row, state.centers[j], state)


@jit
def draw_first(table, u, state):
    """Draw the first center by weight; it is written to the first row of `sums`."""
    for i in range(len(table.w)):
        state.near[i] = 1.0
    row = draw(table.w, state.near, inner(table.w, state.near), u)
    for t in range(table.X.shape[1]):
        state.sums[0, t] = table.X[row, t]


@jit
def draw(w, near, total, u):
    """Draw a row with probability proportional to w near."""
    target, cumulative, row = u * total, 0.0, -1
    for i in range(len(w)):
        mass = w[i] * near[i]
        if mass > 0:
            row = i
            cumulative += mass
            if cumulative > target:
                break
    return row


@jit
def best_candidate(table, u, state):
    """The random candidate that decreases the cost most, one for each `u`; -1 if all rows equal a center."""
    total, best, minimum = inner(table.w, state.near), -1, np.inf
    if not total > 0:
        return -1
    for c in range(len(u)):
        row, potential = draw(table.w, state.near, total, u[c]), 0.0
        for start in range(0, len(table.w), BLOCK):
            near = state.near[start : start + BLOCK]
            costs(table.kind, table.columns, table.X[row], start, len(near), state.total)
            combine(near, state.total, table)
            potential += inner(table.w[start : start + BLOCK], state.total)
        if potential < minimum:
            best, minimum = row, potential
    return best


@jit
def combine(near, cost, table):
    """Write the costs with a further center to `cost`, from those at this center and at the others."""
    if table.kind != FUZZY_MEANS:
        for i in range(len(near)):
            cost[i] = near[i] if near[i] < cost[i] else cost[i]
    elif table.fuzzifier == 2.0:
        for i in range(len(near)):
            cost[i] = 1.0 / (1.0 / near[i] + 1.0 / cost[i])
    else:
        power = 1.0 / (table.fuzzifier - 1.0)
        for i in range(len(near)):
            low, high = min(near[i], cost[i]), max(near[i], cost[i])
            if low > 0 and high < np.inf:
                low *= (1.0 + (low / high) ** power) ** (-1.0 / power)
            cost[i] = low


@jit
def add_center(table, row, target, state):
    """Write a row as a center unless `row` is -1, and update the costs at the nearest center."""
    if row >= 0:
        for t in range(table.X.shape[1]):
            target[t] = table.X[row, t]
    for start in range(0, len(state.near), BLOCK):
        near = state.near[start : start + BLOCK]
        costs(table.kind, table.columns, target, start, len(near), state.total)
        combine(near, state.total, table)
        for i in range(len(near)):
            near[i] = state.total[i]


@jit
def copy_centers(rows, k, target):
    for j in range(k):
        for t in range(rows.shape[1]):
            target[j, t] = rows[j, t]


@jit
def seeds(
    table,  # in   Table
    u,  # in   (runs, 1 + (k - 1) c) uniform in [0, 1), for c candidates
    state,  # i/o  State
    centers,  # out  (runs, 2, k, d)
):
    """Centers of greedy k-means++, twice."""
    k = centers.shape[2]
    for r in range(len(u)):
        plusplus(table, u[r], state)
        move_off_rows(table, k, state)
        for which in range(2):
            copy_centers(state.centers, k, centers[r, which])


@jit
def move_off_rows(table, k, state):
    """In fuzzy c-means, move centers on rows to the means of their nearest rows: a membership of 1 would keep them."""
    if table.kind != FUZZY_MEANS:
        return
    X, w = table.X, table.w
    assign(table, k, state)
    for j in range(k):
        state.is_changed[j] = False
        state.weight[j] = 0.0
        for t in range(X.shape[1]):
            state.sums[j, t] = 0.0
    for i in range(len(w)):
        j = state.nearest[i]
        state.is_changed[j] |= state.near[i] == 0
        state.weight[j] += w[i]
        for t in range(X.shape[1]):
            state.sums[j, t] += w[i] * X[i, t]
    for j in range(k):
        if state.is_changed[j] and state.weight[j] > 0:
            for t in range(X.shape[1]):
                state.centers[j, t] = state.sums[j, t] / state.weight[j]


@jit
def center_runs(
    table,  # in   Table
    max_iter,
    tol,  # see `descend`
    precision,
    to_beat,
    patience,
    state,  # i/o  State
    centers,  # i/o  (runs, 2, k, d), of which the first change
    objectives,  # out  (runs,)
    gains,  # out  (2, runs) the last two decreases
):
    """Descents, each abandoned if it is unlikely to beat `to_beat` and earlier runs; return the number of passes."""
    passes, k = 0, centers.shape[2]
    for r in range(len(centers)):
        copy_centers(centers[r, 0], k, state.centers)
        objectives[r], gains[0, r], gains[1, r], steps = descend(
            table, k, max_iter, tol, precision, to_beat, patience, False, state
        )
        passes += steps
        to_beat = min(to_beat, objectives[r])
        copy_centers(state.centers, k, centers[r, 0])
    return passes


@jit
def two_nearest(table, centers, state):
    """Costs of all rows at the nearest and second nearest centers, in `first` and `second`; labels in `owners`."""
    for start in range(0, len(table.w), BLOCK):
        end = start + BLOCK
        first, second, owners = state.first[start:end], state.second[start:end], state.owners[start:end]
        for i in range(len(first)):
            first[i], second[i] = np.inf, np.inf
        for j in range(len(centers)):
            costs(table.kind, table.columns, centers[j], start, len(first), state.total)
            for i in range(len(first)):
                cost = state.total[i]
                is_less = cost < first[i]
                other = first[i] if is_less else cost
                second[i] = other if other < second[i] else second[i]
                first[i] = cost if is_less else first[i]
                owners[i] = np.int32(j) if is_less else owners[i]


@jit
def swap_costs(
    table,  # in   Table
    u,  # in   (c,) uniform in [0, 1)
    state,  # i/o  State; in: of `two_nearest`
    rows,  # out  (c,) candidates, drawn by their cost; -1 if every row equals a center
    totals,  # out  (k, c + 1) objective with a candidate in place of a center; at last, without the center
    owners,  # out  (c,) clusters of the candidates
):
    """Objectives after each swap of a center for a row, without moving the other centers (Schubert & Rousseeuw)."""
    k, n, n_candidates = len(totals), len(table.w), len(u)
    objective = inner(table.w, state.first)
    totals[:] = 0.0
    for q in range(n_candidates + 1):
        with_all = 0.0
        if q < n_candidates:
            rows[q] = draw(table.w, state.first, objective, u[q])
            if rows[q] < 0:
                totals[:, q] = np.inf
                continue
            owners[q] = state.owners[rows[q]]
        for start in range(0, n, BLOCK):
            size = min(BLOCK, n - start)
            if q < n_candidates:
                costs(table.kind, table.columns, table.X[rows[q]], start, size, state.total)
            else:
                state.total[:BLOCK] = np.inf
            for i in range(size):
                mass, best = table.w[start + i], min(state.total[i], state.first[start + i])
                with_all += mass * best
                without = min(state.total[i], state.second[start + i])
                totals[state.owners[start + i], q] += mass * (without - best)
        for j in range(k):
            totals[j, q] += with_all
    return objective


@jit
def move_rows(
    table,  # in   Table
    k,  # number of centers, which are means
    state,  # i/o  State, complete
):
    """Move single rows to other clusters if that decreases the objective (Hartigan & Wong); return their number.

    Removing a row from its cluster decreases the objective by ``w W / (W - w) |x - c|^2``, and adding it to another one
    increases it by ``w W / (W + w) |x - c|^2``. A comparison with the second nearest center rejects most rows.
    """
    X, w, labels, weight, centers = table.X, table.w, state.labels, state.weight, state.centers
    changes, lightest, total = 0, np.inf, inner(w, state.first)
    for j in range(k):
        state.is_moved[j] = False
        lightest = min(lightest, weight[j])
    for i in range(len(w)):
        a = labels[i]
        if w[i] == 0 or state.count[a] == 1 or weight[a] <= w[i]:
            continue
        removal = weight[a] / (weight[a] - w[i])
        if not state.is_moved[a] and state.second[i] * (lightest / (lightest + w[i])) >= state.first[i] * removal:
            continue
        minimum = square(X[i], centers[a]) * removal * (1.0 - MIN_DECREASE) - ULP * total / w[i]
        target = -1
        for j in range(k):
            cost = square(X[i], centers[j]) * (weight[j] / (weight[j] + w[i]))
            if cost < minimum and j != a:
                target, minimum = j, cost
        if target >= 0:
            state.nearest[i] = target
            move_row(table, i, state)
            for j in (np.int64(a), np.int64(target)):
                state.is_moved[j] = True
                for t in range(X.shape[1]):
                    centers[j, t] = state.sums[j, t] / weight[j]
            lightest = min(lightest, weight[a])
            changes += 1
    return changes


@jit_reassociating
def square(x, center):
    """Squared distance of one row to a center."""
    result = 0.0
    for t in range(len(center)):
        result += (x[t] - center[t]) ** 2
    return result


@jit
def complete(table, k, state):
    """Costs, labels, bounds and sums for the centers of `state`."""
    two_nearest(table, state.centers[:k], state)
    clear(k, state)
    for i in range(len(table.w)):
        state.near[i], state.nearest[i] = state.first[i], state.owners[i]
    update_clusters(table, k, state)


@jit
def copy_solution(source, k, target):
    """Copy a complete solution."""
    copy_centers(source.centers, k, target.centers)
    copy_centers(source.sums, k, target.sums)
    for j in range(k):
        target.weight[j], target.count[j] = source.weight[j], source.count[j]
    for i in range(len(source.labels)):
        target.labels[i], target.owners[i] = source.labels[i], source.owners[i]
        target.first[i], target.second[i] = source.first[i], source.second[i]


@jit
def polish(
    table,  # in   Table
    passes,  # maximum number of passes over single rows
    max_iter,
    tol,  # see `descend`
    precision,
    min_gain,  # of a pass, relative to the objective
    state,  # i/o  State; out: complete
    centers,  # i/o  (k, d)
    objective,  # of the centers
):
    """Alternate between moves of single rows and descents; return the objective and the number of passes."""
    k, steps = len(centers), 0
    for p in range(passes + 1):
        copy_centers(centers, k, state.centers)
        complete(table, k, state)
        steps += 1
        if p == passes or move_rows(table, k, state) == 0:
            break
        end, _, _, n_steps = descend(table, k, max_iter, tol, precision, np.inf, 1.0, True, state)
        steps += n_steps
        if not end < objective * (1.0 - min_gain):
            passes = p + 1
        if end < objective:
            objective = end
            copy_centers(state.centers, k, centers)
    return objective, steps


@jit
def swap_rounds(
    table,  # in   Table
    u,  # in   (rounds, c) uniform in [0, 1), for c candidates in each round
    tries,  # maximum number of swaps of a round that are followed by a descent
    quiet,  # rounds without a gain that end the search
    row_passes,  # maximum number of passes over single rows after a gain
    max_iter,
    tol,  # see `descend`
    precision,
    min_gain,  # of a swap, relative to the objective
    base,  # i/o  State of the current centers
    state,  # i/o  State
    centers,  # i/o  (2, k, d) current and initial centers
    objective,  # of the current centers
):
    """Swap centers for rows, where a descent from there ends lower.

    Return the objective, the number of passes, the rounds since the last gain, and whether there was any.
    """
    k, d = centers.shape[1:]
    n_candidates, failures, passes, before, has_gained = u.shape[1], 0, 0, objective, True
    rows, owners = np.empty(n_candidates, np.int64), np.zeros(n_candidates, np.int64)
    totals, trial = np.empty((k, n_candidates + 1)), np.empty((k, d))
    for r in range(len(u)):
        if has_gained:
            objective, steps = polish(
                table, row_passes, max_iter, tol, precision, min_gain, base, centers[0], objective
            )
            passes += steps - 1
        swap_costs(table, u[r], base, rows, totals, owners)
        passes += 1 + 2 * n_candidates // k
        has_gained = False
        for _ in range(tries):
            removed, candidate, lowest = -1, -1, np.inf
            for j in range(k):
                for q in range(n_candidates):
                    if totals[j, q] < lowest:
                        removed, candidate, lowest = j, q, totals[j, q]
            if removed < 0:
                break
            for q in range(n_candidates):  # other rows of the same cluster give similar results
                if owners[q] == owners[candidate]:
                    totals[removed, q] = np.inf
            if row_passes:
                copy_solution(base, k, state)
            else:
                copy_centers(centers[0], k, state.centers)
            for t in range(d):
                state.centers[removed, t] = table.X[rows[candidate], t]
            move_off_rows(table, k, state)
            copy_centers(state.centers, k, trial)
            goal = objective * (1.0 - min_gain)
            for j in range(k):
                state.is_moved[j] = j == removed
            is_known = row_passes > 0
            end, _, _, steps = descend(table, k, max_iter, tol, precision, goal, 1.0, is_known, state)
            passes += steps
            if end < goal:
                copy_centers(trial, k, centers[1])
                copy_centers(state.centers, k, centers[0])
                objective, has_gained = end, True
                break
        failures = 0 if has_gained else failures + 1
        if failures >= quiet:
            break
    return objective, passes, failures, objective < before
