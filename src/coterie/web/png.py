"""PNG images of points, for use in pages."""

import struct
import zlib
from base64 import b64encode
from typing import Any

import numpy as np

from coterie.errors import ParameterError


def png(pixels: Any) -> bytes:
    """Return a PNG file of RGBA pixels (height, width, 4), from the top; with a palette if 256 colours are enough."""
    pixels = np.asarray(pixels)
    if pixels.ndim != 3 or pixels.shape[2] != 4 or pixels.dtype != np.uint8 or 0 in pixels.shape:
        raise ParameterError(
            f"pixels must be uint8 with the shape (height, width, 4); got {pixels.dtype} {pixels.shape}"
        )
    height, width = pixels.shape[:2]
    words = np.ascontiguousarray(pixels).view("<u4").reshape(height, width)
    shades, codes = np.unique(words, return_inverse=True)
    if len(shades) <= 256:
        table = shades.view(np.uint8).reshape(-1, 4)
        parts = [(b"PLTE", table[:, :3].tobytes()), (b"tRNS", table[:, 3].tobytes())]
        kind, rows = 3, codes.reshape(height, width).astype(np.uint8)
    else:
        parts, kind, rows = [], 6, pixels.reshape(height, -1)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1)  # 0: the row has no filter
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    chunks = [(b"IHDR", header), *parts, (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    file = b"\x89PNG\r\n\x1a\n"
    for name, content in chunks:
        file += struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
    return file


def data_uri(file: bytes, kind: str = "image/png") -> str:
    """Return a file as a data URI."""
    return f"data:{kind};base64,{b64encode(file).decode('ascii')}"


def raster(x: Any, y: Any, rgb: Any, width: int, height: int, radius: float = 1.6, opacity: float = 0.75) -> np.ndarray:
    """Draw discs at (x, y), in pixels from the upper left, as RGBA (height, width, 4).

    Where discs overlap, the colour is their mean and the opacity is that of all discs on top of each other. The image
    does not depend on the order of the discs. `web/src/raster.ts` does the same in the browser.
    """
    column, line = (np.floor(np.asarray(values, dtype=np.float64)).astype(np.int64) for values in (x, y))
    colours = np.asarray(rgb, dtype=np.float64).reshape(-1, 3)
    light = np.zeros((4, height * width))  # red, green, blue and coverage
    reach = range(-int(radius + 0.5), int(radius + 0.5) + 1)
    for dx, dy in ((dx, dy) for dy in reach for dx in reach):
        share = min(1.0, radius + 0.5 - float(np.hypot(dx, dy)))  # of the pixel that the disc covers
        if share <= 0:
            continue
        inside = (column + dx >= 0) & (column + dx < width) & (line + dy >= 0) & (line + dy < height)
        place = (line[inside] + dy) * width + column[inside] + dx
        for channel in range(3):
            light[channel] += share * np.bincount(place, colours[inside, channel], minlength=height * width)
        light[3] += share * np.bincount(place, minlength=height * width)
    covered = light[3]
    shown = light[:3] / np.maximum(covered, 1e-12)
    alpha = np.where(covered > 0, 1 - (1 - opacity) ** covered, 0.0)
    # Few distinct colours, so that the file is small
    colour, alpha = np.rint(shown * 17) * 15, np.rint(alpha[None] * 8) * 31.875
    colour = np.where(alpha > 0, np.clip(colour, 0, 255), 0.0)
    return np.concatenate([colour, np.clip(alpha, 0, 255)]).T.reshape(height, width, 4).astype(np.uint8)
