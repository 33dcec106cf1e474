"""A result as one dictionary that ``json.dumps`` takes."""

from dataclasses import fields, is_dataclass
from typing import Any

PAIRS = {"skipped": ("name", "reason"), "stands_out_by": ("column", "deviation")}  # tuples that become mappings
RENAMED = {"label": "cluster"}
LEFT_OUT = "labels"  # one for each row: they belong in the output file


def as_dict(result: Any) -> dict[str, Any]:
    """Everything in `result` but the labels; what was recommended can be had without looking deeper."""
    plain = _fields(result)
    if plain.get("choice") is not None:
        plain["recommended"] = plain["choice"]["recommended"]
    return plain


def _fields(value: Any) -> dict[str, Any]:
    names = [field.name for field in fields(value) if field.name != LEFT_OUT]
    return {RENAMED.get(name, name): _field(name, getattr(value, name)) for name in names}


def _field(name: str, value: Any) -> Any:
    if name in PAIRS and isinstance(value, tuple):
        key, what = PAIRS[name]
        return {getattr(pair, key): getattr(pair, what) for pair in value}
    return _plain(value)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return _fields(value)
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | float | None) else str(value)
