"""Animations as GIF or MP4 files, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.core.formatting import count
from coterie.palette import FAINT, INK, MARK, NOISE, OKABE_ITO, as_rgb
from coterie.plots.display import new_figure
from coterie.web import tick_texts, ticks

if TYPE_CHECKING:
    from coterie.plots.animation import Animation

SIZE, DPI = (9.6, 5.4), 100
LINE = 108  # characters in a line of the caption
NUMBERED = 80  # maximum number of clusters with numbers
BARS = 14  # maximum number of clusters with names beside their sizes
LAST = 4.0  # duration of the last step, relative to the others
EXACT_COLOURS = 128  # maximum number of the 256 colours of a GIF that are reserved for lines and clusters


def render_video(animation: Animation, suffix: str, fps: float) -> bytes:
    """Return the content of a .gif or .mp4 file."""
    video = Video(animation)
    return _gif(video, fps) if suffix == ".gif" else _mp4(video, fps)


def _gif(video: Video, fps: float) -> bytes:
    """Return a GIF with one palette for all steps and no dithering, so that unchanged parts are stored once."""
    from PIL import Image

    pictures = [Image.fromarray(picture) for picture in video.pictures()]
    palette = _palette(pictures, video)
    first, *others = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    file, duration = BytesIO(), 1000.0 / fps
    durations = [duration] * len(others) + [LAST * duration]
    first.save(file, "GIF", save_all=True, append_images=others, duration=durations, loop=0)
    return file.getvalue()


def _palette(pictures: list[Any], video: Video) -> Any:
    """Return an image with a palette for all steps: exact colours of background, lines and clusters, others similar."""
    from PIL import Image

    reserved = as_rgb(["#ffffff", INK, MARK, FAINT, NOISE, OKABE_ITO[1], *video.data.colors])
    exact = (255 * reserved).round().astype(np.uint8)
    index = sorted({int(i) for i in np.linspace(0, len(pictures) - 1, 5)})
    pixels = np.concatenate([np.asarray(pictures[i]).reshape(-1, 3) for i in index])
    sample = Image.fromarray(pixels.reshape(len(index), -1, 3))
    result = sample.quantize(256 - min(len(exact), EXACT_COLOURS), method=Image.Quantize.MAXCOVERAGE)
    shades = [*exact[:EXACT_COLOURS].reshape(-1).tolist(), *(result.getpalette() or [])]
    result.putpalette(shades[: 3 * 256])
    return result


def _mp4(video: Video, fps: float) -> bytes:
    from matplotlib.animation import FFMpegWriter

    if not FFMpegWriter.isAvailable():
        raise FileNotFoundError(
            "saving an .mp4 requires the program ffmpeg, which was not found: install it, or save as .gif or .html"
        )
    writer = FFMpegWriter(fps, extra_args=["-pix_fmt", "yuv420p"])  # type: ignore[arg-type]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "video.mp4"
        with writer.saving(video.figure, str(path), DPI):
            for i in [*range(len(video.frames)), *[len(video.frames) - 1] * int(LAST - 1)]:
                video.show(i)
                writer.grab_frame()
        return path.read_bytes()


class Video:
    """A figure that shows one step at a time: rows and centers at the left, objective and sizes at the right."""

    def __init__(self, animation: Animation):
        self.data, self.frames = animation, animation.frames
        self.figure = new_figure(SIZE, dpi=DPI)
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        self.canvas = FigureCanvasAgg(self.figure)
        grid = self.figure.add_gridspec(
            2, 2, width_ratios=(1.75, 1), height_ratios=(1.35, 1), left=0.085, right=0.975, top=0.86, bottom=0.1,
            wspace=0.3, hspace=0.5,
        )  # fmt: skip
        self.map = self.figure.add_subplot(grid[:, 0])
        self.curve, self.bars = self.figure.add_subplot(grid[0, 1]), self.figure.add_subplot(grid[1, 1])
        self.caption = self.figure.text(0.012, 0.975, "", va="top", fontsize=11, color=INK)
        self.rgb = as_rgb(animation.colors)
        self._lay_out_map()
        self._lay_out_curve()
        self._lay_out_bars()

    def show(self, i: int) -> None:
        """Show step `i`, with curves and trails up to this step."""
        frame = self.frames[i]
        self.caption.set_text(fill(f"iteration {frame.iteration}  ·  {frame.caption}", LINE))
        self.points.set_facecolors(self._colours(i))
        path = np.array([each.centers for each in self.frames[: i + 1]])
        for j, (trail, name) in enumerate(zip(self.trails, self.names, strict=True)):
            trail.set_data(*path[:, j].T)
            name.set_position(frame.centers[j])
            name.set_alpha(1.0 if frame.sizes[j] > 0 or not frame.sizes.any() else 0.45)
        for ellipse, outline in zip(frame.ellipses or [], self.outlines, strict=False):
            x, y, a, b, angle = ellipse
            outline.set(center=(x, y), width=2 * a, height=2 * b, angle=np.degrees(angle))
        steps, values = np.arange(i + 1), self._numbers("objective")
        self.line.set_data(steps, values[: i + 1])
        if self.bound is not None:
            self.bound.set_data(steps, self._numbers("bound")[: i + 1])
        self.dot.set_data([i], [values[i]])
        for bar, size in zip(self.sizes, frame.sizes, strict=True):
            bar.set_width(size)

    def pictures(self) -> Iterator[np.ndarray]:
        """Yield every step as pixels (height, width, 3); parts that do not change are drawn once."""
        moving = [self.caption, self.points, *self.outlines, *self.trails, *self.names, self.line, self.dot]
        moving += [*self.sizes, *([] if self.bound is None else [self.bound])]
        for artist in moving:
            artist.set_animated(True)
        self.canvas.draw()
        background, renderer = self.canvas.copy_from_bbox(self.figure.bbox), self.canvas.get_renderer()
        for i in range(len(self.frames)):
            self.show(i)
            self.canvas.restore_region(background)
            for artist in moving:
                artist.draw(renderer)
            yield np.asarray(self.canvas.buffer_rgba())[:, :, :3].copy()

    def _colours(self, i: int) -> np.ndarray:
        """Return the colours of the points: those of the last step up to `i` that changed them."""
        for frame in reversed(self.frames[: i + 1]):
            if frame.rgb is not None:
                return frame.rgb
            if frame.labels is not None:
                return self.rgb[frame.labels]
        return np.broadcast_to(as_rgb([NOISE]), (len(self.data.points), 3))

    def _lay_out_map(self) -> None:
        from matplotlib.patches import Ellipse

        ax, data = self.map, self.data
        x0, x1, y0, y1 = data.box
        ax.set(xlim=(x0, x1), ylim=(y0, y1), xlabel=data.axes[0])
        if len(data.axes) == 2:
            ax.set_ylabel(data.axes[1])
        else:
            ax.set_yticks([])
        ax.spines[["top", "right"]].set_visible(False)
        area = float(np.clip(20_000 / max(len(data.points), 1), 3.0, 24.0))
        self.points = ax.scatter(*data.points.T, s=area, c=NOISE, linewidths=0, alpha=0.75)
        self.outlines = []
        for colour in data.colors if any(frame.ellipses for frame in self.frames) else []:
            outline = Ellipse((x0, y0), 0, 0, fill=False, edgecolor=colour, linewidth=1.8, zorder=4)
            self.outlines.append(ax.add_patch(outline))
        self.trails = [ax.plot([], [], color=INK, linewidth=1.0, alpha=0.7, zorder=5)[0] for _ in data.names]
        self.names = [self._number(name, colour) for name, colour in zip(data.names, data.colors, strict=True)]
        shown = count(data.rows)
        shown = f"{len(data.points):,} of {shown}" if len(data.points) < data.rows else shown
        shown = f"{shown}; {data.note}" if data.note else shown
        ax.text(1.0, 1.012, shown, transform=ax.transAxes, ha="right", va="bottom", fontsize=8.5, color=INK, alpha=0.8)

    def _number(self, name: str, colour: str) -> Any:
        """Draw the mark of a center: its number, or a cross if there are too many clusters."""
        k, (x0, _, y0, _) = len(self.data.names), self.data.box
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontweight": "bold", "zorder": 6, "color": INK}
        if k > NUMBERED:
            return self.map.text(x0, y0, "+", fontsize=8, **style)
        box: dict[str, Any] = {"boxstyle": f"{'circle' if len(name) < 3 else 'round'},pad=0.2", "facecolor": "white"}
        box |= {"edgecolor": colour, "linewidth": 1.8 if k <= 20 else 1.0}
        return self.map.text(x0, y0, name, fontsize=9 if k <= 20 else 6.5, bbox=box, **style)

    def _lay_out_curve(self) -> None:
        ax, data = self.curve, self.data
        values, bounds = self._numbers("objective"), self._numbers("bound")
        steps = np.arange(len(values))
        ax.plot(steps, values, color=FAINT, linewidth=1.4)
        (self.line,) = ax.plot([], [], color=INK, linewidth=1.8, label=data.objective)
        self.bound = None
        if np.isfinite(bounds).any():
            ax.plot(steps, bounds, color=FAINT, linewidth=1.0, linestyle="--")
            (self.bound,) = ax.plot([], [], color=OKABE_ITO[1], linewidth=1.4, label="lower bound")
            ax.legend(loc="lower right", frameon=False, fontsize=8)
        (self.dot,) = ax.plot([], [], "o", color=MARK, markersize=5, zorder=5)
        ax.set_title(f"{data.objective}, {data.better} is better", loc="left", fontsize=9.5)
        ax.set_xlabel("step", fontsize=9)
        ax.tick_params(labelsize=8)
        ax.margins(0.04, 0.08)
        ax.spines[["top", "right"]].set_visible(False)
        ax.locator_params(axis="x", integer=True, nbins=6)
        low, high = ax.get_ylim()
        at = ticks(low, high, 5)
        ax.set_yticks(at, tick_texts(at))

    def _lay_out_bars(self) -> None:
        ax, data = self.bars, self.data
        k = len(data.names)
        largest = max(float(frame.sizes.max()) for frame in self.frames)
        self.sizes = ax.barh(np.arange(k), np.zeros(k), color=data.colors, height=0.75)
        ax.set(xlim=(0, 1.05 * largest or 1.0), ylim=(k - 0.5, -0.5))
        ax.set_yticks(np.arange(k) if k <= BARS else [], data.names if k <= BARS else [])
        is_weighted = not np.isclose(self.frames[-1].sizes.sum(), data.rows)
        ax.set_title(f"rows of each cluster{', by weight' if is_weighted else ''}", loc="left", fontsize=9.5)
        ax.tick_params(labelsize=8, length=0, axis="y")
        ax.tick_params(labelsize=8, axis="x")
        ax.locator_params(axis="x", nbins=4)
        ax.xaxis.set_major_formatter("{x:,g}")
        ax.spines[["top", "right", "left"]].set_visible(False)

    def _numbers(self, name: str) -> np.ndarray:
        values = [getattr(frame, name) for frame in self.frames]
        return np.array([np.nan if value is None else value for value in values])
