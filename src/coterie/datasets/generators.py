"""Random data sets with known clusters. The same ``random_state`` gives the same data."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from coterie.errors import ParameterError

Seed: TypeAlias = int | Sequence[int] | np.random.SeedSequence | np.random.Generator | None


class GaussianTruth(NamedTuple):
    """The parameters of the mixture of :func:`make_gaussians`.

    Attributes
    ----------
    weights : ndarray of shape (k,)
    means : ndarray of shape (k, d)
    covariances : ndarray of shape (k, d, d)
    """

    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    covariances: NDArray[np.float64]


def make_blobs(
    n_samples: int = 100,
    n_features: int = 2,
    centers: int | ArrayLike = 3,
    cluster_std: float | ArrayLike = 1.0,
    *,
    center_box: tuple[float, float] = (-10.0, 10.0),
    random_state: Seed = None,
    dtype: DTypeLike = np.float64,
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Generate round clusters of equal size.

    Parameters
    ----------
    n_samples : int, default=100
        Number of rows. Cluster sizes differ by at most one.
    n_features : int, default=2
        Number of columns. Ignored if `centers` is an array.
    centers : int or array-like of shape (k, d), default=3
        Number of clusters, or their centers. If a number, centers are uniformly distributed in `center_box`.
    cluster_std : float or array-like of shape (k,), default=1.0
        Standard deviation of each column, one for all clusters or one for each.
    center_box : (float, float), default=(-10.0, 10.0)
        Minimum and maximum of the coordinates of random centers.
    random_state : int, Generator or None, default=None
        Seed or random generator. None gives different data each time.
    dtype : dtype, default=float64
        Type of `X`, float32 or float64. float32 numbers are generated directly, without float64 copies.

    Returns
    -------
    X : ndarray of shape (n_samples, d)
    y : ndarray of shape (n_samples,)
        Cluster of each row.

    Examples
    --------
    >>> from coterie.datasets import make_blobs
    >>> X, y = make_blobs(6, centers=[[0, 0], [9, 9]], cluster_std=0.1, random_state=0)
    >>> X.shape, sorted(y.tolist())
    ((6, 2), [0, 0, 0, 1, 1, 1])
    >>> ((X[:, 0] > 4.5) == (y == 1)).all()
    np.True_
    """
    rng = np.random.default_rng(random_state)
    centers = _blob_centers(centers, n_features, center_box, rng)
    k = len(centers)
    y = _balanced_labels(n_samples, k, rng)
    spread = _per_cluster("cluster_std", cluster_std, k)
    X = _noise((n_samples, centers.shape[1]), dtype, rng)
    X *= spread.astype(X.dtype)[y, np.newaxis]
    X += centers.astype(X.dtype)[y]
    return X, y


def make_gaussians(
    n_samples: int = 300,
    n_features: int = 2,
    n_components: int = 3,
    *,
    separation: float = 5.0,
    elongation: float = 3.0,
    random_state: Seed = None,
    dtype: DTypeLike = np.float64,
) -> tuple[NDArray[Any], NDArray[np.int64], GaussianTruth]:
    """Generate rows of a Gaussian mixture with random weights, means and full covariances.

    A covariance is :math:`Q \\operatorname{diag}(s^2) Q^T` with a random rotation :math:`Q`. The standard deviations
    :math:`s` are log-uniformly distributed from `1 / elongation` to `elongation`.

    Parameters
    ----------
    n_samples : int, default=300
        Number of rows.
    n_features : int, default=2
        Number of columns.
    n_components : int, default=3
        Number of components.
    separation : float, default=5.0
        Standard deviation of the means around the origin.
    elongation : float, default=3.0
        Maximum standard deviation along an axis of a component, at least 1. The minimum is `1 / elongation`, so that 1
        gives round components.
    random_state : int, Generator or None, default=None
        Seed or random generator. None gives different data each time.
    dtype : dtype, default=float64
        Type of `X`, float32 or float64.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Component of each row, sampled by weight, so that the sizes of components are random.
    truth : GaussianTruth
        `weights`, `means` and `covariances` of the mixture.

    Examples
    --------
    >>> from coterie.datasets import make_gaussians
    >>> X, y, truth = make_gaussians(500, n_features=3, n_components=2, random_state=0)
    >>> X.shape, truth.means.shape, truth.covariances.shape
    ((500, 3), (2, 3), (2, 3, 3))
    >>> float(truth.weights.sum())
    1.0
    """
    _require_positive(n_samples=n_samples, n_features=n_features, n_components=n_components)
    if elongation < 1:
        raise ParameterError(f"elongation must be at least 1 (round components); got {elongation!r}")
    rng = np.random.default_rng(random_state)
    k, d = n_components, n_features
    weights = rng.dirichlet(np.full(k, 5.0))
    means = separation * rng.standard_normal((k, d))
    rotations = np.linalg.qr(rng.standard_normal((k, d, d))).Q
    factors = rotations * elongation ** rng.uniform(-1.0, 1.0, (k, 1, d))
    y = rng.choice(k, size=n_samples, p=weights)
    X = _noise((n_samples, d), dtype, rng)
    for component in range(k):
        rows = y == component
        X[rows] = X[rows] @ factors[component].T.astype(X.dtype) + means[component].astype(X.dtype)
    return X, y, GaussianTruth(weights, means, factors @ factors.transpose(0, 2, 1))


def make_moons(
    n_samples: int = 100, *, noise: float = 0.05, random_state: Seed = None, dtype: DTypeLike = np.float64
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Generate two interleaving half circles: clusters that cannot be described by centers.

    Parameters
    ----------
    n_samples : int, default=100
        Number of rows, half of them on each moon.
    noise : float, default=0.05
        Standard deviation of the noise around the curves.
    random_state : int, Generator or None, default=None
        Seed or random generator. None gives different data each time.
    dtype : dtype, default=float64
        Type of `X`, float32 or float64.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,)
        0 on the upper moon, 1 on the lower.

    Examples
    --------
    >>> from coterie.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.0, random_state=0)
    >>> float(X[y == 0, 1].min()) >= 0.0
    True
    """
    rng = np.random.default_rng(random_state)
    y = _balanced_labels(n_samples, 2, rng)
    angle = rng.uniform(0.0, np.pi, n_samples)
    upper = np.column_stack([np.cos(angle), np.sin(angle)])
    curve = np.where(y[:, np.newaxis] == 0, upper, [1.0, 0.5] - upper)
    return _add_noise(curve, noise, dtype, rng), y


def make_rings(
    n_samples: int = 100,
    *,
    n_rings: int = 2,
    noise: float = 0.05,
    random_state: Seed = None,
    dtype: DTypeLike = np.float64,
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Generate concentric circles of radius 1, 2, …: clusters with the same center.

    Parameters
    ----------
    n_samples : int, default=100
        Number of rows. The sizes of rings differ by at most one.
    n_rings : int, default=2
        Number of rings.
    noise : float, default=0.05
        Standard deviation of the noise around the curves.
    random_state : int, Generator or None, default=None
        Seed or random generator. None gives different data each time.
    dtype : dtype, default=float64
        Type of `X`, float32 or float64.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,)
        Ring of each row, 0 the innermost.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.datasets import make_rings
    >>> X, y = make_rings(90, n_rings=3, noise=0.0, random_state=0)
    >>> np.allclose(np.hypot(*X.T), y + 1)
    True
    """
    _require_positive(n_rings=n_rings)
    rng = np.random.default_rng(random_state)
    y = _balanced_labels(n_samples, n_rings, rng)
    angle = rng.uniform(0.0, 2.0 * np.pi, n_samples)
    curve = (y + 1.0)[:, np.newaxis] * np.column_stack([np.cos(angle), np.sin(angle)])
    return _add_noise(curve, noise, dtype, rng), y


def _blob_centers(
    centers: int | ArrayLike, d: int, box: tuple[float, float], rng: np.random.Generator
) -> NDArray[np.float64]:
    if isinstance(centers, (int, np.integer)):
        _require_positive(centers=int(centers), n_features=d)
        return rng.uniform(*box, size=(centers, d))
    array = np.asarray(centers, dtype=np.float64)
    if array.ndim != 2 or array.size == 0:
        raise ParameterError(f"centers must be a number or an array of shape (k, d); got shape {array.shape}")
    return array


def _per_cluster(name: str, value: float | ArrayLike, k: int) -> NDArray[np.float64]:
    values = np.asarray(value, dtype=np.float64)
    if values.ndim > 1 or (values.ndim == 1 and len(values) != k):
        raise ParameterError(f"{name} must be one number or one for each of {k} clusters; got {value!r}")
    if (values < 0).any():
        raise ParameterError(f"{name} must not be negative; got {value!r}")
    return np.broadcast_to(values, (k,))


def _balanced_labels(n: int, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    _require_positive(n_samples=n)
    return rng.permutation(np.arange(n, dtype=np.int64) % k)


def _noise(shape: tuple[int, int], dtype: DTypeLike, rng: np.random.Generator) -> NDArray[Any]:
    dtype = np.dtype(dtype)
    if dtype == np.float32:
        return rng.standard_normal(shape, dtype=np.float32)
    if dtype == np.float64:
        return rng.standard_normal(shape)
    raise ParameterError(f"dtype must be float32 or float64; got {dtype.name!r}")


def _add_noise(curve: NDArray[np.float64], noise: float, dtype: DTypeLike, rng: np.random.Generator) -> NDArray[Any]:
    if noise < 0:
        raise ParameterError(f"noise must not be negative; got {noise!r}")
    X = _noise((len(curve), 2), dtype, rng)
    X *= noise
    X += curve.astype(X.dtype)
    return X


def _require_positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ParameterError(f"{name} must be at least 1; got {size!r}")
