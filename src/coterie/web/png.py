"""Pictures of points, as PNG files that a page can hold."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from typing import Any

import numpy as np

from coterie.core.errors import ParameterError

Array = np.ndarray[Any, Any]


def png(pixels: Any) -> bytes:
    """A PNG file of 8-bit RGBA pixels (height, width, 4), rows from the top; with a palette where that is enough."""
    given = np.asarray(pixels)
    if given.ndim != 3 or given.shape[2] != 4 or given.dtype != np.uint8 or 0 in given.shape:
        raise ParameterError(f"pixels must be uint8 (height, width, 4); got {given.dtype} {given.shape}")
    height, width = given.shape[:2]
    words = np.ascontiguousarray(given).view("<u4").reshape(height, width)
    shades, codes = np.unique(words, return_inverse=True)
    if len(shades) <= 256:
        table = shades.view(np.uint8).reshape(-1, 4)
        parts = [(b"PLTE", table[:, :3].tobytes()), (b"tRNS", table[:, 3].tobytes())]
        kind, rows = 3, codes.reshape(height, width).astype(np.uint8)
    else:
        parts, kind, rows = [], 6, given.reshape(height, -1)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1)  # 0: the row is written as it is
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    chunks = [(b"IHDR", header), *parts, (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in chunks)


def data_uri(file: bytes, kind: str = "image/png") -> str:
    """A file as an address that needs no network."""
    return f"data:{kind};base64,{b64encode(file).decode('ascii')}"


def raster(x: Any, y: Any, rgb: Any, width: int, height: int, radius: float = 1.6, opacity: float = 0.75) -> Array:
    """Discs at (x, y), in pixels from the upper left, as RGBA (height, width, 4).

    Where discs overlap, the colour is their mean and the opacity that of all of them one over the other: in whatever
    order they come, the picture is the same. `web/src/raster.ts` does the same in the browser.
    """
    column, line = (np.floor(np.asarray(values, dtype=np.float64)).astype(np.int64) for values in (x, y))
    colours = np.asarray(rgb, dtype=np.float64).reshape(-1, 3)
    light = np.zeros((4, height * width))  # red, green, blue and how much of a disc
    for dx, dy, share in _disc(radius):
        inside = (column + dx >= 0) & (column + dx < width) & (line + dy >= 0) & (line + dy < height)
        place = (line[inside] + dy) * width + column[inside] + dx
        for channel in range(3):
            light[channel] += share * np.bincount(place, colours[inside, channel], minlength=height * width)
        light[3] += share * np.bincount(place, minlength=height * width)
    covered = light[3]
    shown = light[:3] / np.maximum(covered, 1e-12)
    alpha = np.where(covered > 0, 1 - (1 - opacity) ** covered, 0.0)
    pixels = np.concatenate([shown, alpha[None]]).T.reshape(height, width, 4)
    return _few(pixels)


def _disc(radius: float) -> list[tuple[int, int, float]]:
    """Pixels about a middle, and how much of each a disc covers."""
    reach = range(-int(radius + 0.5), int(radius + 0.5) + 1)
    shares = [(dx, dy, min(1.0, radius + 0.5 - float(np.hypot(dx, dy)))) for dy in reach for dx in reach]
    return [(dx, dy, share) for dx, dy, share in shares if share > 0]


def _few(pixels: Array) -> Array:
    """RGBA from 0 to 1 as bytes, of so few shades that the file is small; in a disc of 3 pixels nobody sees more."""
    colour, alpha = np.rint(pixels[..., :3] * 17) * 15, np.rint(pixels[..., 3:] * 8) * 31.875
    colour = np.where(alpha > 0, np.clip(colour, 0, 255), 0.0)
    return np.concatenate([colour, np.clip(alpha, 0, 255)], axis=2).astype(np.uint8)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
