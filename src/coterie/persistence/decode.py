"""Decode a model from JSON and named arrays; only declared classes are created, field by field."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import coterie
from coterie.core.stored import Declaration, declaration_of
from coterie.errors import ModelFileError
from coterie.persistence import classes
from coterie.persistence.rules import Lengths, check_fields, check_model

LONGEST_RANGE = 1 << 24  # columns
LONGEST_TEXT = 1 << 16  # characters of one text of an array


class Decoder:
    """Creates values from JSON nodes; nodes that name the same array share it."""

    def __init__(self, tensors: dict[str, np.ndarray], for_checkpoint: bool = False):
        self.tensors, self.for_checkpoint = tensors, for_checkpoint
        self._arrays: dict[tuple[str, tuple[int, ...] | None, bool], np.ndarray] = {}
        self._used: set[str] = set()
        self._decoders: dict[str, Callable[..., Any]] = {
            "array": self._array, "dict": self._dict, "float": self._float, "frozenset": self._set,
            "model": self.model, "number": self._number, "numbers": self._numbers,
            "object": self._object, "random_state": self._random_state, "range": self._range, "record": self._record,
            "set": self._set, "sparse": self._sparse, "texts": self._texts,
            "generator": lambda node, lengths: np.random.Generator(self._bits(_part(node, "generator"), lengths)),
            "slice": lambda node, lengths: slice(*_integers(_part(node, "slice"), 3, none=True, largest=LONGEST_RANGE)),
            "tuple": lambda node, lengths: tuple(self._items(node, "tuple", lengths)),
        }  # fmt: skip

    def whole(self, node: Any) -> Any:
        """The model in the file; `ModelFileError` if the file contains anything else."""
        if not isinstance(node, dict) or "model" not in node:
            raise ModelFileError("its content is not a model")
        model = self.model(node, None)
        self.check_all_used()
        return model

    def check_all_used(self) -> None:
        unused = sorted(set(self.tensors) - self._used)
        if unused:
            raise ModelFileError(f"array {unused[0]!r} is not used")

    # models

    def model(self, node: dict[str, Any], lengths: Lengths | None) -> Any:
        name, options, state = _parts(node, "model", "options", "state")
        kind = self._model_class(name, inside=lengths is not None)
        lengths = Lengths() if lengths is None else lengths
        if not isinstance(options, dict) or not isinstance(state, dict):
            raise ModelFileError(f"options and state of {name} must be JSON objects")
        model: Any = object.__new__(kind)
        self._set_options(model, name, options)
        for key in sorted(state):
            if not classes.can_be_state(key, name, kind):
                raise ModelFileError(f"{name} has no attribute {key!r}")
            setattr(model, key, self.value(state[key], lengths))
        if name == classes.PIPELINE:
            classes.check_steps(model.steps)
            check_is_fitted(model.steps[-1][1])
        else:
            check_model(classes.model_declaration(name), vars(model), lengths)
        return model

    def _model_class(self, name: Any, inside: bool) -> type:
        public = isinstance(name, str) and (name in (*coterie.__all__, *classes.PREPROCESSING, classes.PIPELINE))
        kind = classes.model_class(name) if isinstance(name, str) and public is not inside else None
        if kind is None:
            raise ModelFileError(f"it contains the estimator {name!r}, which this version of coterie does not know")
        return kind

    def _set_options(self, model: Any, name: str, options: dict[str, Any]) -> None:
        defaults = type(model)(steps=[]) if name == classes.PIPELINE else type(model)()
        known = defaults.get_params(deep=False)
        unknown = sorted(set(options) - set(known))
        if unknown:
            raise ModelFileError(f"{name} has no option {unknown[0]!r}")
        for key, default in known.items():
            if key not in options:
                value = default
            elif key == "steps":
                value = self._steps(options[key])
            else:
                value = self.value(options[key], Lengths())
            if key in ("callback", "memory", "checkpoint") and value is not None:
                raise ModelFileError(f"{name} must have {key}=None; got {value!r}")
            setattr(model, key, value)

    def _steps(self, node: Any) -> list[tuple[str, Any]]:
        steps = []
        for pair in node if isinstance(node, list) else ():
            items = pair.get("tuple") if isinstance(pair, dict) else None
            if not (isinstance(items, list) and len(items) == 2 and isinstance(items[0], str)):
                raise ModelFileError("steps of a Pipeline must be pairs of a name and a model")
            step = items[1]
            steps.append((items[0], self.model(step, None) if isinstance(step, dict) and "model" in step else step))
        return steps

    # values

    def value(self, node: Any, lengths: Lengths) -> Any:
        if node is None or isinstance(node, bool | int | float | str):
            return node
        if isinstance(node, list):
            return [self.value(item, lengths) for item in node]
        if isinstance(node, dict):
            for key, decode in self._decoders.items():
                if key in node:
                    return decode(node, lengths)
        raise ModelFileError(f"it contains {_shown(node)}, which is not a known value")

    def _items(self, node: dict[str, Any], kind: str, lengths: Lengths) -> list[Any]:
        items = _part(node, kind)
        if not isinstance(items, list):
            raise ModelFileError(f"{_shown(items)} must be a list")
        return [self.value(item, lengths) for item in items]

    def _set(self, node: dict[str, Any], lengths: Lengths) -> Any:
        kind = "set" if "set" in node else "frozenset"
        items = self._items(node, kind, lengths)
        if not all(isinstance(item, str) for item in items):
            raise ModelFileError("the items of a set must be texts")
        return set(items) if kind == "set" else frozenset(items)

    def _dict(self, node: dict[str, Any], lengths: Lengths) -> Any:
        values: dict[Any, Any] = {}
        for pair in self._items(node, "dict", lengths):
            if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str | int | float | bool | None):
                raise ModelFileError("a dict must be a list of pairs whose first item is a text or a number")
            values[pair[0]] = pair[1]
        return values

    def _float(self, node: dict[str, Any], lengths: Lengths) -> float:
        text = _part(node, "float")
        if text not in ("nan", "inf", "-inf"):
            raise ModelFileError(f"{_shown(text)} is not a number")
        return float(text)

    def _number(self, node: dict[str, Any], lengths: Lengths) -> Any:
        number, kind = _parts(node, "number", "dtype")
        number = self.value(number, lengths)
        if kind not in classes.DTYPES or not isinstance(number, bool | int | float):
            raise ModelFileError(f"{_shown(node)} is not a number")
        try:
            return np.dtype(kind).type(number)
        except (OverflowError, ValueError):
            raise ModelFileError(f"{number} is not of type {kind}") from None

    def _numbers(self, node: dict[str, Any], lengths: Lengths) -> np.dtype[Any]:
        kind = _part(node, "numbers")
        if kind not in classes.DTYPES:
            raise ModelFileError(f"{_shown(kind)} is not a type of numbers")
        return np.dtype(kind)

    def _range(self, node: dict[str, Any], lengths: Lengths) -> range:
        start, stop, step = _integers(_part(node, "range"), count=3, largest=LONGEST_RANGE)
        if step == 0:
            raise ModelFileError("the step of a range must not be 0")
        return range(start, stop, step)

    def _array(self, node: dict[str, Any], lengths: Lengths) -> np.ndarray:
        name = node["array"]
        axes, read_only = node.get("axes"), node.get("read_only", False)
        if set(node) - {"array", "axes", "read_only"} or not isinstance(read_only, bool):
            raise ModelFileError(f"{_shown(node)} is not an array")
        if not isinstance(name, str) or name not in self.tensors:
            raise ModelFileError(f"the array {_shown(name)} is missing")
        self._used.add(name)
        key = name, None if axes is None else tuple(_integers(axes)), read_only
        if key not in self._arrays:
            self._arrays[key] = _with_layout(self.tensors[name], key[1], read_only)
        return self._arrays[key]

    def _texts(self, node: dict[str, Any], lengths: Lengths) -> np.ndarray:
        texts, shape, kind = _parts(node, "texts", "shape", "dtype")
        shape = tuple(_integers(shape))
        width = kind[1:] if isinstance(kind, str) and kind.startswith("U") else ""
        are_texts = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
        if not are_texts or not (kind == "object" or (width.isascii() and width.isdigit() and len(width) < 6)):
            raise ModelFileError(f"{_shown(node)} is not an array of texts")
        longest = max(map(len, texts), default=0)
        if width and not longest <= int(width) <= max(longest, 1) + LONGEST_TEXT // max(len(texts), 1):
            raise ModelFileError(f"texts of {longest} characters do not match the type {kind}")
        array = np.empty(len(texts), dtype=kind)
        array[:] = texts
        try:
            return array.reshape(shape)
        except ValueError:
            raise ModelFileError(f"{len(texts)} texts do not match the shape {shape}") from None

    def _sparse(self, node: dict[str, Any], lengths: Lengths) -> Any:
        name, shape, *parts = _parts(node, "sparse", "shape", "data", "indices", "indptr")
        shape = tuple(_integers(shape, count=2))
        arrays = [self.value(part, lengths) for part in parts]
        if name not in classes.SPARSE or not all(isinstance(part, np.ndarray) and part.ndim == 1 for part in arrays):
            raise ModelFileError(f"{_shown(node)} is not a sparse matrix")
        try:
            matrix = getattr(sparse, name)(tuple(arrays), shape=shape)
            matrix.check_format(full_check=True)
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            raise ModelFileError(f"a sparse matrix is malformed: {error}") from None
        return matrix

    # declared classes

    def _record(self, node: dict[str, Any], lengths: Lengths) -> Any:
        tag, values = _parts(node, "record", "fields")
        kind, declaration = self._declared(tag)
        if declaration.attributes is not None or issubclass(kind, BaseEstimator):
            raise ModelFileError(f"{tag} is not a record")
        names = [field.name for field in fields(kind)] if is_dataclass(kind) else list(kind._fields)
        decoded = self._fields(tag, values, lengths, names)
        missing = sorted(set(names) - set(decoded))
        if missing:
            raise ModelFileError(f"{tag} has no field {missing[0]!r}")
        check_fields(declaration, decoded, lengths)
        if not is_dataclass(kind):
            return kind(**decoded)
        record = _with_attributes(kind, decoded)
        if hasattr(record, "__post_init__"):
            try:
                record.__post_init__()
            except (ValueError, TypeError, AttributeError) as error:  # these include ParameterError
                raise ModelFileError(f"{tag}: {error}") from None
        return record

    def _object(self, node: dict[str, Any], lengths: Lengths) -> Any:
        tag, values = _parts(node, "object", "fields")
        kind, declaration = self._declared(tag)
        if declaration.attributes is None:
            raise ModelFileError(f"{tag} is not an object")
        decoded = self._fields(tag, values, lengths, declaration.attributes)
        check_fields(declaration, decoded, lengths)
        return _with_attributes(kind, decoded)

    def _declared(self, tag: Any) -> tuple[Any, Declaration]:
        kind = classes.class_of(tag) if isinstance(tag, str) else None
        declaration = None if kind is None else declaration_of(kind)
        if declaration is None or (declaration.in_checkpoints and not self.for_checkpoint):
            raise ModelFileError(f"it contains {_shown(tag)}, which this version of coterie does not know")
        return kind, declaration

    def _fields(self, tag: str, values: Any, lengths: Lengths, names: Sequence[str]) -> dict[str, Any]:
        if not isinstance(values, dict):
            raise ModelFileError(f"fields of {tag} must be a JSON object")
        unknown = sorted(set(values) - set(names))
        if unknown:
            raise ModelFileError(f"{tag} has the unknown field {unknown[0]!r}")
        return {key: self.value(values[key], lengths) for key in sorted(values)}

    # random generators

    def _random_state(self, node: dict[str, Any], lengths: Lengths) -> np.random.RandomState:
        generator, state = np.random.RandomState(0), self._dict(_part(node, "random_state"), lengths)
        name = state.get("bit_generator")
        if name != classes.LEGACY_BIT_GENERATOR:
            raise ModelFileError(f"the bit generator {_shown(name)} is not known")
        with _rejecting_malformed_states():
            generator.set_state(state)
        return generator

    def _bits(self, node: Any, lengths: Lengths) -> Any:
        name, seed, state = _parts(node, "kind", "seed", "state")
        if name not in classes.BIT_GENERATORS:
            raise ModelFileError(f"the bit generator {_shown(name)} is not known")
        entropy, key, children = _parts(seed, "entropy", "spawn_key", "children")
        entropy, key = self.value(entropy, lengths), tuple(_integers(key))
        with _rejecting_malformed_states():
            seeds = np.random.SeedSequence(entropy, spawn_key=key, n_children_spawned=_integers([children])[0])
            bits = getattr(np.random, name)(seeds)
            bits.state = self._dict(state, lengths)
        return bits


@contextmanager
def _rejecting_malformed_states() -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, AttributeError) as error:
        raise ModelFileError(f"the state of a random generator is malformed: {error}") from None


def _parts(node: Any, *names: str) -> list[Any]:
    """The values of a node that must have exactly these names."""
    if not isinstance(node, dict) or set(node) != set(names):
        raise ModelFileError(f"{_shown(node)} must be a JSON object with the names {', '.join(names)}")
    return [node[name] for name in names]


def _part(node: Any, name: str) -> Any:
    return _parts(node, name)[0]


def _integers(node: Any, count: int | None = None, none: bool = False, largest: float = math.inf) -> list[int]:
    is_list = isinstance(node, list) and (count is None or len(node) == count)
    if not is_list or not all((type(item) is int and abs(item) <= largest) or (none and item is None) for item in node):
        raise ModelFileError(f"{_shown(node)} must be a list of integers")
    return list(node)


def _with_layout(array: np.ndarray, axes: tuple[int, ...] | None, read_only: bool) -> np.ndarray:
    """The array with its axes in memory in that order."""
    if axes is not None:
        if sorted(axes) != list(range(array.ndim)):
            raise ModelFileError(f"an array of shape {array.shape} cannot have the axes {list(axes)}")
        array = array.transpose(np.argsort(axes))
    if read_only:
        array = array.view()
        array.flags.writeable = False
    return array


def _with_attributes(kind: Any, values: dict[str, Any]) -> Any:
    instance: Any = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(instance, name, value)  # frozen dataclasses reject setattr
    return instance


def _shown(node: Any) -> str:
    text = repr(node)
    return text if len(text) <= 60 else f"{text[:57]}..."
