"""Encode a fitted model as JSON and named arrays.

Values that JSON has are stored unchanged. All others become an object whose first key states its type:
``{"tuple": [...]}``, ``{"array": "cluster_centers_"}``, ``{"record": "online.State", "fields": {...}}``.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from coterie.core.stored import Declaration, declaration_of
from coterie.errors import DroppedOptionWarning, ModelFileError
from coterie.persistence import classes

FOR_PREDICT = ("metric", "kernel", "family")  # options that may be functions and are needed after the fit


class Encoder:
    """Encodes values, and collects each of their arrays once in `tensors`, by the name of an attribute."""

    def __init__(self, for_checkpoint: bool = False) -> None:
        self.for_checkpoint = for_checkpoint
        self.tensors: dict[str, np.ndarray] = {}
        self._names: dict[int, tuple[np.ndarray, str]] = {}  # by id, which is unique as long as the array exists
        self._encoders: tuple[tuple[type, Callable[[Any, str], Any]], ...] = (
            (np.ndarray, self._array),
            (np.generic, self._scalar),  # before float, because np.float64 is a float, too
            (float, lambda value, path: value if math.isfinite(value) else {"float": repr(value)}),
            (list, self._items),
            (dict, self._dict),
            (frozenset, lambda value, path: {"frozenset": self._items(sorted(value), path)}),
            (set, lambda value, path: {"set": self._items(sorted(value), path)}),
            (np.dtype, self._numbers),
            (slice, lambda value, path: {"slice": [value.start, value.stop, value.step]}),
            (range, lambda value, path: {"range": [value.start, value.stop, value.step]}),
            (np.random.Generator, lambda value, path: {"generator": self._bits(value.bit_generator, path)}),
            (np.random.RandomState, self._random_state),
        )

    def model(self, model: Any, path: str = "") -> dict[str, Any]:
        name = classes.model_name(model)
        if name is None:
            raise ModelFileError(
                f"{_description(model)} cannot be saved: files contain only estimators of coterie, alone or as the "
                f"last step of a Pipeline after {', '.join(classes.PREPROCESSING)}"
            )
        params = model.get_params(deep=False)
        attributes = {key: value for key, value in vars(model).items() if key not in params}
        if attributes.pop("_metadata_request", None) is not None:
            _warn_of_dropping(name, "its metadata requests", "set them again after load")
        options = {key: self._option(name, key, params[key], f"{path}options.{key}") for key in sorted(params)}
        order = sorted(attributes, key=lambda key: (key.startswith("_"), key))  # an array gets its public name, if any
        for key in order:
            if not classes.can_be_state(key, name, type(model)):
                raise ModelFileError(
                    f"{name} has the attribute {key!r}, which `fit` does not set: del model.{key} first"
                )
        state = {key: self.value(attributes[key], f"{path}{key}") for key in order}
        return {"model": name, "options": options, "state": state}

    def _option(self, name: str, key: str, value: Any, path: str) -> Any:
        if key == "checkpoint":
            return None  # a fitted model does not use it
        if key in ("callback", "memory") and value is not None:
            _warn_of_dropping(name, key, f"set it again after load with set_params({key}=...)")
            return None
        if key == "steps":
            pairs = [
                [step, each if each is None or isinstance(each, str) else self.model(each, f"{step}.")]
                for step, each in value
            ]
            return [{"tuple": pair} for pair in pairs]
        try:
            return self.value(value, path)
        except ModelFileError as error:
            remedy = (
                f"use a {key} of coterie, or keep your code and fit again"
                if key in FOR_PREDICT
                else f"a fitted {name} does not need it: set a name, number or array with model.set_params({key}=...)"
            )
            raise ModelFileError(f"{name}: {error} ({remedy})") from None

    def value(self, value: Any, path: str) -> Any:
        """Encode any value as JSON; `path` is its position in the model."""
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return value
        for kind, encode in self._encoders:
            if isinstance(value, kind):
                return encode(value, path)
        declaration = declaration_of(type(value))
        if declaration is not None and not isinstance(value, BaseEstimator):
            return self._instance(declaration, value, path)
        if type(value) is tuple:
            return {"tuple": self._items(value, path)}
        if sparse.issparse(value) and type(value).__name__ in classes.SPARSE:
            return self._sparse(value, path)
        if classes.model_name(value) is not None:
            return self.model(value, f"{path}.")
        if type(value).__module__.startswith("dask.") and hasattr(value, "__array__"):
            return self._array(np.asarray(value), path)
        raise ModelFileError(
            f"{path} is {_description(value)}, which cannot be saved: files contain no code, and only the distances, "
            "kernels and families of coterie"
        )

    def _items(self, values: Any, path: str) -> list[Any]:
        return [self.value(item, f"{path}.{i}") for i, item in enumerate(values)]

    def _fields(self, values: dict[str, Any], path: str) -> dict[str, Any]:
        return {key: self.value(values[key], f"{path}.{key}") for key in sorted(values)}

    def _instance(self, declaration: Declaration, value: Any, path: str) -> Any:
        if declaration.in_checkpoints and not self.for_checkpoint:
            raise ModelFileError(f"{path} is the state of a fit, which only checkpoints can contain")
        if declaration.attributes is None:
            if is_dataclass(value):
                content = {field.name: getattr(value, field.name) for field in fields(value)}
            else:
                content = value._asdict()
            return {"record": declaration.tag, "fields": self._fields(content, path)}
        unknown = sorted(set(vars(value)) - set(declaration.attributes))
        if unknown:
            raise ModelFileError(
                f"{path} has {unknown[0]!r}, which cannot be saved: pass a {type(value).__name__} that is not fitted"
            )
        return {"object": declaration.tag, "fields": self._fields(vars(value), path)}

    def _dict(self, value: dict[Any, Any], path: str) -> Any:
        pairs = enumerate(value.items())
        return {"dict": [[self.value(key, path), self.value(item, f"{path}.{i}")] for i, (key, item) in pairs]}

    def _numbers(self, value: np.dtype[Any], path: str) -> Any:
        if value.name in classes.DTYPES:
            return {"numbers": value.name}
        raise ModelFileError(f"{path} is the dtype {value}, which cannot be saved")

    def _scalar(self, value: np.generic, path: str) -> Any:
        if value.dtype.name in classes.DTYPES:
            return {"number": self.value(value.item(), path), "dtype": value.dtype.name}
        if isinstance(value, np.str_):
            return str(value)
        raise ModelFileError(f"{path} is a number of type {value.dtype}, which cannot be saved: convert it first")

    def _array(self, value: np.ndarray, path: str) -> Any:
        if value.dtype.kind in "OU":
            return self._texts(value, path)
        plain = np.asarray(value)
        plain = plain.astype(plain.dtype.newbyteorder("="), copy=False)
        if plain.dtype.name not in classes.DTYPES:
            raise ModelFileError(f"{path} is an array of {value.dtype}, which cannot be saved: convert it first")
        # The order of the axes in memory, if the array is contiguous: the last bits of some sums depend on it.
        axes = sorted(range(plain.ndim), key=lambda axis: -plain.strides[axis])
        if plain.flags.c_contiguous or not plain.transpose(axes).flags.c_contiguous:
            axes = sorted(axes)
        if id(value) not in self._names:
            path = path if path not in self.tensors else f"{path} ({len(self.tensors)})"
            self._names[id(value)] = value, path
            stored = plain.transpose(axes)
            # ascontiguousarray adds an axis to arrays of shape ().
            self.tensors[path] = np.ascontiguousarray(stored).reshape(stored.shape)
        node: dict[str, Any] = {"array": self._names[id(value)][1]}
        if axes != sorted(axes):
            node["axes"] = axes
        if not value.flags.writeable:
            node["read_only"] = True
        return node

    def _texts(self, value: np.ndarray, path: str) -> Any:
        flat = value.ravel().tolist()
        if not all(type(text) is str for text in flat):
            raise ModelFileError(f"{path} contains objects other than text, which cannot be saved: convert it first")
        kind = "object" if value.dtype.kind == "O" else f"U{value.dtype.itemsize // 4}"
        return {"texts": flat, "shape": list(value.shape), "dtype": kind}

    def _sparse(self, value: Any, path: str) -> Any:
        parts = {part: self._array(getattr(value, part), f"{path}.{part}") for part in ("data", "indices", "indptr")}
        return {"sparse": type(value).__name__, "shape": [int(size) for size in value.shape], **parts}

    def _random_state(self, value: np.random.RandomState, path: str) -> Any:
        state = value.get_state(legacy=False)
        if state["bit_generator"] != classes.LEGACY_BIT_GENERATOR:
            raise ModelFileError(
                f"{path} is a RandomState with {state['bit_generator']}, which cannot be saved: use an integer seed"
            )
        return {"random_state": self._dict(state, path)}

    def _bits(self, bits: Any, path: str) -> Any:
        name = type(bits).__name__
        if name not in classes.BIT_GENERATORS:
            raise ModelFileError(f"{path} has the bit generator {name}, which cannot be saved: use an integer seed")
        seeds = bits.seed_seq
        seed = {
            "entropy": self.value(seeds.entropy, path),
            "spawn_key": [int(key) for key in seeds.spawn_key],
            "children": int(seeds.n_children_spawned),
        }
        return {"kind": name, "seed": seed, "state": self._dict(bits.state, path)}


def _description(value: Any) -> str:
    if hasattr(value, "__code__"):
        return f"the function {value.__name__}"
    return f"a {type(value).__module__}.{type(value).__qualname__}"


def _warn_of_dropping(name: str, option: str, remedy: str) -> None:
    warnings.warn(f"{name}: {option} is not saved; {remedy}", DroppedOptionWarning, stacklevel=2)
