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
    shades = np.unique(words)
    if len(shades) <= 256:
        table = shades.view(np.uint8).reshape(-1, 4)
        parts = [(b"PLTE", table[:, :3].tobytes()), (b"tRNS", table[:, 3].tobytes())]
        kind, rows = 3, np.searchsorted(shades, words).astype(np.uint8)
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
    reach = range(-int(radius + 0.5), int(radius + 0.5) + 1)
    is_drawn = np.zeros(height * width, bool)  # most pixels of an image are empty
    discs = []  # for each pixel of a disc: the share that it covers, the discs, and the pixels
    for dx, dy in ((dx, dy) for dy in reach for dx in reach):
        share = min(1.0, radius + 0.5 - float(np.hypot(dx, dy)))
        if share > 0:
            inside = (column + dx >= 0) & (column + dx < width) & (line + dy >= 0) & (line + dy < height)
            place = (line[inside] + dy) * width + column[inside] + dx
            is_drawn[place] = True
            discs.append((share, inside, place))
    index = np.cumsum(is_drawn) - 1  # of each pixel among the drawn ones
    light = np.zeros((4, int(np.count_nonzero(is_drawn))))  # red, green, blue and coverage
    for share, inside, place in discs:
        for channel in range(3):
            light[channel] += share * np.bincount(index[place], colours[inside, channel], minlength=light.shape[1])
        light[3] += share * np.bincount(index[place], minlength=light.shape[1])
    # Few distinct colours, so that the file is small
    colour = np.clip(np.rint(light[:3] / light[3] * 17) * 15, 0, 255)
    alpha = np.clip(np.rint((1 - (1 - opacity) ** light[3]) * 8) * 31.875, 0, 255)
    pixels = np.zeros((height * width, 4), np.uint8)
    pixels[is_drawn] = np.concatenate([np.where(alpha > 0, colour, 0.0), alpha[None]]).T
    return pixels.reshape(height, width, 4)
