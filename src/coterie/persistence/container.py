"""The file itself: safetensors, with one JSON text in its metadata; written whole or not at all, and checked first."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from coterie.core.errors import ModelFileError, ParameterError
from coterie.core.writing import check_regular, exists, place_of
from coterie.persistence import format_1

FORMAT = 2  # of what is written; files of a higher one are rejected
KEY = "coterie"
KEYS = {"model": KEY, "checkpoint": "coterie checkpoint"}  # of the metadata, by what the file holds
SUFFIX = ".safetensors"
LONGEST_HEADER = 100_000_000  # bytes; the same as safetensors' own
DTYPES = {
    "F64": np.float64, "F32": np.float32, "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8,
    "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip


# writing


def to_bytes(content: dict[str, Any], tensors: dict[str, np.ndarray], kind: str = "model") -> bytes:
    """The whole file; the same for the same content."""
    from safetensors.numpy import save

    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    head = {"format": FORMAT, "sha256": digest(text, tensors), "content": text}
    written: bytes = save(tensors, {KEYS[kind]: json.dumps(head, separators=(",", ":"))})
    return written


def digest(text: str, tensors: dict[str, np.ndarray]) -> str:
    """Of all that is in the file."""
    total = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        total.update(f"\0{name} {tensors[name].dtype.name} {tensors[name].shape}\0".encode())
        total.update(np.ascontiguousarray(tensors[name]).reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def check_place(path: Path, overwrite: bool) -> None:
    """Refuse a place that cannot be written, before any work is done."""
    if path.is_dir():
        raise ParameterError(f'path must be a file; "{path}" is a folder: add a name that ends in {SUFFIX}')
    if path.suffix != SUFFIX:
        raise ParameterError(f'path must end in {SUFFIX}; got "{path}"')
    check_regular(path)
    folder = place_of(path).parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder: create it first", str(folder))
    if path.exists() and not overwrite:
        raise exists(path)


# reading


def read(path: Path, kind: str = "model") -> tuple[Any, dict[str, np.ndarray]]:
    """The content and the arrays of a file, once all is found to be as it was written."""
    size = _check_length(path)
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            head = _head(file.metadata(), kind)
            names = {name: _checked(name, file.get_slice(name), size) for name in sorted(file.keys())}
            tensors = {name: _array(file.get_tensor(name), *kind) for name, kind in names.items()}
    except (SafetensorError, UnicodeDecodeError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"it is damaged, or no safetensors file: {error}") from None
    text = head.get("content")
    if not isinstance(text, str) or head.get("sha256") != digest(text, tensors):
        remedy = "; save the model again" if kind == "model" else ""
        raise ModelFileError(f"its content is not what was written: it was damaged or edited{remedy}")
    content = parse(text)
    if head["format"] == 1:
        content = format_1.upgraded(content, tensors)
    return content, tensors


def parse(text: str) -> Any:
    """JSON without what Python adds to it, or leaves open."""
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_twins)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its metadata is no JSON of a model: {str(error) or type(error).__name__}") from None


def _check_length(path: Path) -> int:
    if path.is_dir():
        raise ModelFileError("it is a folder: give the file in it")
    with open(path, "rb") as file:
        start = file.read(8)
        size = os.fstat(file.fileno()).st_size
    if len(start) < 8:
        raise ModelFileError(f"it has {size} bytes, too few for a safetensors file")
    header = int.from_bytes(start, "little")
    if header > min(size - 8, LONGEST_HEADER):
        kind = " (it looks like a pickle, which is never opened)" if start[:1] == b"\x80" and start[1] < 8 else ""
        raise ModelFileError(
            f"it is no safetensors file, or cut short: a header of {header} bytes in a file of {size}{kind}"
        )
    return size


def _head(metadata: Any, kind: str) -> dict[str, Any]:
    if not isinstance(metadata, dict) or KEYS[kind] not in metadata:
        raise ModelFileError(f"it is a safetensors file, but holds no {kind} of coterie")
    head = parse(metadata[KEYS[kind]])
    version = head.get("format") if isinstance(head, dict) else None
    if type(version) is not int or version < 1:
        raise ModelFileError(f"its format must be a whole number from 1 up; found {version!r}")
    if kind == "checkpoint" and version < FORMAT:
        raise ModelFileError(f"it has format {version}, of an older version of coterie")
    if version > FORMAT:
        raise ModelFileError(
            f"it has format {version}, and this version of coterie reads formats up to {FORMAT}: upgrade coterie"
        )
    return head


def _checked(name: str, entry: Any, size: int) -> tuple[Any, tuple[int, ...]]:
    kind, shape = entry.get_dtype(), tuple(entry.get_shape())
    if kind not in DTYPES:
        raise ModelFileError(f"array {name!r} has the type {kind}; it can be {', '.join(DTYPES)}")
    if len(shape) > 8 or prod(max(length, 1) for length in shape) > size:
        raise ModelFileError(f"array {name!r} has the shape {shape}, absurd in a file of {size} bytes")
    return DTYPES[kind], shape


def _array(found: Any, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = np.array(found, dtype=dtype).reshape(shape)
    if dtype is np.bool_ and array.size and array.view(np.uint8).max() > 1:
        raise ModelFileError("an array of booleans has values that are neither true nor false")
    return array


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name appears twice")
    return found
