"""Animations of a fit, as data for the HTML player, a GIF or a video."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from coterie.core.arguments import not_negative
from coterie.core.arrays import Array
from coterie.core.formatting import count, join_words
from coterie.core.protocols import LocationScale
from coterie.core.writing import check_path, write_whole
from coterie.data.row_sample import sample_rows
from coterie.errors import ParameterError
from coterie.palette import blends, colours
from coterie.plots.cloud import n_bins_for
from coterie.plots.display import check_result, plain
from coterie.plots.projection import Rows, View
from coterie.traces import Step, Trace
from coterie.web import box_of, ellipses_of, embedded, pack_labels, pack_points, pack_rgb, player_page

MAX_POINTS, MIN_POINTS = 5000, 500  # number of rows that are shown; fewer if there are many steps
MAX_FRAMES = 240  # number of steps that are shown
MAX_BYTES = 600_000  # size of the colours of all points at all steps
HEIGHT = 740  # height of the frame in a notebook, in pixels
CENTER_HEIGHT = 1.08  # vertical position of centers above a histogram of height 1
THIN = 1e-4  # vertical variance of ellipses for one column
COLOUR_TOLERANCE = 2 / 255  # smaller differences of colours are not visible
MAX_GIF_FPS = 50
SUFFIXES = (".html", ".gif", ".mp4")


@dataclass(frozen=True)
class Frame:
    """The figure after a step of the fit."""

    step: str
    iteration: int
    caption: str
    labels: Array | None  # (m,) clusters of the points; None: unchanged
    rgb: Array | None  # (m, 3) blended colours from 0 to 1; None: unchanged
    centers: Array  # (k, 2)
    ellipses: list[list[float]] | None  # (k, 5) center, half axes and angle, at two standard deviations
    sizes: Array  # (k,)
    objective: float | None
    bound: float | None


@dataclass(eq=False, repr=False)
class Animation:
    """The steps of a fit as an animation; the result of `animate`.

    Notebooks show it as a player, in a sandboxed frame. `save` writes a file.
    """

    title: str
    axes: list[str]  # names of the axes; a single one if one column is drawn as a histogram of points
    box: list[float]  # minimum and maximum x, minimum and maximum y
    rows: int  # number of rows
    points: Array  # (m, 2) the rows that are shown
    colors: list[str]  # (k,) '#rrggbb'
    names: list[str]  # (k,)
    soft: bool  # whether points have blended colours
    objective: str  # name of the objective
    better: str  # 'lower' or 'higher'
    frames: list[Frame]
    note: str = ""  # addition to the title, such as a note about missing values

    def __repr__(self) -> str:
        return f"Animation({self.title!r}, {count(len(self.frames), 'step')}, {count(len(self.points))} shown)"

    def to_dict(self) -> dict[str, Any]:
        """Return the data of the player: lists, strings and numbers, with points and colours as base64."""
        k = len(self.names)
        return {
            "kind": "player", "title": f"{self.title}; {self.note}" if self.note else self.title, "axes": self.axes,
            "box": self.box, "rows": self.rows, "shown": len(self.points),
            "points": pack_points(self.points, self.box), "colors": self.colors, "names": self.names,
            "soft": self.soft, "objective": {"name": self.objective, "better": self.better},
            "frames": [_pack(frame, k) for frame in self.frames],
        }  # fmt: skip

    def to_html(self) -> str:
        """Return a self-contained HTML page with the player."""
        return player_page(self.to_dict())

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        return str(embedded(self.to_html(), HEIGHT))

    def save(self, path: str | PathLike[str], *, fps: float = 2.0, overwrite: bool = False) -> None:
        """Write the animation to a file: .html (the player), .gif, or .mp4 (requires ffmpeg).

        If writing fails, no partial file is left.

        Parameters
        ----------
        path : str or Path
            File to write; its suffix sets the format.
        fps : float, default=2
            Steps per second of .gif (at most 50) and .mp4. The player in .html has its own control of the speed.
        overwrite : bool, default=False
            Overwrite an existing file.
        """
        path = Path(path)
        if path.suffix not in SUFFIXES:
            raise ParameterError(f'path must end in {join_words(SUFFIXES, "or")}; got "{path}"')
        check_path(path, overwrite)
        if not_negative("fps", fps) == 0:
            raise ParameterError(f"fps must be a number above 0; got {fps!r}")
        if path.suffix == ".gif" and fps > MAX_GIF_FPS:
            raise ParameterError(
                f"fps must be at most {MAX_GIF_FPS} for a .gif, because most players show a frame for at least 0.02 s; "
                f"got {fps!r}: use a smaller fps, or save as .mp4 or .html"
            )
        if path.suffix == ".html":
            data = self.to_html().encode()
        else:
            from coterie.plots.video import render_video

            data = render_video(self, path.suffix, float(fps))
        write_whole(path, data, overwrite)


def animate(trace: Trace, *, columns: Any = None) -> Animation:
    """Animate the steps of a fit: rows and centers, and the objective beside them.

    Rows have the colour of their cluster, or a blend of colours by their responsibilities. Centers are numbered and
    leave a trail. Gaussian components are drawn as ellipses at two standard deviations. For mixtures, the lower bound
    of the log-likelihood is drawn too: every E-step raises it to the log-likelihood, and every M-step raises both.

    Parameters
    ----------
    trace : coterie.traces.Trace
        The result of `fit_trace` of an estimator.
    columns : str, int, sequence of one or two of these, or None, default=None
        Names or numbers of the columns to show. None: all columns, or the first two principal axes of more than two.

    Returns
    -------
    Animation

    Examples
    --------
    >>> from coterie import KMeans, plots
    >>> from coterie.datasets import make_blobs
    >>> X, _ = make_blobs(300, 2, centers=3, random_state=0)
    >>> trace = KMeans(3, init="forgy", n_init=1, random_state=1).fit_trace(X)
    >>> animation = plots.animate(trace)
    >>> animation.frames[1].caption
    'assign: 300 rows to their nearest centers'
    >>> animation.save("fit.html")  # doctest: +SKIP
    """
    check_result("trace", trace, (Trace,), "fit_trace")
    rows = trace.rows.astype(np.float64)
    view = View.of(Rows(rows, trace.columns, rows.mean(axis=0), rows.var(axis=0)), columns)
    steps = trace.steps
    if len(steps) > MAX_FRAMES:  # the first ones, and equally spaced later ones
        first = MAX_FRAMES // 2
        later = np.linspace(first, len(steps) - 1, MAX_FRAMES - first).round().astype(int)
        steps = [*steps[:first], *(steps[i] for i in later)]
    k = len(steps[-1].sizes)
    names, shades = [str(j) for j in range(k)], colours(k)
    paints = [*_paints(trace, steps, shades)]
    index = sample_rows(len(rows), _max_points(paints))
    points = view.points(rows[index])
    points = points if len(view.axes) == 2 else histogram_points(points[:, 0])
    frames = [_frame(trace, step, view, paint, index) for step, paint in zip(steps, paints, strict=True)]
    title = f"{type(trace.model).__name__} of {count(trace.n)}, step by step"
    note = "missing values are shown at the means of their columns" if trace.filled else ""
    return Animation(
        title, view.axes, box_of(points, *(frame.centers for frame in frames)), trace.n, points, shades, names,
        trace.soft, trace.objective, trace.better, frames, note,
    )  # fmt: skip


def _paints(trace: Trace, steps: Sequence[Step], shades: list[str]) -> Iterator[Array | None]:
    """Yield for each step the labels (m,) or colours (m, 3) of the rows; None if they look unchanged."""
    last = None
    for step in steps:
        shares = trace.shares(step) if trace.soft else None
        paint = step.labels if not trace.soft else None if shares is None else blends(shares, shades)
        is_same = paint is None or (last is not None and np.abs(paint - last).max() < COLOUR_TOLERANCE)
        yield None if is_same else paint
        last = last if is_same else paint


def _frame(trace: Trace, step: Step, view: View, paint: Array | None, index: Array) -> Frame:
    paint = None if paint is None else paint[index]
    labels, rgb = (None, paint) if trace.soft else (paint, None)
    centers, spreads = view.points(step.centers), project_covariances(trace, step, view)
    if len(view.axes) == 1:
        heights = CENTER_HEIGHT + min(0.06, 0.4 / len(centers)) * np.arange(len(centers))[::-1]
        centers = np.column_stack([centers[:, 0], heights])
        spreads = None if spreads is None else np.array([np.diag([spread[0, 0], THIN]) for spread in spreads])
    ellipses = None if spreads is None else ellipses_of(centers, spreads)
    values = (plain(float(step.objective)), None if step.bound is None else plain(float(step.bound)))
    return Frame(step.kind, step.iteration, step.caption, labels, rgb, centers, ellipses, step.sizes, *values)


def project_covariances(trace: Trace, step: Step, view: View) -> Array | None:
    r"""Return the projected covariances :math:`V^\top \Sigma V` (k, p, p), or None if the model has none."""
    params: Any = step.params
    parts: Any = getattr(params, "parts", None)
    V = view.directions
    if trace.form is not None and hasattr(params, "covariances"):
        form, stored = trace.form, params.covariances
    elif isinstance(parts, LocationScale):
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


def _max_points(paints: Sequence[Array | None]) -> int:
    """Return the number of points whose colours at all steps fit into `MAX_BYTES`."""
    bytes_per_point = sum(
        4.0 if paint.ndim == 2 else 8 / 3 if paint.max() > 254 else 4 / 3 for paint in paints if paint is not None
    )
    return int(np.clip(MAX_BYTES / max(bytes_per_point, 1.0), MIN_POINTS, MAX_POINTS))


def histogram_points(x: Array) -> Array:
    """Return the values of one column as points stacked in a histogram of height 1 (m, 2)."""
    low, high = float(x.min()), float(x.max())
    bins = n_bins_for(len(x))
    bin_index = np.minimum(((x - low) / max(high - low, np.finfo(np.float64).tiny) * bins).astype(int), bins - 1)
    order = np.argsort(bin_index, kind="stable")
    counts = np.bincount(bin_index, minlength=bins)
    height = np.empty(len(x))
    height[order] = np.arange(len(x)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.column_stack([x, (height + 0.5) / counts.max()])


def _pack(frame: Frame, k: int) -> dict[str, Any]:
    return {
        "step": frame.step, "iteration": frame.iteration, "caption": frame.caption,
        "labels": None if frame.labels is None else pack_labels(frame.labels, k),
        "rgb": None if frame.rgb is None else pack_rgb(frame.rgb),
        "centers": _round(frame.centers),
        "ellipses": None if frame.ellipses is None else _round(np.array(frame.ellipses)),
        "sizes": _round(frame.sizes), "objective": frame.objective, "bound": frame.bound,
    }  # fmt: skip


def _round(values: Array) -> Any:
    """Round to six digits, which is below the resolution of the figure."""
    return plain([float(f"{value:.6g}") for value in values] if values.ndim == 1 else [_round(row) for row in values])
