r"""Fourteen ways to tie the covariances of a Gaussian mixture, each with its maximum-likelihood estimate.

Every covariance is a volume, a shape and an orientation,

.. math:: \Sigma_k = \lambda_k D_k A_k D_k', \qquad |A_k| = 1, \quad D_k' D_k = I,

and a structure is three letters that say of each in turn whether it is Equal in all components, Varies, or is the
Identity [1]_ [2]_. Given the weight :math:`N_k` of each component and its scatter :math:`W_k` about its mean, the
estimate minimises

.. math:: \sum_k N_k \log |\Sigma_k| + \mathrm{tr}(W_k \Sigma_k^{-1}).

So the data are needed no more: an M-step is a function of these sums. In front of the axes named here all arrays may
have batch axes, for many fits at once.

.. [1] Celeux & Govaert (1995), Gaussian parsimonious clustering models, Pattern Recognition 28.
   doi:10.1016/0031-3203(94)00125-6
.. [2] Scrucca, Fop, Murphy & Raftery (2016), mclust 5, The R Journal 8. doi:10.32614/RJ-2016-021
.. [3] Browne & McNicholas (2014), Estimating common principal components in high dimensions, Advances in Data
   Analysis and Classification 8. doi:10.1007/s11634-013-0139-1
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from coterie.core.errors import ParameterError
from coterie.core.stored import stored

FLOOR = 1e-13  # of the pooled scatter: less is roundoff, and a covariance must have an inverse
SMALLEST = 1e-290  # of which FLOOR is still a number of full precision
MAX_ITER = 300
TOL = 1e-12  # of the objective per unit of weight and column; its logarithms make it free of scale
TOL_VOLUME = 1e-10  # of a volume, relative; the objective is flat there and so settled to the square of this


@stored("covariance.Structure", check=lambda fields, lengths: fields["name"] in STRUCTURES)
@dataclass(frozen=True)
class Structure:
    """What the covariances of a mixture have in common, by mclust's three letters."""

    name: str

    @property
    def form(self) -> str:
        """How its covariances and scatters are stored, see `covariances`."""
        if self.name == "EEE":
            return "tied"
        _, shape, orientation = self.name
        return "spherical" if shape == "I" else "diag" if orientation == "I" else "full"

    def n_parameters(self, k: int, d: int) -> int:
        """Free parameters of `k` covariances of `d` columns.

        >>> STRUCTURES["VVV"].n_parameters(k=3, d=4)
        30
        """
        copies = {"I": 0, "E": 1, "V": k}
        free = 1, d - 1, d * (d - 1) // 2  # of one volume, one shape, one orientation
        return sum(copies[letter] * each for letter, each in zip(self.name, free, strict=True))


SPHERICAL, DIAGONAL = ("EII", "VII"), ("EEI", "VEI", "EVI", "VVI")
ELLIPSOIDAL = ("EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")
STRUCTURES = {name: Structure(name) for name in SPHERICAL + DIAGONAL + ELLIPSOIDAL}
ALIASES = {
    "full": "VVV",  # scikit-learn's words
    "tied": "EEE",
    "diag": "VVI",
    "spherical": "VII",
    "E": "EII",  # mclust's, for data of one column
    "V": "VII",
}


def as_structure(name: Any) -> Structure:
    """The structure of that name or alias; a `Structure` is returned as it is."""
    if isinstance(name, Structure):
        return name
    if not isinstance(name, str) or ALIASES.get(name, name) not in STRUCTURES:
        known = ", ".join(map(repr, [*STRUCTURES, *ALIASES]))
        raise ParameterError(f"covariance_type must be one of {known}; got {name!r}")
    return STRUCTURES[ALIASES.get(name, name)]


def covariances(
    structure: Structure | str,
    weight: np.ndarray,
    scatter: np.ndarray,
    orientation: np.ndarray | None = None,
    *,
    d: int | None = None,
    sweeps: int = MAX_ITER,
) -> tuple[np.ndarray, np.ndarray | None]:
    """The likeliest covariances of that structure; for EVE and VVE their common orientation too, else None.

    ==========  ================  ==========================================
    form        covariances       scatter
    ==========  ================  ==========================================
    full        (..., k, d, d)    (..., k, d, d)
    tied        (..., d, d)       (..., d, d) summed over the components
    diag        (..., k, d)       (..., k, d) the diagonals
    spherical   (..., k)          (..., k) the traces, of `d` columns
    ==========  ================  ==========================================

    Parameters
    ----------
    structure
        One of `STRUCTURES`, or a name of one.
    weight : (..., k)
        The weight of each component, 0 or more.
    scatter
        Within scatter of each component about its mean, by form.
    orientation : (..., d, d), optional
        Orthogonal; where EVE and VVE start, and what they never do worse than. Without it they start at the
        eigenvectors of the pooled scatter and of each component's, and keep the best end.
    d
        The number of columns, which traces do not tell.
    sweeps
        Rounds of rotations that EVE and VVE may take; few are enough where another M-step follows.

    Notes
    -----
    VEI, VEE, VEV, EVE and VVE iterate, all others are closed formulas. A scatter without spread in some direction is
    lifted there to `FLOOR` times the pooled one, so that every result is finite and positive.

    Examples
    --------
    >>> sigma, _ = covariances("VVI", weight=np.array([2.0, 4.0]), scatter=np.array([[2.0, 4.0], [4.0, 12.0]]))
    >>> sigma
    array([[1., 2.],
           [1., 3.]])
    """
    structure = as_structure(structure)
    volume, shape, turn = structure.name
    weight, scatter = np.asarray(weight, np.float64), np.asarray(scatter, np.float64)
    total = weight.sum(axis=-1, keepdims=True)
    weight = np.maximum(weight, FLOOR * np.where(total > 0, total, 1.0))

    if structure.form == "spherical":
        if d is None:
            raise ParameterError(f"{structure.name} needs d, the number of columns: traces do not tell it")
        return _own_shapes(volume, weight, _lifted_diagonals(scatter[..., None] / d))[..., 0], None
    if structure.form == "diag":
        solve = _same_shape if shape == "E" else _own_shapes
        return solve(volume, weight, _lifted_diagonals(scatter)), None
    if structure.form == "tied":
        return _lifted(scatter[..., None, :, :])[..., 0, :, :] / weight.sum(axis=-1)[..., None, None], None

    scatter = _lifted(scatter)
    if shape + turn == "EE":
        return _same_shape(volume, weight, scatter, axes=2), None
    if shape + turn == "EV":
        values, vectors = np.linalg.eigh(scatter)  # ascending in every component, so that largest meets largest
        return _turned(vectors, _same_shape(volume, weight, _visible(values))), None
    if shape + turn == "VE":
        return _same_turn(volume, weight, scatter, orientation, sweeps)
    log_size = np.linalg.slogdet(scatter)[1] / scatter.shape[-1] if volume == "E" else None
    return scatter * _to_volume(volume, weight, log_size)[..., None, None], None


def own_covariances(form: str, weight: np.ndarray, scatter: np.ndarray, d: int) -> np.ndarray:
    """The likeliest covariances of components that know nothing of each other, by form; not for "tied".

    The weights (k,) may be those of each column (k, d) where these are independent.
    """
    if form == "diag":
        weight = np.broadcast_to(weight.reshape(len(weight), -1), scatter.shape)
        return covariances("VVI", weight[..., None], scatter[..., None, None])[0][..., 0, 0]
    return covariances(ALIASES[form], weight.reshape(-1, 1), scatter[:, None], d=d)[0][:, 0]


def _own_shapes(volume: str, weight: np.ndarray, scatter: np.ndarray) -> np.ndarray:
    """Each component keeps the shape of its scatter (..., k, d)."""
    return scatter * _to_volume(volume, weight, np.log(scatter).mean(axis=-1))[..., None]


def _to_volume(volume: str, weight: np.ndarray, log_size: np.ndarray | None) -> np.ndarray:
    r"""The number (..., k) that makes a covariance of a scatter, where the shape is free.

    With :math:`g_k = |W_k|^{1/d}`, whose logarithm is `log_size`, the volume is :math:`g_k / N_k`, or
    :math:`\sum_j g_j / N` if it is the same in all components.
    """
    if volume == "V":
        return 1.0 / weight
    sizes = np.exp(log_size[..., None, :] - log_size[..., :, None]).sum(axis=-1)  # of all, in units of each
    return sizes / weight.sum(axis=-1, keepdims=True)


def _same_shape(volume: str, weight: np.ndarray, scatter: np.ndarray, axes: int = 1) -> np.ndarray:
    r"""One shape for all, of diagonals (..., k, d) or, with two `axes`, of matrices (..., k, d, d).

    Minimises over :math:`S` with :math:`\lambda` fixed, :math:`S = \sum_k W_k / \lambda_k / N`, and over
    :math:`\lambda` with :math:`S` fixed, :math:`\lambda_k = \mathrm{tr}(W_k S^{-1}) / (d N_k)`, in turn. Only their
    product counts, so neither is brought to determinant 1. In the logarithms of :math:`\lambda` and along geodesics of
    :math:`S` the objective is convex: there is one minimum.
    """
    d, total = scatter.shape[-1], weight.sum(axis=-1, keepdims=True)
    size = scatter.shape[-axes:]
    flat = scatter.reshape(*weight.shape, d**axes)  # a trace of a product of matrices is a product of vectors
    lam = np.ones(weight.shape)
    shape = flat.sum(axis=-2) / total
    for _ in range(MAX_ITER if volume == "V" else 0):
        matrix = shape.reshape(*shape.shape[:-1], *size)
        inverse = (np.linalg.inv(matrix) if axes == 2 else 1.0 / matrix).reshape(shape.shape)
        before, lam = lam, (flat @ inverse[..., None])[..., 0] / (d * weight)
        lam = np.maximum(lam, FLOOR * before)  # a trace is positive, but its roundoff need not be
        if (np.abs(lam / before - 1.0) <= TOL_VOLUME).all():
            break
        shape = ((1.0 / lam)[..., None, :] @ flat)[..., 0, :] / total
    return (lam[..., None] * shape[..., None, :]).reshape(scatter.shape)


def _same_turn(
    volume: str, weight: np.ndarray, scatter: np.ndarray, orientation: np.ndarray | None, sweeps: int
) -> tuple[np.ndarray, np.ndarray]:
    """One orientation D for all, the shapes free: the covariances (..., k, d, d) and D (..., d, d) [3]_.

    The diagonals of D'W_kD give the likeliest volumes and shapes for that D; a sweep of rotations then makes D better
    for them. There can be several minima. The starts are one more batch axis, and the best end is kept; those
    that have settled rest while others go on.
    """
    if orientation is None:
        pooled = scatter.sum(axis=-3, keepdims=True)
        D = np.linalg.eigh(np.concatenate([pooled, scatter], axis=-3))[1]
    else:
        D = np.array(orientation, np.float64)[..., None, :, :]
    starts, (k, d) = D.shape[:-2], scatter.shape[-3:-1]
    seen = (D.mT[..., None, :, :] @ scatter[..., None, :, :, :] @ D[..., None, :, :]).reshape(-1, k, d, d)
    weight = np.broadcast_to(weight[..., None, :], (*starts, k)).reshape(-1, k)
    D = D.reshape(-1, d, d)
    values = _own_shapes(volume, weight, _visible(_diagonals(seen)))
    cost = _log_volume(weight, values)
    moving = np.arange(len(D))
    for _ in range(sweeps):
        D[moving], seen[moving] = _sweep(D[moving], seen[moving], 1.0 / values[moving])
        values[moving] = _own_shapes(volume, weight[moving], _visible(_diagonals(seen[moving])))
        before, cost[moving] = cost[moving], _log_volume(weight[moving], values[moving])
        moving = moving[before - cost[moving] > TOL]
        if len(moving) == 0:
            break
    best = cost.reshape(starts).argmin(axis=-1)[..., None, None, None]
    D = np.take_along_axis(D.reshape(*starts, d, d), best, -3)
    values = np.take_along_axis(values.reshape(*starts, k, d), best, -3)[..., 0, :, :]
    return _turned(D, values), D[..., 0, :, :]


def _log_volume(weight: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The objective per N d at the likeliest volumes and shapes; its traces add up to N d there, whatever D is."""
    return (weight * np.log(values).mean(axis=-1)).sum(axis=-1) / weight.sum(axis=-1)


def _sweep(D: np.ndarray, seen: np.ndarray, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""D (..., d, d) and D'W_kD (..., k, d, d), after every pair of columns has been turned to its best angle.

    With :math:`M_k = D'W_kD` and precisions :math:`p_k`, a turn of columns i and j by the angle t moves
    :math:`\sum_k \mathrm{tr}(M_k \mathrm{diag}(p_k))` along :math:`P \cos 2t + Q \sin 2t` plus a constant, where
    :math:`P = \sum_k (p_{ki} - p_{kj}) (M_{kii} - M_{kjj}) / 2` and :math:`Q = \sum_k (p_{ki} - p_{kj}) M_{kij}`. Pairs
    without a column in common do not meet in the sum, so a whole round of them turns at once.
    """
    for i, j in _rounds(D.shape[-1]):
        diagonals, slope = _diagonals(seen), precision[..., i] - precision[..., j]
        P = (slope * (diagonals[..., i] - diagonals[..., j])).sum(axis=-2) / 2
        Q = (slope * seen[..., i, j]).sum(axis=-2)
        angle = np.arctan2(0.0 - Q, 0.0 - P) / 2  # not -P: a negative zero would turn what is indifferent by 90°
        turn = np.broadcast_to(np.eye(D.shape[-1]), D.shape).copy()
        turn[..., i, i] = turn[..., j, j] = np.cos(angle)
        turn[..., j, i] = np.sin(angle)
        turn[..., i, j] = -turn[..., j, i]
        D = D @ turn
        seen = turn.mT[..., None, :, :] @ seen @ turn[..., None, :, :]
    return D, seen


@lru_cache(maxsize=64)
def _rounds(d: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """All pairs of `d` columns as the rounds of a tournament: within a round each column occurs at most once."""
    m = d + d % 2  # of an odd number one sits out
    rounds = []
    for r in range(m - 1):
        ring = [(r + step) % (m - 1) for step in range(m - 1)]
        pairs = [(ring[0], m - 1)] + [(ring[step], ring[-step]) for step in range(1, m // 2)]
        i, j = np.array([sorted(pair) for pair in pairs if max(pair) < d], int).reshape(-1, 2).T
        rounds.append((i, j))
    return rounds


def _turned(vectors: np.ndarray, values: np.ndarray) -> np.ndarray:
    """V diag(values_k) V' (..., k, d, d); as a square it cannot lose its symmetry or sign to roundoff."""
    half = vectors * np.sqrt(values)[..., None, :]
    return half @ half.mT


def _diagonals(matrices: np.ndarray) -> np.ndarray:
    return matrices.diagonal(axis1=-2, axis2=-1)


def _units(pooled: np.ndarray) -> np.ndarray:
    """The spread of each column (..., d), that of an average one for columns without any."""
    mean = pooled.mean(axis=-1, keepdims=True)
    mean = np.where(mean > SMALLEST, mean, 1.0)
    return np.where(pooled > SMALLEST, pooled, mean)


def _lifted_diagonals(scatter: np.ndarray) -> np.ndarray:
    """Diagonals (..., k, d), none below `FLOOR` of the pooled one of its column."""
    return np.maximum(scatter, FLOOR * _units(scatter.sum(axis=-2))[..., None, :])


def _lifted(scatter: np.ndarray) -> np.ndarray:
    """Matrices (..., k, d, d), no eigenvalue below `FLOOR` where the pooled diagonal is all ones.

    Columns of very different units are thus no reason to lift.
    """
    root = np.sqrt(_units(_diagonals(scatter).sum(axis=-2)))[..., None, :]
    units = root[..., :, None] * root[..., None, :]  # (..., 1, d, d)
    relative = scatter / units
    try:
        np.linalg.cholesky(relative - FLOOR * np.eye(scatter.shape[-1]))
        return scatter
    except np.linalg.LinAlgError:  # only now are the eigenvalues worth their price
        values, vectors = np.linalg.eigh(relative)
    low = values[..., 0] < FLOOR
    return np.where(low[..., None, None], units * _turned(vectors, np.maximum(values, FLOOR)), scatter)


def lifted(structure: Structure, scatter: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Which scatters, by form, have so little spread in some direction that `covariances` lifts them (..., k or 1).

    `least` (d,) is what of each column's spread is rounding.
    """
    if structure.form == "spherical":
        low = scatter < np.maximum(FLOOR * scatter.sum(axis=-1, keepdims=True), least.sum())
    elif structure.form == "diag":
        low = (scatter < np.maximum(FLOOR * scatter.sum(axis=-2, keepdims=True), least)).any(axis=-1)
    else:
        each = scatter[..., None, :, :] if structure.form == "tied" else scatter
        root = np.sqrt(np.maximum(FLOOR * _diagonals(each).sum(axis=-2, keepdims=True), least))
        low = np.linalg.eigvalsh(each / (root[..., :, None] * root[..., None, :]))[..., 0] < 1.0
        if structure.name[1:] in ("EV", "VE"):
            total = _diagonals(each).mean(axis=-1).sum(axis=-1, keepdims=True)
            low |= np.linalg.eigvalsh(each)[..., 0] < FLOOR * total
    return low


def _visible(values: np.ndarray) -> np.ndarray:
    """Eigenvalues (..., k, d), those lost in the roundoff of the largest lifted out of it."""
    return np.maximum(values, FLOOR * values.mean(axis=-1, keepdims=True).sum(axis=-2, keepdims=True))
