"""K-means on a GPU: the centers stay on the device during a fit, and small restarts run together."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from coterie import kernels
from coterie.core.loop import Descent, Fit
from coterie.core.protocols import Chunk, Engine, Source
from coterie.kmeans.center_model import KMeansStats
from coterie.kmeans.fits_together import SharedFit, can_fit_together, fit_together
from coterie.kmeans.lloyd import Bounds, Lloyd


@dataclass(frozen=True)
class DeviceLloyd(Lloyd):
    """Lloyd's algorithm with centers (k, d) in a `DeviceArray`, so that no pass copies them from or to the device."""

    bounds: bool = False

    def init(self, source: Any, engine: Engine, rng: np.random.Generator) -> Any:
        from coterie.kernels.cuda import DeviceArray, as_tensor

        return DeviceArray(as_tensor(super().init(source, engine, rng), source.device))

    def e_step(self, centers: Any, chunk: Chunk, memo: Bounds | None = None) -> tuple[Any, Any]:
        memo = memo or self._initial_bounds(*chunk.X.shape)
        sums = self._kernels(chunk.X, len(centers)).lloyd(chunk.X, chunk.w, centers, None, memo.labels, memo.lower)
        return KMeansStats(*sums), memo

    def m_step(self, centers: Any, stats: Any) -> Any:
        """The centers at the means of their rows; their squared movements stay on the device until they are needed."""
        is_free = self._free(stats.weight > 0)
        ops = kernels.for_centers(centers, 1)
        moved, moved.state["steps"] = ops.move_centers(centers, stats.sum_dx, stats.weight, is_free)
        return moved

    def has_converged(self, before: Any, after: Any, stats: Any, *progress: Any) -> bool:
        if stats.moved == 0:
            return True
        step = after.state.get("steps")  # None after a repair
        if step is None:
            step = (after.tensor.double() - before.tensor.double()).square()
        return float(step.sum()) <= self.tol

    def fit_restarts(
        self, source: Any, engine: Engine, rng: np.random.Generator, n_init: int, max_iter: int
    ) -> list[Fit] | None:
        """The fits of all restarts, whose iterations run together; None if there are too many rows or clusters."""
        if self.frozen is not None or not can_fit_together(source, self.n_clusters):
            return None
        starts = [np.asarray(self.init(source, engine, child)) for child in rng.spawn(n_init)]
        fits = fit_together(source, starts, [self.tol] * n_init, max_iter)
        return [
            self._own_fit(run, start, source, engine, max_iter) if fit is None else self._as_fit(run, fit, source)
            for run, (start, fit) in enumerate(zip(starts, fits, strict=True))
        ]

    def _own_fit(self, run: int, start: np.ndarray, source: Any, engine: Engine, max_iter: int) -> Fit:
        *_, fit = Descent(replace(self, start=start), source, engine, run, False).iterations(
            np.random.default_rng(0), max_iter
        )
        return replace(fit, memos=None)

    @staticmethod
    def _as_fit(run: int, fit: SharedFit, source: Any) -> Fit:
        from coterie.kernels.cuda import DeviceArray, as_tensor

        centers = DeviceArray(as_tensor(fit.centers, source.device))
        return Fit(centers, fit.history[-1], fit.history, fit.converged, run, len(fit.history))

    def _with_rows(self, centers: Any, indices: np.ndarray, rows: np.ndarray) -> Any:
        from coterie.kernels.cuda import DeviceArray

        changed = DeviceArray(centers.tensor.clone())
        changed[indices] = rows
        return changed


def on_device(model: Lloyd, source: Source) -> Lloyd:
    """The model, or its variant for rows on a device."""
    if source.engine != "cuda":
        return model
    options = {each.name: getattr(model, each.name) for each in fields(model)}
    return DeviceLloyd(**{**options, "bounds": False})
