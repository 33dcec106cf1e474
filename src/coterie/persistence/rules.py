"""Check the content of a file against the rules of its classes, before it is used.

`coterie.core.stored` explains rules. Without these checks, a damaged or forged file could make a kernel read beyond the
end of an array, or run forever.
"""

from typing import Any

import numpy as np
from scipy import sparse

from coterie.core.stored import Declaration, declaration_of
from coterie.errors import ModelFileError
from coterie.families.family import Family

LARGEST_EXPONENT = 2200  # of a power of two by which rows or weights were divided


class Lengths:
    """The lengths that belong to the letters of rules, and indices to check when their upper limit is known."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.unchecked: list[tuple[str, Any, str]] = []  # field, indices, letter of their limit

    def check_indices(self, known: dict[str, int]) -> None:
        """Check the indices whose limits are known."""
        for field, indices, letter in [item for item in self.unchecked if item[2] in known]:
            if indices.size and indices.max() >= known[letter]:
                raise ModelFileError(f"{field} has the value {indices.max()}; it must be below {known[letter]}")
        self.unchecked = [item for item in self.unchecked if item[2] not in known]


def check_model(declaration: Declaration, values: dict[str, Any], lengths: Lengths) -> None:
    """Check the fitted attributes of an estimator."""
    name, columns, names = declaration.tag, values.get("n_features_in_"), values.get("feature_names_in_")
    if "n_features_in_" in values and (
        type(columns) is not int or columns < 0 or lengths.known.setdefault("D", columns) != columns
    ):
        raise ModelFileError(f"{name} has n_features_in_ = {columns!r}, which does not match its arrays")
    if names is not None and not (
        isinstance(names, np.ndarray) and names.dtype == object and names.shape == (columns,)
    ):
        raise ModelFileError(f"{name} has feature_names_in_ that do not match {columns} columns")
    exponents = values.get("_exponents", (0, 0))
    are_integers = isinstance(exponents, tuple) and [type(exponent) for exponent in exponents] == [int, int]
    if not are_integers or max(map(abs, exponents)) >= LARGEST_EXPONENT:
        raise ModelFileError(f"{name} has _exponents = {exponents!r}; they must be two integers")
    missing = sorted(set(declaration.rules) - set(values))
    if missing:
        raise ModelFileError(f"{name} has no attribute {missing[0]!r}")
    check_fields(declaration, values, lengths)
    outputs = values.get("_n_features_out")
    if outputs is not None and (not _is_integer(outputs) or outputs != lengths.known.get("K", outputs)):
        raise ModelFileError(f"{name} has {lengths.known.get('K')} clusters but _n_features_out = {outputs!r}")


def check_fields(declaration: Declaration, values: dict[str, Any], lengths: Lengths) -> None:
    """Check fields against the rules of their class, and against each other."""
    tag, local = declaration.tag, dict[str, int]()
    for field, rule in declaration.rules.items():
        alternatives = [alternative.strip() for alternative in rule.split(" | ")]
        if not any(_matches(rule, values[field], f"{tag}.{field}", lengths, local) for rule in alternatives):
            if not _is_finite(values[field]):
                raise ModelFileError(f"{tag}.{field} has values that are not finite")
            raise ModelFileError(f"{tag}.{field} must be {rule}; got {_described(values[field])}")
    lengths.check_indices(lengths.known | local)
    if not is_consistent(declaration, values, lengths.known):
        raise ModelFileError(f"the fields of {tag} do not match each other")


def is_consistent(declaration: Declaration, values: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether fields pass the check of their class."""
    try:
        return declaration.check is None or declaration.check(values, lengths)
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError):  # fields of any type
        return False


def tag_of(value: Any) -> str | None:
    """The tag of the class of a value; None if files cannot contain it."""
    declaration = declaration_of(type(value))
    return None if declaration is None else declaration.tag


def _matches(rule: str, value: Any, field: str, lengths: Lengths, local: dict[str, int]) -> bool:
    if rule.startswith("<"):
        tag, expected = tag_of(value) or "", rule[1:-1]
        return tag.startswith(expected[:-1]) if expected.endswith("*") else tag == expected
    if rule in TYPES:
        return TYPES[rule](value)
    kind, *axes = rule.split()
    if kind.startswith("size<"):
        return _is_integer(value) and _bind([kind[5:-1]], (int(value),), lengths.known, local)
    if kind == "list":
        return isinstance(value, list) and _bind(axes, (len(value),), lengths.known, local)
    kind, _, limit = kind.partition("<")
    if not (isinstance(value, np.ndarray) or sparse.issparse(value)) or len(value.shape) != len(axes):
        return False
    numbers = value.data if sparse.issparse(value) else value
    if not ARRAYS[kind](numbers) or not _bind(axes, value.shape, lengths.known, local):
        return False
    if limit:
        lengths.unchecked.append((field, numbers, limit))
    return True


def _is_integer(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy, as options can be."""
    return type(value) is int or isinstance(value, np.integer)


def _bind(axes: list[str], shape: tuple[int, ...], known: dict[str, int], local: dict[str, int]) -> bool:
    """Whether the axes can have these lengths; if so, assign the lengths to their letters."""
    new: dict[str, int] = {}
    for axis, length in zip(axes, shape, strict=True):
        expected = int(axis) if axis.isdigit() else known.get(axis, local.get(axis, new.get(axis, length)))
        if axis != "*" and expected != length:
            return False
        new[axis] = length
    for axis, length in new.items():
        if axis.isalpha():
            (known if axis.isupper() else local)[axis] = length
    return True


TYPES = {
    "none": lambda value: value is None,
    "text": lambda value: isinstance(value, str),
    "positive": lambda value: _is_integer(value) and value > 0,
    "count": lambda value: _is_integer(value) and value >= 0,
    "tuple": lambda value: isinstance(value, tuple),
    "dict": lambda value: isinstance(value, dict),
    "generator": lambda value: isinstance(value, np.random.Generator),
    "family": lambda value: isinstance(value, Family),
}
ARRAYS = {
    "real": lambda numbers: numbers.dtype.kind == "f" and bool(np.isfinite(numbers).all()),
    "float": lambda numbers: numbers.dtype.kind == "f",
    "bool": lambda numbers: numbers.dtype.kind == "b",
    "integer": lambda numbers: numbers.dtype.kind == "i",
    "index": lambda numbers: numbers.dtype.kind == "i" and numbers.min(initial=0) >= 0,
    "index-": lambda numbers: numbers.dtype.kind == "i" and numbers.min(initial=0) >= -1,
}


def _is_finite(value: Any) -> bool:
    """Whether a value is not an array with infinite values or NaN."""
    numbers = value.data if sparse.issparse(value) else value
    return not (isinstance(numbers, np.ndarray) and numbers.dtype.kind == "f") or bool(np.isfinite(numbers).all())


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray) or sparse.issparse(value):
        return f"{value.dtype} {value.shape}"
    return tag_of(value) or type(value).__qualname__
