"""Steps of K-medoids in NumPy; for the arguments see `kernels.cpu.medoids`."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def swap_changes(D: Array, near: Array, slot: Array, w: Array, removal: Array, change: Array, best: Array) -> None:
    first, second = near.astype(np.float64)
    gain = np.minimum(D - first, 0)
    without_first = np.minimum(D, second) - second - gain
    _write_best(w * gain, [(slot[0], w * without_first)], removal, change, best)


def silhouette_changes(
    D: Array, near: Array, slot: Array, w: Array, removal: Array, change: Array, best: Array
) -> None:
    one, two, three = near.astype(np.float64)
    ratio, with_candidate = _ratio(one, two), _ratio_with_candidate(D, one, two)
    without_first = _ratio_with_candidate(D, two, three) - with_candidate - (_ratio(two, three) - ratio)
    without_second = _ratio_with_candidate(D, one, three) - with_candidate - (_ratio(one, three) - ratio)
    losses = [(slot[0], w * without_first), (slot[1], w * without_second)]
    _write_best(w * (with_candidate - ratio), losses, removal, change, best)


def _write_best(gain: Array, without: list[tuple[Array, Array]], removal: Array, change: Array, best: Array) -> None:
    """Write the best medoid to replace, and the change of the loss, for each candidate."""
    loss = np.stack(
        [
            removal[s] + sum((amount * (slots == s)).sum(axis=1) for slots, amount in without)
            for s in range(len(removal))
        ],
        axis=1,
    )
    best[:] = loss.argmin(axis=1)
    change[:] = loss.min(axis=1) + gain.sum(axis=1)


def _ratio(nearer: Array, farther: Array) -> Array:
    """Ratio of the nearest to the second nearest distance; 0 if the nearest is 0."""
    return np.divide(nearer, farther, out=np.zeros(np.broadcast(nearer, farther).shape), where=nearer > 0)


def _ratio_with_candidate(D: Array, nearer: Array, farther: Array) -> Array:
    """`_ratio` with an additional medoid at distances `D`."""
    d = D.astype(np.float64)
    return _ratio(np.minimum(d, nearer), np.where(d < nearer, nearer, np.minimum(d, farther)))


def swap(distances: Array, column: int, near: Array, slot: Array) -> None:
    depth, k = len(near), distances.shape[1]
    order = np.argsort(distances, axis=1, kind="stable")[:, :depth]
    slot[:k] = order.T
    near[:k] = np.take_along_axis(distances, order, axis=1).T


def removal_losses(near: Array, slot: Array, w: Array, removal: Array) -> None:
    first, second = near.astype(np.float64)
    removal[:] = np.bincount(slot[0], w * (second - first), minlength=len(removal))


def silhouette_removals(near: Array, slot: Array, w: Array, removal: Array) -> None:
    one, two, three = near.astype(np.float64)
    ratio, k = _ratio(one, two), len(removal)
    removal[:] = np.bincount(slot[0], w * (_ratio(two, three) - ratio), minlength=k)
    removal += np.bincount(slot[1], w * (_ratio(one, three) - ratio), minlength=k)


def gains(D: Array, nearest: Array, w: Array, gain: Array) -> None:
    gain[:] = np.maximum(nearest.astype(np.float64) - D, 0) @ w
