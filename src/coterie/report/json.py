"""A result as a dictionary for ``json.dumps``."""

import math
from dataclasses import fields, is_dataclass
from typing import Any

from coterie.explanation import Rule

# Fields with tuples of pairs, which become mappings
PAIRS = {"skipped": ("name", "reason"), "stands_out_by": ("column", "deviation")}
RENAMED = {"label": "cluster"}
LEFT_OUT = "labels"  # one label per row: the output file has them


def as_dict(result: Any) -> dict[str, Any]:
    """All fields of `result` except the labels; the recommended K and its strength are repeated at the top level."""
    plain = _fields(result)
    if plain.get("choice") is not None:
        plain |= {name: plain["choice"][name] for name in ("recommended", "strength")}
    return plain


def _fields(value: Any) -> dict[str, Any]:
    result = {}
    for name in (field.name for field in fields(value) if field.name != LEFT_OUT):
        item = getattr(value, name)
        if name in PAIRS and isinstance(item, tuple):
            key, content = PAIRS[name]
            item = {getattr(pair, key): _content(pair, content) for pair in item}
        result[RENAMED.get(name, name)] = _plain(item)
    return result


def _content(pair: Any, name: str) -> Any:
    """The content of a pair; of a category, the shares of its cluster and of all rows."""
    if getattr(pair, "share", None) is not None:
        return {"share": pair.share, "overall": pair.overall}
    return getattr(pair, name)


def _plain(value: Any) -> Any:
    if isinstance(value, Rule):
        return {name: each for name, each in value.to_dict().items() if name != "label"}
    if is_dataclass(value):
        return _fields(value)
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no infinity
    return value if isinstance(value, str | int | float | None) else str(value)
