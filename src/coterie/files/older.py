"""Files of older versions: fields that records had then, as they are today."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from coterie.core.errors import ModelFileError

MAHALANOBIS = "distances.mahalanobis.Mahalanobis"
_OF_EUCLIDEAN = {"exponent_": 0}
ADDED: dict[str, dict[str, Any]] = {  # fields that files of older versions lack, with the value that means the same
    "distances.cosine.Correlation": _OF_EUCLIDEAN,
    "distances.cosine.Cosine": _OF_EUCLIDEAN,
    "distances.euclidean.Euclidean": _OF_EUCLIDEAN,
    "distances.euclidean.SquaredEuclidean": _OF_EUCLIDEAN,
    MAHALANOBIS: {**_OF_EUCLIDEAN, "pseudo_inverse": False},
}
REMOVED = {MAHALANOBIS: ["factor_"]}  # fields that only files of older versions have


def updated(tag: str, values: dict[str, Any]) -> dict[str, Any]:
    """The fields that a record of this version has, from those in a file of this version or an older one."""
    values = ADDED.get(tag, {}) | values
    if "factor_" not in values:
        return values
    if "whitening_" in values or "origin_" in values:
        raise ModelFileError(f"{tag} has fields of two versions: factor_, and origin_ or whitening_")
    return {name: value for name, value in values.items() if name != "factor_"} | _whitening(values["factor_"])


def _whitening(factor: Any) -> dict[str, Any]:
    """From the lower triangle L of the covariance L L': rows times the inverse of L' have unit covariance."""
    if factor is None:
        return {"origin_": None, "whitening_": None}
    whitening = solve_triangular(factor, np.eye(len(factor)), lower=True).T
    return {"origin_": np.zeros(len(factor)), "whitening_": np.ascontiguousarray(whitening)}
