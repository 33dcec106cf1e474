"""Numbers that `coterie.web.packing` packed for the scripts of pages, which unpack them in the browser."""

from base64 import b64decode

import numpy as np

from coterie.web.packing import STEPS


def unpack_values(text, low, high):
    """Return the numbers that `pack_values` packed, with an error of at most half a step."""
    return low + np.frombuffer(b64decode(text), "<u2") / STEPS * (high - low)


def unpack_counts(text):
    """Return the places and counts that `pack_counts` packed."""
    numbers = _from_bytes(np.frombuffer(b64decode(text), np.uint8)).tolist()
    places, counts, place, i = [], [], 0, 0
    while i < len(numbers):
        if numbers[i] == 0:
            place, i = place + numbers[i + 1], i + 2
        places.append(place)
        counts.append(numbers[i])
        place, i = place + 1, i + 1
    return np.array(places, dtype=np.int64), np.array(counts, dtype=np.int64)


def _from_bytes(raw):
    is_last = raw < 128
    number = np.cumsum(is_last) - is_last
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    limb = np.arange(len(raw)) - starts[number]
    return np.bincount(number, (raw & 127) * 128.0**limb).astype(np.int64)
