"""Binary answers: a JSON header, then arrays that a browser can view without a copy."""

import json
from typing import Any

import numpy as np

from coterie.core.arrays import Array

ALIGNMENT = 8
MAX_CLUSTERS = (1 << 16) - 2  # that 16-bit codes can tell apart, with one code for no cluster
HEADER_LENGTH = np.dtype("<u4")


def blob(header: dict[str, Any], arrays: dict[str, Array]) -> bytes:
    """Return the header with the places of the arrays, and the arrays, each at a multiple of 8 bytes.

    The layout is: length of the header (u32, little endian), header (JSON, padded with spaces), arrays. The offsets in
    ``header["arrays"]`` count from the end of the header.
    """
    entries, parts, offset = [], [], 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        entries.append({"name": name, "dtype": data.dtype.str[1:], "shape": list(data.shape), "offset": offset})
        parts += [data.tobytes(), bytes(-data.nbytes % ALIGNMENT)]
        offset += data.nbytes + -data.nbytes % ALIGNMENT
    text = json.dumps({**header, "arrays": entries}, allow_nan=False).encode()
    text += b" " * (-(HEADER_LENGTH.itemsize + len(text)) % ALIGNMENT)
    return b"".join([np.array(len(text), HEADER_LENGTH).tobytes(), text, *parts])
