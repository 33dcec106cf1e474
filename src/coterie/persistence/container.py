"""The file format: safetensors, with one JSON text in its metadata; a checksum covers both."""

import hashlib
import json
import os
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from coterie.core import writing
from coterie.errors import ModelFileError, ParameterError

FORMAT = 1  # version of the format; files of other versions are rejected
KEY = "coterie"
KEYS = {"model": KEY, "checkpoint": "coterie checkpoint"}  # of the metadata, by the content of the file
EXPECTED = {"model": "a model file written by coterie.save", "checkpoint": "a checkpoint of coterie"}
SUFFIX = ".safetensors"
LONGEST_HEADER = 100_000_000  # bytes; the limit of safetensors
DTYPES = {
    "F64": np.float64, "F32": np.float32, "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8,
    "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip


# writing


def to_bytes(content: dict[str, Any], tensors: dict[str, np.ndarray], kind: str = "model") -> bytes:
    """The bytes of the file; equal content gives equal bytes."""
    from safetensors.numpy import save

    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    head = {"format": FORMAT, "sha256": digest(text, tensors), "content": text}
    return save(tensors, {KEYS[kind]: json.dumps(head, separators=(",", ":"))})


def digest(text: str, tensors: dict[str, np.ndarray]) -> str:
    """The SHA-256 checksum of the whole content of a file."""
    total = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        total.update(f"\0{name} {tensors[name].dtype.name} {tensors[name].shape}\0".encode())
        total.update(np.ascontiguousarray(tensors[name]).reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def check_path(path: Path, overwrite: bool) -> None:
    """Reject a path that cannot be written, before any work is done."""
    if path.is_dir():
        raise ParameterError(f'path must be a file; "{path}" is a folder: add a file name that ends in {SUFFIX}')
    if path.suffix != SUFFIX:
        raise ParameterError(f'path must end in {SUFFIX}; got "{path}"')
    writing.check_regular(path)
    writing.check_path(path, overwrite)


# reading


def is_model(path: Path) -> bool:
    """Whether a file is a model, rather than arrays in the same format."""
    from safetensors import SafetensorError, safe_open

    if path.suffix.lower() != SUFFIX or not path.is_file():
        return False
    try:
        with safe_open(path, framework="numpy") as file:
            return KEY in (file.metadata() or {})
    except SafetensorError:
        return False


def read(path: Path, kind: str = "model") -> tuple[Any, dict[str, np.ndarray]]:
    """The content and the arrays of a file, after its checksum was verified."""
    size = _check_length(path, kind)
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            head = _head(file.metadata(), kind)
            types = {name: _checked_type(name, file.get_slice(name), size) for name in sorted(file.keys())}
            tensors = {name: _array(file.get_tensor(name), *types[name]) for name in types}
    except (SafetensorError, UnicodeDecodeError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"it is damaged, or not {EXPECTED[kind]}: {error}") from None
    text = head.get("content")
    if not isinstance(text, str) or head.get("sha256") != digest(text, tensors):
        remedy = "; save the model again" if kind == "model" else ""
        raise ModelFileError(f"its checksum is wrong: the file was damaged or edited{remedy}")
    return parse(text), tensors


def parse(text: str) -> Any:
    """Parse strict JSON: NaN, Infinity and repeated names are errors."""
    try:
        return json.loads(text, parse_constant=_reject_constant, object_pairs_hook=_reject_duplicates)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its metadata is not valid JSON: {str(error) or type(error).__name__}") from None


def _check_length(path: Path, kind: str) -> int:
    """The size of the file in bytes; `ModelFileError` if it cannot contain the header that its first bytes announce."""
    if path.is_dir():
        raise ModelFileError("it is a folder: pass the path of a file")
    with open(path, "rb") as file:
        start = file.read(8)
        size = os.fstat(file.fileno()).st_size
    header = int.from_bytes(start, "little")
    if len(start) < 8 or header > LONGEST_HEADER:
        is_pickle = b"\x80\x00" <= start[:2] < b"\x80\x08"
        hint = " (it looks like a pickle; pickles are never opened)" if is_pickle else ""
        raise ModelFileError(f"it is not {EXPECTED[kind]}{hint}")
    if header > size - 8:
        raise ModelFileError(f"it is truncated, or not {EXPECTED[kind]}")
    return size


def _head(metadata: Any, kind: str) -> dict[str, Any]:
    if not isinstance(metadata, dict) or KEYS[kind] not in metadata:
        raise ModelFileError(f"it is a safetensors file, but not {EXPECTED[kind]}")
    head = parse(metadata[KEYS[kind]])
    version = head.get("format") if isinstance(head, dict) else None
    if type(version) is not int or version < 1:
        raise ModelFileError(f"its format must be an integer >= 1; got {version!r}")
    if version != FORMAT:
        raise ModelFileError(
            f"it has format {version}, but this version of coterie reads format {FORMAT}: "
            "use the version that wrote it, or fit again"
        )
    return head


def _checked_type(name: str, entry: Any, size: int) -> tuple[Any, tuple[int, ...]]:
    """The dtype and the shape of an array; `ModelFileError` if a file of `size` bytes cannot contain it."""
    kind, shape = entry.get_dtype(), tuple(entry.get_shape())
    if kind not in DTYPES:
        raise ModelFileError(f"array {name!r} has the type {kind}; it must be {', '.join(DTYPES)}")
    if len(shape) > 8 or prod(max(length, 1) for length in shape) > size:
        raise ModelFileError(f"array {name!r} has the shape {shape}, which is too large for a file of {size} bytes")
    return DTYPES[kind], shape


def _array(values: Any, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = np.array(values, dtype=dtype).reshape(shape)
    if dtype is np.bool_ and array.size and array.view(np.uint8).max() > 1:
        raise ModelFileError("an array of booleans has values other than 0 and 1")
    return array


def _reject_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a name appears twice")
    return values
