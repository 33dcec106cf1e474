"""Steps of K-medoids on rows of distances, in NumPy; the compiled ones say what they are."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def swap_changes(D: Array, near: Array, slot: Array, w: Array, removal: Array, change: Array, best: Array) -> None:
    first, second = near.astype(np.float64)
    gain = np.minimum(D - first, 0)
    without_first = np.minimum(D, second) - second - gain
    _settle(w * gain, [(slot[0], w * without_first)], removal, change, best)


def silhouette_changes(
    D: Array, near: Array, slot: Array, w: Array, removal: Array, change: Array, best: Array
) -> None:
    one, two, three = near.astype(np.float64)
    now, beside = _share(one, two), _best_share(D, one, two)
    without_first = _best_share(D, two, three) - beside - (_share(two, three) - now)
    without_second = _best_share(D, one, three) - beside - (_share(one, three) - now)
    _settle(w * (beside - now), [(slot[0], w * without_first), (slot[1], w * without_second)], removal, change, best)


def _settle(gain: Array, without: list[tuple[Array, Array]], removal: Array, change: Array, best: Array) -> None:
    loss = np.stack(
        [
            removal[s] + sum((amount * (slots == s)).sum(axis=1) for slots, amount in without)
            for s in range(len(removal))
        ],
        axis=1,
    )
    best[:] = loss.argmin(axis=1)
    change[:] = loss.min(axis=1) + gain.sum(axis=1)


def _share(nearer: Array, farther: Array) -> Array:
    return np.divide(nearer, farther, out=np.zeros(np.broadcast(nearer, farther).shape), where=nearer > 0)


def _best_share(D: Array, nearer: Array, farther: Array) -> Array:
    d = D.astype(np.float64)
    return _share(np.minimum(d, nearer), np.where(d < nearer, nearer, np.minimum(d, farther)))


def swap(distances: Array, place: int, near: Array, slot: Array) -> None:
    depth, k = len(near), distances.shape[1]
    order = np.argsort(distances, axis=1, kind="stable")[:, :depth]
    slot[:k] = order.T
    near[:k] = np.take_along_axis(distances, order, axis=1).T


def removal_losses(near: Array, slot: Array, w: Array, removal: Array) -> None:
    first, second = near.astype(np.float64)
    removal[:] = np.bincount(slot[0], w * (second - first), minlength=len(removal))


def silhouette_removals(near: Array, slot: Array, w: Array, removal: Array) -> None:
    one, two, three = near.astype(np.float64)
    now, k = _share(one, two), len(removal)
    removal[:] = np.bincount(slot[0], w * (_share(two, three) - now), minlength=k)
    removal += np.bincount(slot[1], w * (_share(one, three) - now), minlength=k)


def gains(D: Array, nearest: Array, w: Array, gain: Array) -> None:
    gain[:] = np.maximum(nearest.astype(np.float64) - D, 0) @ w
