"""Declare next to a class which of its attributes are stored in files.

A file identifies a class by its tag, which never changes, so classes can be moved and renamed. `coterie.persistence`
uses these declarations; it writes and reads only classes that are declared.

A rule describes one field. It is a type, followed by the lengths of the axes if it is an array: ``"real K D"``.

- Types of arrays: `real` (finite floats), `float` (may be NaN or infinite), `integer`, `bool`, ``index<k`` (integers
  from 0 to k - 1) and ``index-<k`` (from -1).
- Other types: `none`, `text`, `positive` (an integer), `count` (an integer from 0 on), `tuple`, `dict`, ``list n``,
  `generator` (of random numbers), `family`, ``size<n>`` (an integer that defines the length n).
- Instances of a class by its tag, ``<online.State>``, or of a group of tags, ``<distance.*>``.
- Alternatives are separated by ``|``.

Lengths are letters. A capital letter is the same length in the whole model (`K` clusters, `D` columns, `N` rows), a
small letter in one instance; ``*`` is any length.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

C = TypeVar("C", bound=type)
Check = Callable[[dict[str, Any], dict[str, int]], bool]


@dataclass(frozen=True)
class Declaration:
    """What files store of one class."""

    tag: str
    rules: Mapping[str, str]  # by field
    attributes: tuple[str, ...] | None  # of an instance; None for dataclasses, named tuples and estimators
    optional: tuple[str, ...]  # private attributes that an estimator may have in addition to those with a rule
    check: Check | None  # whether fields that satisfy their rules are consistent
    in_checkpoints: bool  # whether only checkpoints may contain it


CLASSES: dict[str, type] = {}  # by tag


def stored(
    tag: str | None = None,
    *,
    attributes: str | None = None,
    optional: str = "",
    check: Check | None = None,
    in_checkpoints: bool = False,
    **rules: str,
) -> Callable[[C], C]:
    """Declare that files may contain instances of a class, under a tag that never changes.

    The tag of an estimator is by default its name, as registered in `coterie.algorithms`.
    All fields of dataclasses and named tuples are stored. Options and fitted attributes of estimators are stored; an
    attribute with a rule is required. Other classes list their `attributes`. `check` receives the fields and the
    lengths of the axes, and returns whether they are consistent.
    """
    listed = None if attributes is None else tuple(attributes.split())

    def declare(kind: C) -> C:
        name = tag or kind.__name__
        if name in CLASSES and CLASSES[name].__qualname__ != kind.__qualname__:
            raise ValueError(f"the tag {name!r} of {kind} is already that of {CLASSES[name]}")
        CLASSES[name] = kind
        kind.__stored__ = Declaration(name, rules, listed, tuple(optional.split()), check, in_checkpoints)  # type: ignore[attr-defined]
        return kind

    return declare


def declaration_of(kind: type) -> Declaration | None:
    """The declaration of this class itself; None if only a base class has one."""
    return vars(kind).get("__stored__")
