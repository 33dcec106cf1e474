"""K-medoids by FasterPAM (Schubert & Rousseeuw 2021): changes of the loss by swaps, swaps, and whole descents.

For each of m objects, `slot` and `near` (3, m) are the indices and distances of its three nearest medoids (-1 and
infinity if there are only two). Most candidates are farther from most objects than these. So vector code first compares
a row of distances with them, and only the objects that are nearer are processed.

The loss is the sum of `w` times the distance to the nearest medoid, or times its ratio to the distance to the second
nearest one if `silhouette` is true.
"""

import numpy as np
from llvmlite import ir

from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.simd import lowest_bit
from coterie.kernels.cpu.vectors import REGISTER, i32, i64, vector_code

EAGER = 32  # candidates that are evaluated with the same medoids
OF_SUMS = 1e-12  # relative: larger differences of two sums over all objects are not due to rounding
CERTAIN = 1e-9  # relative to the sums that it is the difference of: larger gains are not due to rounding


@vector_code
def compare(v, row, limit, bits, m):
    """Set bit j of ``bits[i]`` if ``row < limit`` in lane j of their i-th vectors; row, limit (m,)."""
    b = v.b
    whole, _ = v.whole_and_padded(m)
    row0, limit0, bits0 = v.start(row), v.start(limit), v.start(bits)

    def store_bits(t, x, y):
        mask = b.bitcast(b.fcmp_ordered("<", x, y), ir.IntType(v.lanes))
        b.store(b.zext(mask, i32) if v.lanes < 32 else mask, v.at(bits0, b.sdiv(t, i64(v.lanes))))

    with v.loop(i64(0), whole, v.lanes, []) as block:
        store_bits(block.t, v.load(v.at(row0, block.t)), v.load(v.at(limit0, block.t)))
    with v.loop(whole, m, v.lanes, []) as rest:
        count = b.sub(m, rest.t)
        store_bits(rest.t, *(v.load_first(v.at(start, rest.t), count, v.lanes) for start in (row0, limit0)))


@jit
def changes(D, near, slot, w, removal, silhouette, change, best):
    """Best swap of each candidate: the minimum change of the loss (c,), and the medoid to replace, `best` (c,).

    D (c, m) are distances of candidates to objects, removal (k,) the increase of the loss if a medoid is removed.
    """
    if silhouette:
        _silhouette_changes(D, near, slot, w, removal, change, best)
    else:
        _deviation_changes(D, near, slot, w, removal, change, best)


@jit
def _deviation_changes(D, near, slot, w, removal, change, best):
    m, k, lanes = D.shape[1], len(removal), REGISTER // D.itemsize
    is_nearer = np.empty((m + lanes - 1) // lanes, np.uint32)
    loss, turn = np.empty((2, k)), 0  # two sums in turn: an addition need not wait for the previous one
    for c in range(len(D)):
        row = D[c]
        compare(row, near[1], is_nearer, m)
        for s in range(k):
            loss[0, s], loss[1, s] = removal[s], 0.0
        gain = 0.0
        for i in range(len(is_nearer)):
            bits = is_nearer[i]
            while bits != 0:
                o = i * lanes + lowest_bit(np.int64(bits))
                bits &= bits - np.uint32(1)
                d, first = float(row[o]), float(near[0, o])
                gain += w[o] * min(d - first, 0.0)
                loss[turn, slot[0, o]] += w[o] * (max(d, first) - near[1, o])
                turn ^= 1
        for s in range(k):
            loss[0, s] += loss[1, s]
        best[c] = loss[0].argmin()
        change[c] = loss[0, best[c]] + gain


@jit
def _silhouette_changes(D, near, slot, w, removal, change, best):
    m, k, lanes = D.shape[1], len(removal), REGISTER // D.itemsize
    is_nearer = np.empty((m + lanes - 1) // lanes, np.uint32)
    loss = np.empty(k)
    for c in range(len(D)):
        row = D[c]
        compare(row, near[2], is_nearer, m)
        for s in range(k):
            loss[s] = removal[s]
        gain = 0.0
        for i in range(len(is_nearer)):
            bits = is_nearer[i]
            while bits != 0:
                o = i * lanes + lowest_bit(np.int64(bits))
                bits &= bits - np.uint32(1)
                d, one, two, three = float(row[o]), float(near[0, o]), float(near[1, o]), float(near[2, o])
                ratio, with_candidate = _ratio(one, two), _ratio_with_candidate(d, one, two)
                gain += w[o] * (with_candidate - ratio)
                without_first = _ratio_with_candidate(d, two, three) - with_candidate - (_ratio(two, three) - ratio)
                without_second = _ratio_with_candidate(d, one, three) - with_candidate - (_ratio(one, three) - ratio)
                loss[slot[0, o]] += w[o] * without_first
                loss[slot[1, o]] += w[o] * without_second
        best[c] = loss.argmin()
        change[c] = loss[best[c]] + gain


@jit
def _ratio(nearer, farther):
    """Ratio of the nearest to the second nearest distance; 0 if the nearest is 0."""
    return nearer / farther if nearer > 0 else 0.0


@jit
def _ratio_with_candidate(d, nearer, farther):
    """`_ratio` with an additional medoid at distance `d`."""
    if d < nearer:
        return _ratio(d, nearer)
    return _ratio(nearer, min(d, farther))


@jit
def place(distances, column, near, slot):
    """Update the nearest medoids after row `column` of `distances` (k, m) has changed; -1 if all have."""
    k, m = distances.shape
    near0, near1, near2 = near[0], near[1], near[2]
    slot0, slot1, slot2 = slot[0], slot[1], slot[2]
    row = distances[column]
    for o in range(m):
        is_listed = slot0[o] == column or slot1[o] == column or slot2[o] == column
        if column >= 0 and not is_listed and not row[o] < near2[o]:
            continue
        one, two, three = np.inf, np.inf, np.inf
        first, second, third = -1, -1, -1
        for s in range(k):
            d = distances[s, o]
            if d < three:
                if d < two:
                    three, third = two, second
                    if d < one:
                        two, second, one, first = one, first, d, s
                    else:
                        two, second = d, s
                else:
                    three, third = d, s
        near0[o], near1[o], near2[o] = one, two, three
        slot0[o], slot1[o], slot2[o] = first, second, third


@jit
def removals(near, slot, w, silhouette, removal):
    """Increase of the loss (k,) if a medoid is removed."""
    for s in range(len(removal)):
        removal[s] = 0.0
    for o in range(len(w)):
        one, two = float(near[0, o]), float(near[1, o])
        if silhouette:
            three = float(near[2, o])
            removal[slot[0, o]] += w[o] * (_ratio(two, three) - _ratio(one, two))
            removal[slot[1, o]] += w[o] * (_ratio(one, three) - _ratio(one, two))
        else:
            removal[slot[0, o]] += w[o] * (two - one)


@jit
def loss_of(near, w, silhouette):
    """The loss of all objects."""
    total = 0.0
    for o in range(len(w)):
        total += w[o] * (_ratio(float(near[0, o]), float(near[1, o])) if silhouette else float(near[0, o]))
    return total


@jit
def improve(D, first, w, silhouette, medoids, distances, near, slot, removal, change, best):
    """Make the swaps of candidates, from number `first` on, that lower the loss; return whether there were any.

    `change` and `best` are those of all candidates for the present medoids. After a swap they are evaluated again. A
    candidate whose gain may be only rounding is swapped back if the loss is not lower.
    """
    for s in range(len(medoids)):
        if first <= medoids[s] < first + len(D):
            change[medoids[s] - first] = 0.0
    loss, has_swapped = loss_of(near, w, silhouette), False
    for c in range(len(D)):
        if change[c] >= -OF_SUMS * loss:
            continue
        if has_swapped:
            changes(D[c : c + 1], near, slot, w, removal, silhouette, change[c : c + 1], best[c : c + 1])
            if change[c] >= -OF_SUMS * loss:
                continue
        s = best[c]
        previous, before, limit = medoids[s], loss, CERTAIN * (loss + abs(removal[s]))
        replaced = distances[s].copy()
        _swap(s, first + c, D[c], w, silhouette, medoids, distances, near, slot, removal)
        loss = loss_of(near, w, silhouette)
        if change[c] >= -limit and not before - loss > OF_SUMS * before:
            _swap(s, previous, replaced, w, silhouette, medoids, distances, near, slot, removal)
            loss = before
        else:
            has_swapped = True
    return has_swapped


@jit
def _swap(s, medoid, row, w, silhouette, medoids, distances, near, slot, removal):
    medoids[s] = medoid
    for o in range(len(row)):
        distances[s, o] = row[o]
    place(distances, s, near, slot)
    removals(near, slot, w, silhouette, removal)


@jit
def descents(D, w, silhouette, medoids, max_passes, loss, passes):
    """Swap each set of medoids (r, k) for candidates D (n, m) until no swap helps, or after `max_passes` over them.

    Write the final medoids, their loss (r,), and the number of passes (r,), which is fractional.
    """
    n, m = D.shape
    k = medoids.shape[1]
    distances, near, slot = np.empty((k, m), D.dtype), np.empty((3, m), D.dtype), np.empty((3, m), np.int32)
    removal, change, best = np.empty(k), np.empty(EAGER), np.empty(EAGER, np.int64)
    for r in range(len(medoids)):
        for s in range(k):
            distances[s] = D[medoids[r, s]]
        place(distances, -1, near, slot)
        removals(near, slot, w, silhouette, removal)
        unchanged, evaluated, first = 0, 0, 0
        while unchanged < n and evaluated < max_passes * n:
            last = min(first + EAGER, n)
            rows, size = D[first:last], last - first
            changes(rows, near, slot, w, removal, silhouette, change[:size], best[:size])
            has_swapped = improve(
                rows, first, w, silhouette, medoids[r], distances, near, slot, removal, change[:size], best[:size]
            )
            unchanged = 0 if has_swapped else unchanged + size
            evaluated += size
            first = last if last < n else 0
        loss[r], passes[r] = loss_of(near, w, silhouette), evaluated / n


@jit
def draw(D, objects, w, medoids, count, u):
    """Draw medoids (r, k) from number `count` (r,) on, with probability in proportion to their weighted distance.

    D (n, m) are the distances of candidates, `objects` (n,) their own numbers among the objects, w (m,). u (r, k) are
    uniform random numbers. Where all distances are 0, a candidate that is not chosen yet is drawn.
    """
    n, m = D.shape
    mass, near, is_chosen = np.empty(n), np.empty(m), np.empty(n, np.bool_)
    for r in range(len(medoids)):
        near[:], is_chosen[:] = 1.0, False
        for s in range(medoids.shape[1]):
            if s >= count[r]:
                medoids[r, s] = _draw_one(objects, w, near, is_chosen, mass, u[r, s])
            row = D[medoids[r, s]]
            is_chosen[medoids[r, s]] = True
            for o in range(m):
                near[o] = min(near[o], float(row[o])) if s > 0 else float(row[o])


@jit
def _draw_one(objects, w, near, is_chosen, mass, u):
    """Index of the first candidate at which the sum of the masses exceeds `u` times their total."""
    for power in (1.0, 0.0):
        total = 0.0
        for c in range(len(mass)):
            amount = w[objects[c]] * (near[objects[c]] if power > 0.0 else 1.0)
            total += 0.0 if is_chosen[c] else amount
            mass[c] = total
        if total > 0.0:
            break
    c = np.searchsorted(mass, u * total, side="right")
    while c >= len(mass) or is_chosen[c]:
        c -= 1
    return c


@jit
def gains(D, nearest, w, gain):
    """Decrease of the loss (c,) if a candidate becomes an additional medoid."""
    for c in range(len(D)):
        total = 0.0
        for o in range(len(w)):
            decrease = float(nearest[o]) - D[c, o]
            total += w[o] * decrease if decrease > 0 else 0.0
        gain[c] = total
