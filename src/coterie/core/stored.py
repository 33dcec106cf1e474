"""Declare what files store of a class, beside the class itself.

A file names a class by its tag, which never changes: classes can be moved and renamed. `coterie.persistence` reads
these declarations; it writes and reads nothing that is not declared.

A rule describes one field. It is a type, followed by the lengths of the axes if it is an array: ``"real K D"``.

- Types of arrays: `real` (finite floats), `float` (may be NaN or infinite), `integer`, `bool`, ``index<k`` (integers
  from 0 to k - 1) and ``index-<k`` (from -1).
- Other types: `none`, `text`, `positive` (an integer), `count` (an integer from 0 on), `tuple`, `dict`, ``list n``,
  `generator` (of random numbers), `family`, ``size<n>`` (an integer that defines the length n).
- Instances of a class by its tag, ``<online.State>``, or of a group of tags, ``<distance.*>``.
- Alternatives are separated by ``|``.

Lengths are letters: capital letters mean the same length in the whole model (`K` clusters, `D` columns, `N` rows),
small letters in one instance; ``*`` is any length.
"""

from __future__ import annotations

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
    attributes: tuple[str, ...] | None  # all that an instance may have, unless the class lists its fields itself
    optional: tuple[str, ...]  # private attributes that an estimator may have beside those with a rule
    check: Check | None  # whether fields that keep their rules are consistent
    in_checkpoints: bool  # whether only checkpoints may hold it


CLASSES: dict[str, type] = {}  # by tag


def stored(
    tag: str,
    *,
    attributes: str | None = None,
    optional: str = "",
    check: Check | None = None,
    in_checkpoints: bool = False,
    **rules: str,
) -> Callable[[C], C]:
    """Declare that files may hold instances of a class, under a tag that never changes.

    Of dataclasses and named tuples all fields are stored. Of estimators the options and fitted attributes are stored,
    and `rules` names those that must be there. Other classes list their `attributes`. `check` gets the fields and the
    lengths of the axes, and returns whether they are consistent.
    """
    listed = None if attributes is None else tuple(attributes.split())

    def declare(kind: C) -> C:
        if tag in CLASSES and CLASSES[tag].__qualname__ != kind.__qualname__:
            raise ValueError(f"the tag {tag!r} of {kind} is already that of {CLASSES[tag]}")
        CLASSES[tag] = kind
        kind.__stored__ = Declaration(tag, rules, listed, tuple(optional.split()), check, in_checkpoints)  # type: ignore[attr-defined]
        return kind

    return declare


def declaration_of(kind: type) -> Declaration | None:
    """The declaration of this very class; None if it has none, as a subclass of a stored class."""
    return vars(kind).get("__stored__")
