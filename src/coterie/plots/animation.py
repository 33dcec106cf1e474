"""A fit as it goes: the same plain data for the player of a page, for a GIF and for a film."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from coterie.core.arguments import not_negative
from coterie.core.errors import ParameterError
from coterie.core.writing import exists, real_path, write_whole
from coterie.data.picking import some
from coterie.palette import blends, colours
from coterie.plots.display import Array, check_result, counted, plain
from coterie.plots.rows import Rows, View
from coterie.plots.shadows import shadows
from coterie.traces import Step, Trace
from coterie.web import box_of, ellipses_of, embedded, pack_labels, pack_points, pack_rgb, player_page

POINTS, LEAST = 5000, 500  # rows that are shown, and where steps are many
FRAMES = 240  # steps that are shown
BYTES = 600_000  # of the colours of all points at all steps
HEIGHT = 740  # of the frame in a notebook, in pixels
BINS = 60  # along one column
TOP = 1.08  # of rows piled up to 1, how high centers are
THIN = 1e-4  # the variance across one column of what has none
ALIKE = 2 / 255  # colours nobody tells apart
FASTEST = 50  # steps a second that a GIF can show
SUFFIXES = (".html", ".gif", ".mp4")


@dataclass(frozen=True)
class Frame:
    """What is seen after a step."""

    step: str
    iteration: int
    caption: str
    labels: Array | None  # (m,) of the points; None: as before
    rgb: Array | None  # (m, 3) from 0 to 1, where points have blended colours; None: as before
    centers: Array  # (k, 2)
    ellipses: list[list[float]] | None  # (k, 5) center, half axes, angle: two standard deviations
    sizes: Array  # (k,)
    objective: float | None
    bound: float | None


@dataclass(eq=False, repr=False)
class Animation:
    """A fit as pictures: what `animate` makes of a trace.

    A notebook shows it as a player, in a frame whose scripts reach nothing outside. `save` writes files.
    """

    title: str
    axes: list[str]  # what is shown along each axis; one for one column, in which rows are piled up
    box: list[float]  # lowest and highest x, lowest and highest y
    rows: int  # there are
    points: Array  # (m, 2) those shown
    colors: list[str]  # (k,) '#rrggbb'
    names: list[str]  # (k,)
    soft: bool  # whether points have blended colours
    objective: str
    better: str  # 'lower' or 'higher'
    frames: list[Frame]
    note: str = ""  # what else there is to say of the rows

    def __repr__(self) -> str:
        return f"Animation({self.title!r}, {counted(len(self.frames), 'step')}, {counted(len(self.points))} shown)"

    def to_dict(self) -> dict[str, Any]:
        """What the player plays: lists, texts and numbers, points and colours as base64."""
        k = len(self.names)
        return {
            "kind": "player",
            "title": f"{self.title}; {self.note}" if self.note else self.title,
            "axes": self.axes,
            "box": self.box,
            "rows": self.rows,
            "shown": len(self.points),
            "points": pack_points(self.points, self.box),
            "colors": self.colors,
            "names": self.names,
            "soft": self.soft,
            "objective": {"name": self.objective, "better": self.better},
            "frames": [self._packed(frame, k) for frame in self.frames],
        }

    @staticmethod
    def _packed(frame: Frame, k: int) -> dict[str, Any]:
        return {
            "step": frame.step,
            "iteration": frame.iteration,
            "caption": frame.caption,
            "labels": None if frame.labels is None else pack_labels(frame.labels, k),
            "rgb": None if frame.rgb is None else pack_rgb(frame.rgb),
            "centers": _short(frame.centers),
            "ellipses": None if frame.ellipses is None else _short(np.array(frame.ellipses)),
            "sizes": _short(frame.sizes),
            "objective": frame.objective,
            "bound": frame.bound,
        }

    def to_html(self) -> str:
        """A page that plays it, in one file that asks for nothing."""
        return player_page(self.to_dict())

    def _repr_html_(self) -> str:
        """How notebooks show it."""
        return str(embedded(self.to_html(), HEIGHT))

    def save(self, path: str | PathLike[str], *, fps: float = 2.0, overwrite: bool = False) -> None:
        """Write it to a file, whole or not at all: .html (the player), .gif, or .mp4 where there is ffmpeg.

        Parameters
        ----------
        path : str or path
        fps : float, default=2
            Steps a second, of .gif (50 at most) and .mp4; a page has a speed to choose.
        overwrite : bool, default=False
            Whether a file that is there is replaced.
        """
        place = Path(path)
        _check(place, overwrite)
        _check_pace(place.suffix, fps)
        if place.suffix == ".html":
            data = self.to_html().encode()
        else:
            from coterie.plots.film import filmed

            data = filmed(self, place.suffix, float(fps))
        write_whole(place, data, overwrite)


def animate(trace: Trace, *, columns: Any = None) -> Animation:
    """The steps of a fit as an animation: rows and centers, and the objective beside them.

    Rows have the colour of their cluster, or a blend of the colours of all by their responsibilities; centers have
    numbers and leave a trail; Gaussian components are ellipses of two standard deviations. Of mixtures, Jensen's bound
    is drawn below the log-likelihood: it touches it after every E-step and lifts it in every M-step.

    Parameters
    ----------
    trace : `coterie.traces.Trace`
        What `fit_trace` of an estimator returns.
    columns : one or two names or numbers of columns, optional
        By default the two principal axes of the rows, if they have more than two columns.

    Returns
    -------
    `Animation`

    Examples
    --------
    >>> from coterie import KMeans, plots
    >>> from coterie.datasets import make_blobs
    >>> X, _ = make_blobs(300, 2, centers=3, random_state=0)
    >>> trace = KMeans(3, init="forgy", n_init=1, random_state=1).fit_trace(X)
    >>> animation = plots.animate(trace)
    >>> animation.frames[1].caption
    'assign: each of 300 rows joins its nearest center'
    >>> animation.save("way.html")  # doctest: +SKIP
    """
    check_result("trace", trace, (Trace,), "fit_trace")
    rows = trace.rows.astype(np.float64)
    view = View.of(Rows(rows, trace.columns, rows.mean(axis=0), rows.var(axis=0)), columns)
    steps = _chosen(trace.steps)
    k = len(steps[-1].sizes)
    names, shades = [str(j) for j in range(k)], colours(k)
    painted = [*_painted(trace, steps, shades)]
    kept = some(len(rows), _affordable(painted))
    points = view.points(rows[kept])
    points = points if len(view.axes) == 2 else _piled(points[:, 0])
    frames = [_frame(trace, step, view, paint, kept) for step, paint in zip(steps, painted, strict=True)]
    title = f"{type(trace.model).__name__} of {counted(trace.n)}, step by step"
    note = "missing values are shown at the means of their columns" if trace.filled else ""
    return Animation(
        title, view.axes, box_of(points, *(frame.centers for frame in frames)), trace.n, points, shades, names,
        trace.soft, trace.objective, trace.better, frames, note,
    )  # fmt: skip


def _painted(trace: Trace, steps: Sequence[Step], shades: list[str]) -> Iterator[Array | None]:
    """Of each step the labels (m,) or colours (m, 3) of all rows shown; None where they look as before."""
    last = None
    for step in steps:
        shares = trace.shares(step) if trace.soft else None
        found = step.labels if not trace.soft else None if shares is None else blends(shares, shades)
        same = found is None or (last is not None and np.abs(found - last).max() < ALIKE)
        yield None if same else found
        last = last if same else found


def _frame(trace: Trace, step: Step, view: View, paint: Array | None, kept: Array) -> Frame:
    paint = None if paint is None else paint[kept]
    labels, rgb = (None, paint) if trace.soft else (paint, None)
    centers, spreads = view.points(step.centers), shadows(trace, step, view)
    if len(view.axes) == 1:
        heights = TOP + min(0.06, 0.4 / len(centers)) * np.arange(len(centers))[::-1]
        centers = np.column_stack([centers[:, 0], heights])
        spreads = None if spreads is None else np.array([np.diag([spread[0, 0], THIN]) for spread in spreads])
    ellipses = None if spreads is None else ellipses_of(centers, spreads)
    values = (plain(float(step.objective)), None if step.bound is None else plain(float(step.bound)))
    return Frame(step.kind, step.iteration, step.caption, labels, rgb, centers, ellipses, step.sizes, *values)


def _chosen(steps: Sequence[Step]) -> list[Step]:
    """All steps while they are few; of many the first, where most happens, and some of the others."""
    if len(steps) <= FRAMES:
        return list(steps)
    first = FRAMES // 2
    later = np.linspace(first, len(steps) - 1, FRAMES - first).round().astype(int)
    return [*steps[:first], *(steps[i] for i in later)]


def _affordable(painted: Sequence[Array | None]) -> int:
    """Points whose colours at all steps make a page of ordinary size."""
    each = sum(
        4.0 if paint.ndim == 2 else 8 / 3 if paint.max() > 254 else 4 / 3 for paint in painted if paint is not None
    )
    return int(np.clip(BYTES / max(each, 1.0), LEAST, POINTS))


def _piled(x: Array) -> Array:
    """Values of one column as points of a histogram, one upon the other, up to 1 (m, 2)."""
    low, high = float(x.min()), float(x.max())
    bins = int(np.clip(3 * np.cbrt(len(x)), 10, BINS))
    place = np.minimum(((x - low) / max(high - low, np.finfo(np.float64).tiny) * bins).astype(int), bins - 1)
    order = np.argsort(place, kind="stable")
    counts = np.bincount(place, minlength=bins)
    height = np.empty(len(x))
    height[order] = np.arange(len(x)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.column_stack([x, (height + 0.5) / counts.max()])


def _short(values: Array) -> Any:
    """Six digits are more than a picture shows."""
    return plain([float(f"{value:.6g}") for value in values] if values.ndim == 1 else [_short(row) for row in values])


def _check_pace(suffix: str, fps: float) -> None:
    if not_negative("fps", fps) == 0:
        raise ParameterError(f"fps must be a number above 0; got {fps!r}")
    if suffix == ".gif" and fps > FASTEST:
        raise ParameterError(
            f"fps must be at most {FASTEST} for a .gif, whose steps last hundredths of a second, two at least for most "
            f"players; got {fps!r}: take fewer, or save as .mp4 or .html"
        )


def _check(path: Path, overwrite: bool) -> None:
    """Refuse a place that cannot be written, before any work is done."""
    if path.suffix not in SUFFIXES:
        raise ParameterError(f'path must end in {", ".join(SUFFIXES[:-1])} or {SUFFIXES[-1]}; got "{path}"')
    folder = real_path(path).parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder: create it first", str(folder))
    if path.exists() and not overwrite:
        raise exists(path)
