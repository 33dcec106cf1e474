"""An animation as a GIF or a film, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.palette import FAINT, INK, MARK, NOISE, OKABE_ITO, as_rgb
from coterie.plots.display import Array, counted, new_figure
from coterie.web import tick_texts, ticks

if TYPE_CHECKING:
    from coterie.plots.animation import Animation

SIZE, DPI = (9.6, 5.4), 100
LINE = 108  # letters of a caption before it goes on below
NUMBERED = 80  # clusters that have numbers
BARS = 14  # clusters whose sizes have names
LAST = 4.0  # steps' time that the last one is shown
OWN = 128  # of the 256 colours of a GIF, those that are lines and clusters at most


def filmed(animation: Animation, suffix: str, fps: float) -> bytes:
    """The whole file."""
    film = Film(animation)
    return _gif(film, fps) if suffix == ".gif" else _mp4(film, fps)


def _gif(film: Film, fps: float) -> bytes:
    """One palette for all steps and no dithering: what does not move is written once."""
    from PIL import Image

    pictures = [Image.fromarray(picture) for picture in film.pictures()]
    palette = _palette(pictures, film)
    first, *others = [each.quantize(palette=palette, dither=Image.Dither.NONE) for each in pictures]
    written, each = BytesIO(), 1000.0 / fps
    durations = [each] * len(others) + [LAST * each]
    first.save(written, "GIF", save_all=True, append_images=others, duration=durations, loop=0)
    return written.getvalue()


def _palette(pictures: list[Any], film: Film) -> Any:
    """A picture that has the colours of all steps: those of paper, lines and clusters as they are, others nearly."""
    from PIL import Image

    own = (255 * as_rgb(["#ffffff", INK, MARK, FAINT, NOISE, OKABE_ITO[1], *film.data.colors])).round().astype(np.uint8)
    some = sorted({int(i) for i in np.linspace(0, len(pictures) - 1, 5)})
    pixels = np.concatenate([np.asarray(pictures[i]).reshape(-1, 3) for i in some])
    sample = Image.fromarray(pixels.reshape(len(some), -1, 3))
    found = sample.quantize(256 - min(len(own), OWN), method=Image.Quantize.MAXCOVERAGE)
    shades = [*own[:OWN].reshape(-1).tolist(), *(found.getpalette() or [])]
    found.putpalette(shades[: 3 * 256])
    return found


def _mp4(film: Film, fps: float) -> bytes:
    from matplotlib.animation import FFMpegWriter

    if not FFMpegWriter.isAvailable():
        raise FileNotFoundError(
            "an .mp4 needs the program ffmpeg, which is not there: install it, or save as .gif or .html, which need "
            "nothing else"
        )
    writer = FFMpegWriter(fps, extra_args=["-pix_fmt", "yuv420p"])  # type: ignore[arg-type]
    with TemporaryDirectory() as folder:
        place = Path(folder) / "film.mp4"
        with writer.saving(film.figure, str(place), DPI):
            for i in [*range(len(film.frames)), *[len(film.frames) - 1] * int(LAST - 1)]:
                film.show(i)
                writer.grab_frame()
        return place.read_bytes()


class Film:
    """A figure that can show every step: rows and centers to the left, the objective and the sizes beside them."""

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
        """The step `i`, and none after it."""
        frame = self.frames[i]
        self.caption.set_text(fill(f"iteration {frame.iteration}  ·  {frame.caption}", LINE))
        self.points.set_facecolors(self._colours(i))
        way = np.array([each.centers for each in self.frames[: i + 1]])
        for j, (trail, name) in enumerate(zip(self.trails, self.names, strict=True)):
            trail.set_data(*way[:, j].T)
            name.set_position(frame.centers[j])
            name.set_alpha(1.0 if frame.sizes[j] > 0 or not frame.sizes.any() else 0.45)
        for ellipse, outline in zip(frame.ellipses or [], self.outlines, strict=False):
            x, y, a, b, angle = ellipse
            outline.set(center=(x, y), width=2 * a, height=2 * b, angle=np.degrees(angle))
        self._show_curve(i)
        for bar, size in zip(self.sizes, frame.sizes, strict=True):
            bar.set_width(size)

    def pictures(self) -> Iterator[Array]:
        """Every step as pixels (height, width, 3); what stays is drawn once."""
        moving = [
            self.caption,
            self.points,
            *self.outlines,
            *self.trails,
            *self.names,
            self.line,
            self.dot,
            *self.sizes,
        ]
        moving += [] if self.bound is None else [self.bound]
        for artist in moving:
            artist.set_animated(True)
        self.canvas.draw()
        still, renderer = self.canvas.copy_from_bbox(self.figure.bbox), self.canvas.get_renderer()
        for i in range(len(self.frames)):
            self.show(i)
            self.canvas.restore_region(still)
            for artist in moving:
                artist.draw(renderer)
            yield np.asarray(self.canvas.buffer_rgba())[:, :, :3].copy()

    def _colours(self, i: int) -> Array:
        """Of the points: what the last step up to `i` that says something of it says."""
        for frame in reversed(self.frames[: i + 1]):
            if frame.rgb is not None:
                return frame.rgb
            if frame.labels is not None:
                return self.rgb[frame.labels]
        return np.broadcast_to(as_rgb([NOISE]), (len(self.data.points), 3))

    # the parts of the picture

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
        shown = counted(data.rows)
        shown = f"{len(data.points):,} of {shown}" if len(data.points) < data.rows else shown
        shown = f"{shown}; {data.note}" if data.note else shown
        ax.text(1.0, 1.012, shown, transform=ax.transAxes, ha="right", va="bottom", fontsize=8.5, color=INK, alpha=0.8)

    def _number(self, name: str, colour: str) -> Any:
        """The mark of a center: its number, or a cross where numbers would hide each other."""
        k, (x0, _, y0, _) = len(self.data.names), self.data.box
        how: dict[str, Any] = {"ha": "center", "va": "center", "fontweight": "bold", "zorder": 6, "color": INK}
        if k > NUMBERED:
            return self.map.text(x0, y0, "+", fontsize=8, **how)
        box: dict[str, Any] = {"boxstyle": f"{'circle' if len(name) < 3 else 'round'},pad=0.2", "facecolor": "white"}
        box |= {"edgecolor": colour, "linewidth": 1.8 if k <= 20 else 1.0}
        return self.map.text(x0, y0, name, fontsize=9 if k <= 20 else 6.5, bbox=box, **how)

    def _lay_out_curve(self) -> None:
        ax, data = self.curve, self.data
        values, bounds = self._numbers("objective"), self._numbers("bound")
        steps = np.arange(len(values))
        ax.plot(steps, values, color=FAINT, linewidth=1.4)
        (self.line,) = ax.plot([], [], color=INK, linewidth=1.8, label=data.objective)
        self.bound = None
        if np.isfinite(bounds).any():
            ax.plot(steps, bounds, color=FAINT, linewidth=1.0, linestyle="--")
            (self.bound,) = ax.plot([], [], color=OKABE_ITO[1], linewidth=1.4, label="Jensen's bound")
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

    def _show_curve(self, i: int) -> None:
        steps, values = np.arange(i + 1), self._numbers("objective")
        self.line.set_data(steps, values[: i + 1])
        if self.bound is not None:
            self.bound.set_data(steps, self._numbers("bound")[: i + 1])
        self.dot.set_data([i], [values[i]])

    def _lay_out_bars(self) -> None:
        ax, data = self.bars, self.data
        k = len(data.names)
        most = max(float(frame.sizes.max()) for frame in self.frames)
        self.sizes = ax.barh(np.arange(k), np.zeros(k), color=data.colors, height=0.75)
        ax.set(xlim=(0, 1.05 * most or 1.0), ylim=(k - 0.5, -0.5))
        ax.set_yticks(np.arange(k) if k <= BARS else [], data.names if k <= BARS else [])
        ax.set_title(
            "rows of each cluster, by weight" if self._weighted else "rows of each cluster", loc="left", fontsize=9.5
        )
        ax.tick_params(labelsize=8, length=0, axis="y")
        ax.tick_params(labelsize=8, axis="x")
        ax.locator_params(axis="x", nbins=4)
        ax.xaxis.set_major_formatter("{x:,g}")
        ax.spines[["top", "right", "left"]].set_visible(False)

    @property
    def _weighted(self) -> bool:
        return not np.isclose(self.frames[-1].sizes.sum(), self.data.rows)

    def _numbers(self, what: str) -> Array:
        found = [getattr(frame, what) for frame in self.frames]
        return np.array([np.nan if value is None else value for value in found])
