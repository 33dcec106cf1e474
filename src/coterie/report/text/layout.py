"""Formatting of numbers and tables as text."""

from collections.abc import Sequence

MAX_NAMES = 8
MINUS = "−"


def columns(rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> list[str]:
    """Lines of a table; columns in `left` are aligned left, the others right."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if j in left else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def number(value: float | None) -> str:
    """Four significant digits, or an integer from 1000; a dash for None."""
    if value is None:
        return "–"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return text.replace("-", MINUS)


def two_places(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}".replace("-", MINUS)


def signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", MINUS)


def count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"


def in_bytes(size: int) -> str:
    value, unit = float(size), "bytes"
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{value:.3g} {unit}"


def first_names(names: Sequence[str]) -> str:
    """The first names, separated by commas."""
    return ", ".join(names[:MAX_NAMES]) + (", …" if len(names) > MAX_NAMES else "")
