"""Covariances of Gaussian components, projected onto the axes of a figure."""

from typing import Any

import numpy as np

from coterie.plots.projection import Array, View
from coterie.traces import Step, Trace


def project_covariances(trace: Trace, step: Step, view: View) -> Array | None:
    r"""Return the projected covariances :math:`V^\top \Sigma V` (k, p, p), or None if the model has none."""
    k, V = len(step.sizes), view.directions
    stored = _covariances(trace, step)
    if stored is None:
        return None
    form, covariances = stored
    projected = _project(form, np.asarray(covariances, dtype=np.float64), V)
    projected = np.broadcast_to(projected, (k, V.shape[1], V.shape[1]))
    return projected if step.places is None else projected[np.argsort(step.places)]


def _covariances(trace: Trace, step: Step) -> tuple[str, Any] | None:
    """Return the form of the covariances ('full', 'tied', 'diag' or 'spherical') and the covariances in this form."""
    params: Any = step.params
    parts: Any = getattr(params, "parts", None)
    if trace.form is not None and hasattr(params, "covariances"):
        return trace.form, params.covariances
    if hasattr(parts, "location") and hasattr(parts, "scale"):
        return {3: "full", 2: "diag", 1: "spherical"}[np.ndim(parts.scale)], parts.scale
    return None


def _project(form: str, covariances: Array, V: Array) -> Array:
    if form in ("full", "tied"):
        return V.T @ covariances @ V
    if form == "diag":
        return np.einsum("dp,kd,dq->kpq", V, covariances, V)
    return covariances[:, None, None] * (V.T @ V)
