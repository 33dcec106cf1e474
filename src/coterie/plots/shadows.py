"""Gaussian components of a step, as the picture sees them."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.plots.rows import Array, View
from coterie.traces import Step, Trace


def shadows(trace: Trace, step: Step, view: View) -> Array | None:
    r"""Covariances in the picture :math:`V^\top \Sigma V` (k, p, p); None of what has none."""
    k, V = len(step.sizes), view.directions
    found = _covariances(trace, step)
    if found is None:
        return None
    form, given = found
    made = np.broadcast_to(_seen(form, np.asarray(given, dtype=np.float64), V), (k, V.shape[1], V.shape[1]))
    return made if step.places is None else made[np.argsort(step.places)]


def _covariances(trace: Trace, step: Step) -> tuple[str, Any] | None:
    """What components keep of their covariances, and in which form."""
    params: Any = step.params
    parts: Any = getattr(params, "parts", None)
    if trace.form is not None and hasattr(params, "covariances"):
        return trace.form, params.covariances
    if hasattr(parts, "location") and hasattr(parts, "scale"):
        return {3: "full", 2: "diag", 1: "spherical"}[np.ndim(parts.scale)], parts.scale
    return None


def _seen(form: str, given: Array, V: Array) -> Array:
    if form in ("full", "tied"):
        return V.T @ given @ V
    if form == "diag":
        return np.einsum("dp,kd,dq->kpq", V, given, V)
    return given[:, None, None] * (V.T @ V)
