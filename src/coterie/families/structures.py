r"""The fourteen covariance structures of Gaussian mixtures, with their maximum-likelihood estimates.

Every covariance has a volume, a shape and an orientation,

.. math:: \Sigma_k = \lambda_k D_k A_k D_k', \qquad |A_k| = 1, \quad D_k' D_k = I.

The name of a structure has three letters, for volume, shape and orientation: E (equal in all components), V (varying)
or I (identity) [1]_ [2]_. Given the weight :math:`N_k` of each component and its scatter :math:`W_k` about its mean,
the estimate minimises

.. math:: \sum_k N_k \log |\Sigma_k| + \mathrm{tr}(W_k \Sigma_k^{-1}).

So an M-step is a function of these sums, and does not need the data. All arrays may have batch axes before the axes
named here, for several fits at once.

.. [1] Celeux & Govaert (1995), Gaussian parsimonious clustering models, Pattern Recognition 28.
   doi:10.1016/0031-3203(94)00125-6
.. [2] Scrucca, Fop, Murphy & Raftery (2016), mclust 5, The R Journal 8. doi:10.32614/RJ-2016-021
.. [3] Browne & McNicholas (2014), Estimating common principal components in high dimensions, Advances in Data
   Analysis and Classification 8. doi:10.1007/s11634-013-0139-1
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from coterie.core.stored import stored
from coterie.errors import ParameterError

FLOOR = 1e-13  # minimum eigenvalue, as a share of the pooled scatter; less is rounding, and covariances need an inverse
SMALLEST = 1e-290  # smallest scatter for which FLOOR times the scatter is not subnormal
MAX_ITER = 300
TOL = 1e-12  # absolute tolerance of the objective per weight and column; logarithms make it independent of the scale
TOL_VOLUME = 1e-10  # relative tolerance of volumes; the error of the objective is then about its square


@stored("covariance.Structure", check=lambda fields, lengths: fields["name"] in STRUCTURES)
@dataclass(frozen=True)
class Structure:
    """A covariance structure of a mixture, with its three-letter name as in mclust."""

    name: str

    @property
    def form(self) -> str:
        """The form in which its covariances and scatters are stored; see `covariances`."""
        if self.name == "EEE":
            return "tied"
        _, shape, orientation = tuple(self.name)
        return "spherical" if shape == "I" else "diag" if orientation == "I" else "full"

    def n_parameters(self, k: int, d: int) -> int:
        """Number of free parameters of `k` covariances of `d` columns.

        >>> STRUCTURES["VVV"].n_parameters(k=3, d=4)
        30
        """
        copies = {"I": 0, "E": 1, "V": k}
        sizes = 1, d - 1, d * (d - 1) // 2  # of one volume, one shape, one orientation
        return sum(copies[letter] * size for letter, size in zip(self.name, sizes, strict=True))


SPHERICAL, DIAGONAL = ("EII", "VII"), ("EEI", "VEI", "EVI", "VVI")
ELLIPSOIDAL = ("EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")
STRUCTURES: dict[str, Structure] = {name: Structure(name) for name in SPHERICAL + DIAGONAL + ELLIPSOIDAL}
ALIASES = {
    "full": "VVV",  # names of scikit-learn
    "tied": "EEE",
    "diag": "VVI",
    "spherical": "VII",
    "E": "EII",  # names of mclust for one column
    "V": "VII",
}


def as_structure(name: Any) -> Structure:
    """The structure with this name or alias; a `Structure` is returned unchanged."""
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
    is_floored: bool = False,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Maximum-likelihood covariances with this structure; and for EVE and VVE their common orientation, else None.

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
        One of `STRUCTURES`, or its name.
    weight : (..., k)
        The weight of each component, at least 0.
    scatter
        Scatter of each component about its mean, by form.
    orientation : (..., d, d), default=None
        Orthogonal initial orientation of EVE and VVE; the result is never worse. By default they start at the
        eigenvectors of the pooled scatter and of the scatter of each component, and return the best result.
    d
        The number of columns, required for spherical structures.
    sweeps
        Maximum number of sweeps of rotations of EVE and VVE; a few are enough if another M-step follows.
    is_floored
        Whether the eigenvalues of the scatters are known to be above the floor described below.

    Notes
    -----
    VEI, VEE, VEV, EVE and VVE are iterative, all others have closed forms. Eigenvalues of a scatter are at least
    `FLOOR` times the pooled scatter, so that every result is finite and positive definite.

    Examples
    --------
    >>> sigma, _ = covariances("VVI", weight=np.array([2.0, 4.0]), scatter=np.array([[2.0, 4.0], [4.0, 12.0]]))
    >>> sigma
    array([[1., 2.],
           [1., 3.]])
    """
    structure = as_structure(structure)
    volume, shape, axes = tuple(structure.name)
    weight, scatter = np.asarray(weight, np.float64), np.asarray(scatter, np.float64)
    total = weight.sum(axis=-1, keepdims=True)
    weight = np.maximum(weight, FLOOR * np.where(total > 0, total, 1.0))
    if volume == "E" and structure.form != "tied":  # logarithms of scatters must not depend on the scale of weights
        exponent = np.frexp(total)[1]
        weight = np.ldexp(weight, -exponent)
        scatter = np.ldexp(scatter, -exponent.reshape(*total.shape, *[1] * (scatter.ndim - total.ndim)))

    if structure.form == "spherical":
        if d is None:
            raise ParameterError(f"{structure.name} needs d, the number of columns: pass d=")
        return _varying_shapes(volume, weight, _floored_diagonals(scatter[..., None] / d))[..., 0], None
    if structure.form == "diag":
        solve = _equal_shape if shape == "E" else _varying_shapes
        return solve(volume, weight, _floored_diagonals(scatter)), None
    if structure.form == "tied":
        scatter = scatter if is_floored else _floored(scatter[..., None, :, :])[..., 0, :, :]
        return scatter / weight.sum(axis=-1)[..., None, None], None

    scatter = scatter if is_floored else _floored(scatter)
    if shape + axes == "EE":
        return _equal_shape(volume, weight, scatter, axes=2), None
    if shape + axes == "EV":
        values, vectors = np.linalg.eigh(scatter)  # ascending in every component, so that they correspond
        return _rotated(vectors, _equal_shape(volume, weight, _floored_eigenvalues(values))), None
    if shape + axes == "VE":
        return _equal_orientation(volume, weight, scatter, orientation, sweeps)
    log_size = np.linalg.slogdet(scatter)[1] / scatter.shape[-1] if volume == "E" else None
    return scatter * _volume_factor(volume, weight, log_size)[..., None, None], None


def separate_covariances(form: str, weight: np.ndarray, scatter: np.ndarray, d: int) -> np.ndarray:
    """Maximum-likelihood covariances of components without common parameters, by form; not for "tied".

    If columns are independent, each column can have its own weights: (k, d) instead of (k,).
    """
    if form == "diag":
        weight = np.broadcast_to(weight.reshape(len(weight), -1), scatter.shape)
        return covariances("VVI", weight[..., None], scatter[..., None, None])[0][..., 0, 0]
    return covariances(ALIASES[form], weight.reshape(-1, 1), scatter[:, None], d=d)[0][:, 0]


def _varying_shapes(volume: str, weight: np.ndarray, scatter: np.ndarray) -> np.ndarray:
    """Covariances with the shapes of the scatters (..., k, d)."""
    return scatter * _volume_factor(volume, weight, np.log(scatter).mean(axis=-1))[..., None]


def _volume_factor(volume: str, weight: np.ndarray, log_size: Any) -> np.ndarray:
    r"""The factor (..., k) between scatter and covariance, if shapes vary.

    With :math:`g_k = |W_k|^{1/d}`, whose logarithm is `log_size`, the volume is :math:`g_k / N_k`, or
    :math:`\sum_j g_j / N` if it is equal in all components.
    """
    if volume == "V":
        return 1.0 / weight
    sizes = np.exp(log_size[..., None, :] - log_size[..., :, None]).sum(axis=-1)  # sum over j of g_j / g_k
    return sizes / weight.sum(axis=-1, keepdims=True)


def _equal_shape(volume: str, weight: np.ndarray, scatter: np.ndarray, axes: int = 1) -> np.ndarray:
    r"""Covariances with one shape, from diagonals (..., k, d) or, with two `axes`, from matrices (..., k, d, d).

    Minimises alternately over :math:`S` with :math:`\lambda` fixed, :math:`S = \sum_k W_k / \lambda_k / N`, and over
    :math:`\lambda` with :math:`S` fixed, :math:`\lambda_k = \mathrm{tr}(W_k S^{-1}) / (d N_k)`. Only their product
    matters, so neither is normalised. The objective is convex in the logarithms of :math:`\lambda` and along geodesics
    of :math:`S`, so the minimum is unique.
    """
    d, total = scatter.shape[-1], weight.sum(axis=-1, keepdims=True)
    size = scatter.shape[-axes:]
    flat = scatter.reshape(*weight.shape, d**axes)  # the trace of a matrix product is a product of vectors
    lam = np.ones(weight.shape)
    shape = flat.sum(axis=-2) / total
    for _ in range(MAX_ITER if volume == "V" else 0):
        matrix = shape.reshape(*shape.shape[:-1], *size)
        inverse = (np.linalg.inv(matrix) if axes == 2 else 1.0 / matrix).reshape(shape.shape)
        before, lam = lam, (flat @ inverse[..., None])[..., 0] / (d * weight)
        lam = np.maximum(lam, FLOOR * before)  # by rounding, the trace may be negative
        if (np.abs(lam / before - 1.0) <= TOL_VOLUME).all():
            break
        shape = ((1.0 / lam)[..., None, :] @ flat)[..., 0, :] / total
    return (lam[..., None] * shape[..., None, :]).reshape(scatter.shape)


def _equal_orientation(
    volume: str, weight: np.ndarray, scatter: np.ndarray, orientation: np.ndarray | None, sweeps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Covariances (..., k, d, d) with varying shapes and one orientation D; and D (..., d, d) [3]_.

    The diagonals of D'W_kD give the optimal volumes and shapes for a given D; a sweep of rotations then improves D for
    these. There can be several minima. The initial orientations are an additional batch axis, and the best result is
    returned; those that have converged are not changed while others continue.
    """
    if orientation is None:
        pooled = scatter.sum(axis=-3, keepdims=True)
        D = np.linalg.eigh(np.concatenate([pooled, scatter], axis=-3))[1]
    else:
        D = np.array(orientation, np.float64)[..., None, :, :]
    batch, (k, d) = D.shape[:-2], scatter.shape[-3:-1]
    M = (D.mT[..., None, :, :] @ scatter[..., None, :, :, :] @ D[..., None, :, :]).reshape(-1, k, d, d)
    weight = np.broadcast_to(weight[..., None, :], (*batch, k)).reshape(-1, k)
    D = D.reshape(-1, d, d)
    values = _varying_shapes(volume, weight, _floored_eigenvalues(_diagonals(M)))
    cost = _log_volume(weight, values)
    active = np.arange(len(D))
    for _ in range(sweeps):
        D[active], M[active] = _sweep(D[active], M[active], 1.0 / values[active])
        values[active] = _varying_shapes(volume, weight[active], _floored_eigenvalues(_diagonals(M[active])))
        before, cost[active] = cost[active], _log_volume(weight[active], values[active])
        active = active[before - cost[active] > TOL]
        if len(active) == 0:
            break
    best = cost.reshape(batch).argmin(axis=-1)[..., None, None, None]
    D = np.take_along_axis(D.reshape(*batch, d, d), best, -3)
    values = np.take_along_axis(values.reshape(*batch, k, d), best, -3)[..., 0, :, :]
    return _rotated(D, values), D[..., 0, :, :]


def _log_volume(weight: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The objective per N d at the optimal volumes and shapes; the sum of its traces is then N d for any D."""
    return (weight * np.log(values).mean(axis=-1)).sum(axis=-1) / weight.sum(axis=-1)


def _sweep(D: np.ndarray, M: np.ndarray, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""D (..., d, d) and M_k = D'W_kD (..., k, d, d), after every pair of columns was rotated by its optimal angle.

    With precisions :math:`p_k`, a rotation of columns i and j by the angle t changes
    :math:`\sum_k \mathrm{tr}(M_k \mathrm{diag}(p_k))` to :math:`P \cos 2t + Q \sin 2t` plus a constant, where
    :math:`P = \sum_k (p_{ki} - p_{kj}) (M_{kii} - M_{kjj}) / 2` and :math:`Q = \sum_k (p_{ki} - p_{kj}) M_{kij}`. Pairs
    without a common column are independent, so all pairs of a round are rotated at once.
    """
    for i, j in _rounds(D.shape[-1]):
        diagonals, slope = _diagonals(M), precision[..., i] - precision[..., j]
        P = (slope * (diagonals[..., i] - diagonals[..., j])).sum(axis=-2) / 2
        Q = (slope * M[..., i, j]).sum(axis=-2)
        angle = np.arctan2(0.0 - Q, 0.0 - P) / 2  # not -P: for P = Q = 0, a negative zero would give an angle of 90°
        rotation = np.broadcast_to(np.eye(D.shape[-1]), D.shape).copy()
        rotation[..., i, i] = rotation[..., j, j] = np.cos(angle)
        rotation[..., j, i] = np.sin(angle)
        rotation[..., i, j] = -rotation[..., j, i]
        D = D @ rotation
        M = rotation.mT[..., None, :, :] @ M @ rotation[..., None, :, :]
    return D, M


@lru_cache(maxsize=64)
def _rounds(d: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """All pairs of `d` columns in rounds (a round-robin tournament): in a round, each column occurs at most once."""
    m = d + d % 2  # for odd d, one column is not in a pair in each round
    rounds = []
    for r in range(m - 1):
        ring = [(r + step) % (m - 1) for step in range(m - 1)]
        pairs = [(ring[0], m - 1)] + [(ring[step], ring[-step]) for step in range(1, m // 2)]
        i, j = np.array([sorted(pair) for pair in pairs if max(pair) < d], int).reshape(-1, 2).T
        rounds.append((i, j))
    return rounds


def _rotated(vectors: np.ndarray, values: np.ndarray) -> np.ndarray:
    """V diag(values_k) V' (..., k, d, d), computed as a square, which is symmetric and positive despite rounding."""
    half = vectors * np.sqrt(values)[..., None, :]
    return half @ half.mT


def _diagonals(matrices: np.ndarray) -> np.ndarray:
    return matrices.diagonal(axis1=-2, axis2=-1)


def _units(pooled: np.ndarray) -> np.ndarray:
    """The pooled scatter of each column (..., d); the mean of the columns for constant columns."""
    mean = pooled.mean(axis=-1, keepdims=True)
    mean = np.where(mean > SMALLEST, mean, 1.0)
    return np.where(pooled > SMALLEST, pooled, mean)


def _floored_diagonals(scatter: np.ndarray) -> np.ndarray:
    """Diagonals (..., k, d), at least `FLOOR` times the pooled value of their column."""
    return np.maximum(scatter, FLOOR * _units(scatter.sum(axis=-2))[..., None, :])


def _floored(scatter: np.ndarray) -> np.ndarray:
    """Matrices (..., k, d, d) with eigenvalues of at least `FLOOR`, if columns are scaled to a pooled diagonal of ones.

    So the result does not depend on the units of the columns.
    """
    root = np.sqrt(_units(_diagonals(scatter).sum(axis=-2)))[..., None, :]
    units = root[..., :, None] * root[..., None, :]  # (..., 1, d, d)
    relative = scatter / units
    try:
        np.linalg.cholesky(relative - FLOOR * np.eye(scatter.shape[-1]))
        return scatter
    except np.linalg.LinAlgError:  # the slower eigenvalues are computed only if they are needed
        values, vectors = np.linalg.eigh(relative)
    low = values[..., 0] < FLOOR
    return np.where(low[..., None, None], units * _rotated(vectors, np.maximum(values, FLOOR)), scatter)


def needs_floor(structure: Structure, scatter: np.ndarray, rounding: np.ndarray) -> np.ndarray:
    """A mask (..., k or 1) of the scatters, by form, whose eigenvalues `covariances` raises to the floor.

    `rounding` (d,) is the part of the scatter of each column that is rounding error.
    """
    if structure.form == "spherical":
        low = scatter < np.maximum(FLOOR * scatter.sum(axis=-1, keepdims=True), rounding.sum())
    elif structure.form == "diag":
        low = (scatter < np.maximum(FLOOR * scatter.sum(axis=-2, keepdims=True), rounding)).any(axis=-1)
    else:
        matrices = scatter[..., None, :, :] if structure.form == "tied" else scatter
        root = np.sqrt(np.maximum(FLOOR * _diagonals(matrices).sum(axis=-2, keepdims=True), rounding))
        low = np.linalg.eigvalsh(matrices / (root[..., :, None] * root[..., None, :]))[..., 0] < 1.0
        if structure.name[1:] in ("EV", "VE"):
            total = _diagonals(matrices).mean(axis=-1).sum(axis=-1, keepdims=True)
            low |= np.linalg.eigvalsh(matrices)[..., 0] < FLOOR * total
    return low


def _floored_eigenvalues(values: np.ndarray) -> np.ndarray:
    """Eigenvalues (..., k, d), at least `FLOOR` times the sum over components of their means."""
    return np.maximum(values, FLOOR * values.mean(axis=-1, keepdims=True).sum(axis=-2, keepdims=True))
