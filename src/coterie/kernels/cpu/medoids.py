"""Steps of K-medoids on rows of distances: what a swap would change, and a swap.

An object knows its nearest medoids, by slot and distance (`slot`, `near`: (2, m); (3, m) for silhouettes). Most
candidates are farther from most objects than all of these: a row is first compared with the last of them by vector
code, and only the objects that pass are looked at, bit by bit.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.vectors import REGISTER, Vectors, i1, i32, i64


@intrinsic
def compare(typingctx, row, limit, bits, m):
    """Bit j of ``bits[i]`` says whether ``row < limit`` in lane j of their i-th vectors; row, limit (m,)."""
    sig = types.void(row, limit, bits, m)

    def codegen(context, b, sig, args):
        v = Vectors("row limit bits m", context, b, sig, args)
        whole, _ = v.whole_and_padded(v["m"])
        row0, limit0, bits0 = v.start("row"), v.start("limit"), v.start("bits")

        def put(t, x, y):
            mask = b.bitcast(b.fcmp_ordered("<", x, y), ir.IntType(v.lanes))
            b.store(b.zext(mask, i32) if v.lanes < 32 else mask, v.at(bits0, b.sdiv(t, i64(v.lanes))))

        with v.loop(i64(0), whole, v.lanes, []) as block:
            put(block.t, v.load(v.at(row0, block.t)), v.load(v.at(limit0, block.t)))
        with v.loop(whole, v["m"], v.lanes, []) as rest:
            left = b.sub(v["m"], rest.t)
            put(rest.t, *(v.load_first(v.at(start, rest.t), left, v.lanes) for start in (row0, limit0)))
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def lowest_bit(typingctx, bits):
    """The number of the lowest bit that is set."""

    def codegen(context, b, sig, args):
        function = cgutils.get_or_insert_function(b.module, ir.FunctionType(i32, [i32, i1]), "llvm.cttz.i32")
        return b.zext(b.call(function, [args[0], i1(1)]), i64)

    return types.int64(types.uint32), codegen


@jit
def _least(values):
    least = 0
    for s in range(1, len(values)):
        if values[s] < values[least]:
            least = s
    return least


@jit
def swap_changes(D, near, slot, w, removal, change, best):
    """For every row of `D` as a medoid: the least change of the loss by a swap, and the slot it would take.

    The loss is the sum of `w` times the distance to the nearest medoid. D (c, m) distances of candidates to objects;
    removal (k,) what the removal of each medoid alone would cost; out: change (c,), best (c,).
    """
    m, k, lanes = D.shape[1], len(removal), REGISTER // D.itemsize
    passed = np.empty((m + lanes - 1) // lanes, np.uint32)
    loss = np.empty(k)
    for c in range(len(D)):
        row = D[c]
        compare(row, near[1], passed, m)
        for s in range(k):
            loss[s] = removal[s]
        gain = 0.0
        for i in range(len(passed)):
            bits = passed[i]
            while bits != 0:
                o = i * lanes + lowest_bit(bits)
                bits &= bits - np.uint32(1)
                d, first = float(row[o]), float(near[0, o])
                gain += w[o] * min(d - first, 0.0)
                loss[slot[0, o]] += w[o] * (max(d, first) - near[1, o])
        best[c] = _least(loss)
        change[c] = loss[best[c]] + gain


@jit
def silhouette_changes(D, near, slot, w, removal, change, best):
    """The same where the loss is the sum of `w` times the nearest by the second nearest distance."""
    m, k, lanes = D.shape[1], len(removal), REGISTER // D.itemsize
    passed = np.empty((m + lanes - 1) // lanes, np.uint32)
    loss = np.empty(k)
    for c in range(len(D)):
        row = D[c]
        compare(row, near[2], passed, m)
        for s in range(k):
            loss[s] = removal[s]
        gain = 0.0
        for i in range(len(passed)):
            bits = passed[i]
            while bits != 0:
                o = i * lanes + lowest_bit(bits)
                bits &= bits - np.uint32(1)
                d, one, two, three = float(row[o]), float(near[0, o]), float(near[1, o]), float(near[2, o])
                now, beside = _share(one, two), _best_share(d, one, two)
                gain += w[o] * (beside - now)
                without_first = _best_share(d, two, three) - beside - (_share(two, three) - now)
                without_second = _best_share(d, one, three) - beside - (_share(one, three) - now)
                loss[slot[0, o]] += w[o] * without_first
                loss[slot[1, o]] += w[o] * without_second
        best[c] = _least(loss)
        change[c] = loss[best[c]] + gain


@jit
def _share(nearer, farther):
    return nearer / farther if nearer > 0 else 0.0


@jit
def _best_share(d, nearer, farther):
    """With one more medoid at distance `d`."""
    if d < nearer:
        return _share(d, nearer)
    return _share(nearer, min(d, farther))


@jit
def swap(distances, place, near, slot):
    """Brings the nearest medoids up to date once column `place` of `distances` (m, k) is another medoid's."""
    depth = len(near)
    for o in range(len(distances)):
        touched = distances[o, place] < near[depth - 1, o]
        for i in range(depth):
            touched |= slot[i, o] == place
        if touched:
            for i in range(depth):
                near[i, o], slot[i, o] = np.inf, -1
            for s in range(distances.shape[1]):
                _insert(distances[o, s], s, o, near, slot)


@jit
def _insert(d, s, o, near, slot):
    i = len(near) - 1
    if d < near[i, o]:
        while i > 0 and d < near[i - 1, o]:
            near[i, o], slot[i, o] = near[i - 1, o], slot[i - 1, o]
            i -= 1
        near[i, o], slot[i, o] = d, s


@jit
def removal_losses(near, slot, w, removal):
    """What the removal of each medoid would cost."""
    for s in range(len(removal)):
        removal[s] = 0.0
    for o in range(len(w)):
        removal[slot[0, o]] += w[o] * (float(near[1, o]) - near[0, o])


@jit
def silhouette_removals(near, slot, w, removal):
    """The same for silhouettes."""
    for s in range(len(removal)):
        removal[s] = 0.0
    for o in range(len(w)):
        one, two, three = float(near[0, o]), float(near[1, o]), float(near[2, o])
        removal[slot[0, o]] += w[o] * (_share(two, three) - _share(one, two))
        removal[slot[1, o]] += w[o] * (_share(one, three) - _share(one, two))


@jit
def gains(D, nearest, w, gain):
    """What each row of `D` would take off the loss if it were one more medoid."""
    for c in range(len(D)):
        total = 0.0
        for o in range(len(w)):
            less = float(nearest[o]) - D[c, o]
            total += w[o] * less if less > 0 else 0.0
        gain[c] = total
