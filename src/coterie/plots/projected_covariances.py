"""Covariances of Gaussian components, projected onto the axes of a figure."""

from typing import Any

import numpy as np

from coterie.plots.projection import Array, View
from coterie.traces import Step, Trace


def project_covariances(trace: Trace, step: Step, view: View) -> Array | None:
    r"""Return the projected covariances :math:`V^\top \Sigma V` (k, p, p), or None if the model has none."""
    params: Any = step.params
    parts: Any = getattr(params, "parts", None)
    V = view.directions
    if trace.form is not None and hasattr(params, "covariances"):
        form, stored = trace.form, params.covariances
    elif hasattr(parts, "location") and hasattr(parts, "scale"):
        form, stored = {3: "full", 2: "diag", 1: "spherical"}[np.ndim(parts.scale)], parts.scale
    else:
        return None
    covariances = np.asarray(stored, dtype=np.float64)
    if form in ("full", "tied"):
        projected = V.T @ covariances @ V
    elif form == "diag":
        projected = np.einsum("dp,kd,dq->kpq", V, covariances, V)
    else:
        projected = covariances[:, None, None] * (V.T @ V)
    projected = np.broadcast_to(projected, (len(step.sizes), V.shape[1], V.shape[1]))
    return projected if step.places is None else projected[np.argsort(step.places)]
