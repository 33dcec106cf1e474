"""Steps of K-medoids by FasterPAM (Schubert & Rousseeuw 2021): changes of the loss by swaps, and updates after a swap.

For each of m objects, `slot` and `near` (2, m) are the indices and distances of its nearest medoids; (3, m) for medoid
silhouettes. Most candidates are farther from most objects than these. So vector code first compares a row of distances
with the last of them, and only the objects that are nearer are processed.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.vectors import REGISTER, i1, i32, i64, vector_code


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


@intrinsic
def lowest_bit(typingctx, bits):
    """Index of the lowest bit that is set."""

    def codegen(context, b, sig, args):
        function = cgutils.get_or_insert_function(b.module, ir.FunctionType(i32, [i32, i1]), "llvm.cttz.i32")
        return b.zext(b.call(function, [args[0], i1(1)]), i64)

    return types.int64(types.uint32), codegen


@jit
def _argmin(values):
    """Index of the minimum, the first one if there are several."""
    index = 0
    for s in range(1, len(values)):
        if values[s] < values[index]:
            index = s
    return index


@jit
def swap_changes(D, near, slot, w, removal, change, best):
    """Best swap of each candidate: the minimum change of the loss (c,), and the medoid to replace, `best` (c,).

    The loss is the sum of `w` times the distance to the nearest medoid. D (c, m) are distances of candidates to
    objects, removal (k,) the increase of the loss if a medoid is removed.
    """
    m, k, lanes = D.shape[1], len(removal), REGISTER // D.itemsize
    is_nearer = np.empty((m + lanes - 1) // lanes, np.uint32)
    loss = np.empty(k)
    for c in range(len(D)):
        row = D[c]
        compare(row, near[1], is_nearer, m)
        for s in range(k):
            loss[s] = removal[s]
        gain = 0.0
        for i in range(len(is_nearer)):
            bits = is_nearer[i]
            while bits != 0:
                o = i * lanes + lowest_bit(bits)
                bits &= bits - np.uint32(1)
                d, first = float(row[o]), float(near[0, o])
                gain += w[o] * min(d - first, 0.0)
                loss[slot[0, o]] += w[o] * (max(d, first) - near[1, o])
        best[c] = _argmin(loss)
        change[c] = loss[best[c]] + gain


@jit
def silhouette_changes(D, near, slot, w, removal, change, best):
    """The same if the loss is the sum of `w` times the ratio of the nearest to the second nearest distance."""
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
                o = i * lanes + lowest_bit(bits)
                bits &= bits - np.uint32(1)
                d, one, two, three = float(row[o]), float(near[0, o]), float(near[1, o]), float(near[2, o])
                ratio, with_candidate = _ratio(one, two), _ratio_with_candidate(d, one, two)
                gain += w[o] * (with_candidate - ratio)
                without_first = _ratio_with_candidate(d, two, three) - with_candidate - (_ratio(two, three) - ratio)
                without_second = _ratio_with_candidate(d, one, three) - with_candidate - (_ratio(one, three) - ratio)
                loss[slot[0, o]] += w[o] * without_first
                loss[slot[1, o]] += w[o] * without_second
        best[c] = _argmin(loss)
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
def swap(distances, column, near, slot):
    """Update the nearest medoids after column `column` of `distances` (m, k) has changed."""
    depth = len(near)
    for o in range(len(distances)):
        is_affected = distances[o, column] < near[depth - 1, o]
        for i in range(depth):
            is_affected |= slot[i, o] == column
        if is_affected:
            for i in range(depth):
                near[i, o], slot[i, o] = np.inf, -1
            for s in range(distances.shape[1]):
                _insert(distances[o, s], s, o, near, slot)


@jit
def _insert(d, s, o, near, slot):
    """Insert medoid `s` at distance `d` into the nearest medoids of object `o`."""
    i = len(near) - 1
    if d < near[i, o]:
        while i > 0 and d < near[i - 1, o]:
            near[i, o], slot[i, o] = near[i - 1, o], slot[i - 1, o]
            i -= 1
        near[i, o], slot[i, o] = d, s


@jit
def removal_losses(near, slot, w, removal):
    """Increase of the loss (k,) if a medoid is removed."""
    for s in range(len(removal)):
        removal[s] = 0.0
    for o in range(len(w)):
        removal[slot[0, o]] += w[o] * (float(near[1, o]) - near[0, o])


@jit
def silhouette_removals(near, slot, w, removal):
    """The same for medoid silhouettes."""
    for s in range(len(removal)):
        removal[s] = 0.0
    for o in range(len(w)):
        one, two, three = float(near[0, o]), float(near[1, o]), float(near[2, o])
        removal[slot[0, o]] += w[o] * (_ratio(two, three) - _ratio(one, two))
        removal[slot[1, o]] += w[o] * (_ratio(one, three) - _ratio(one, two))


@jit
def gains(D, nearest, w, gain):
    """Decrease of the loss (c,) if a candidate becomes an additional medoid."""
    for c in range(len(D)):
        total = 0.0
        for o in range(len(w)):
            decrease = float(nearest[o]) - D[c, o]
            total += w[o] * decrease if decrease > 0 else 0.0
        gain[c] = total
