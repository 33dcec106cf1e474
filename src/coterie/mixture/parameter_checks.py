"""Checks of the parameters of mixtures that are arrays: initial values, fixed parts, labels and concentrations."""

from typing import Any

import numpy as np

from coterie.core.arguments import as_floats
from coterie.errors import InputError, ParameterError
from coterie.families import forms

FIXABLE = ("weights", "means", "covariances")


def weights(value: Any, k: int) -> np.ndarray:
    """Check `weights_init`."""
    array = numbers("weights_init", value, (k,))
    if (array < 0).any() or abs(array.sum() - 1) > 1e-6:
        raise ParameterError(
            f"weights_init must be {k} numbers >= 0 that sum to 1; they sum to {array.sum():.6g}"
            + (" and some are negative" if (array < 0).any() else "")
        )
    return array / array.sum()


def covariances(value: Any, form: str, k: int, d: int) -> np.ndarray:
    """Convert `precisions_init` to covariances of the same form."""
    precisions = numbers("precisions_init", value, forms.shape(form, k, d), " for this covariance_type")
    if form in ("diag", "spherical"):
        if (precisions <= 0).any():
            raise ParameterError(f"precisions_init must be above 0; the minimum is {precisions.min():.6g}")
        return 1 / precisions
    transposed = np.swapaxes(precisions, -1, -2)
    if not np.allclose(precisions, transposed, rtol=1e-8, atol=1e-12 * np.abs(precisions).max()):
        raise ParameterError("precisions_init must be symmetric; its matrices differ from their transposes")
    smallest = np.linalg.eigvalsh(precisions)[..., 0]
    if (smallest <= 0).any():
        component = "" if form == "tied" else f" of component {int(np.argmin(smallest))}"
        raise ParameterError(
            f"precisions_init must be positive definite; the smallest eigenvalue{component} is {smallest.min():.6g}"
        )
    return np.linalg.inv((precisions + transposed) / 2)


def fixed(value: Any) -> frozenset[str]:
    """Convert `fixed` to a set of names."""
    names = (value,) if isinstance(value, str) or not np.iterable(value) else tuple(value)
    names = () if value is None else names
    unknown = [name for name in names if name not in FIXABLE]
    if unknown:
        raise ParameterError(f"fixed must be names among {', '.join(map(repr, FIXABLE))}; got {unknown[0]!r}")
    return frozenset(names)


def concentration(value: Any, k: int) -> np.ndarray:
    """Check the concentration of a Dirichlet prior of the weights: one number, or one for each component."""
    try:
        array = as_floats(value)
    except (TypeError, ValueError):
        array = np.full(2, np.nan)
    if array.shape not in ((), (k,)) or not np.isfinite(array).all() or (array <= 0).any():
        raise ParameterError(f"concentration must be a number above 0, or n_components={k} of them; got {value!r}")
    return array


def known_labels(value: Any, k: int) -> np.ndarray | None:
    """Check `known_labels`: components from 0, or -1 for unknown. The result is None if no label is known."""
    if value is None or k == 1:
        return None
    labels = _labels("known_labels", value, ", -1 for rows whose label is unknown")
    if labels.ndim != 1:
        raise InputError(f"known_labels must have one label for each row; its shape is {labels.shape}")
    if labels.min(initial=0) < -1 or labels.max(initial=0) >= k:
        invalid = labels[(labels < -1) | (labels >= k)][0]
        raise InputError(
            f"known_labels must be the component of each row, from 0 to n_components - 1 = {k - 1}, or -1 if it is "
            f"unknown; got {int(invalid)}"
        )
    return labels if (labels >= 0).any() else None


def responsibilities(value: Any, n: int, k: int) -> np.ndarray:
    """Convert `init_params`, labels (n,) or responsibilities (n, k), to responsibilities."""
    array = np.asarray(value)
    if array.ndim not in (1, 2):
        raise ParameterError(f"init_params must be the name of a method, labels or responsibilities; got {value!r}")
    if len(array) != n:
        raise ParameterError(
            f"init_params must have an entry for each of the {n} rows of X; its shape is {array.shape}"
        )
    if array.ndim == 1:
        labels = _labels("init_params", array)
        if labels.min(initial=0) < 0 or labels.max(initial=0) >= k:
            raise ParameterError(
                f"init_params: labels must be from 0 to n_components - 1 = {k - 1}; "
                f"got {int(labels.min())} to {int(labels.max())}"
            )
        return (labels[:, None] == np.arange(k)).astype(np.float64)
    try:
        resp = array.astype(np.float64)
    except (TypeError, ValueError):
        raise ParameterError("init_params must be the name of a method, labels or responsibilities") from None
    if resp.ndim != 2 or resp.shape[1] != k:
        raise ParameterError(
            f"init_params: responsibilities must have a column for each of n_components={k}; shape is {resp.shape}"
        )
    if not np.isfinite(resp).all() or (resp < 0).any() or np.abs(resp.sum(axis=1) - 1).max() > 1e-6:
        raise ParameterError("init_params: responsibilities must not be negative, and sum to 1 in every row")
    return resp


def _labels(name: str, value: Any, hint: str = "") -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind == "c":
        raise InputError(f"Complex data not supported: {name} must be whole numbers")
    if array.dtype.kind not in "iub":
        try:
            numbers = array.astype(np.float64)
        except (TypeError, ValueError):
            numbers = np.full(array.shape, np.nan)
        is_whole = np.isfinite(numbers) & (numbers == np.floor(numbers))
        if not is_whole.all():
            raise InputError(f"{name} must be whole numbers{hint}; got {array.ravel()[~is_whole.ravel()][0]}")
        array = numbers
    return np.clip(array, -2, np.iinfo(np.int32).max).astype(np.int32)  # values out of range stay out of range


def numbers(name: str, value: Any, shape: tuple[int, ...], reason: str = "") -> np.ndarray:
    """Check an array of finite numbers of this shape, and copy it."""
    try:
        array = as_floats(value).copy()
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be numbers; got {value!r}") from None
    if array.shape != shape:
        raise ParameterError(f"{name} must have shape {shape}{reason}; its shape is {array.shape}")
    if not np.isfinite(array).all():
        raise ParameterError(f"{name} contains NaN or infinity: pass finite numbers")
    return array
