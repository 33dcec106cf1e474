"""Text with lines that are not rows, or in a dialect that Polars does not read, is rewritten as plain CSV first.

The text is that of a file, or of the cells of a sheet. What must be done is decided by its first and last 64 KB.
"""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import polars as pl

from coterie.core.formatting import first_names
from coterie.data.tables.written_numbers import CURRENCY, MISSING_MARKS, UNITS, Decimal, split_numbers

DELIMITERS = (",", ";", "\t", "|")
SNIFFED_LINES = 20
MAX_PREAMBLE = 30  # lines before the header
MIN_ROWS = 10  # of numbers below two lines of names, if the first one does not name groups
# Quoted fields, which may contain delimiters and line breaks; the last one may be truncated. Other quotes are text.
QUOTED = re.compile(r'(?<![^,;\t|\r\n])"(?:[^"]|"")*(?:"|\Z)')
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)  # that Excel writes
SINGLE_QUOTED = re.compile(r"(?:^|[,;\t|])'[^'\n]*'(?=[,;\t|]|$)")
UNQUOTED = re.compile(r'[",;\t|#\r\n]')  # characters with a meaning outside of quotes
BLANK = " \r" + "".join(DELIMITERS)
FORMULA = re.compile(r'(^|[,;\t|])="([^"\n]*)"(?=[,;\t|\r\n]|$)', re.MULTILINE)  # text of a number, for Excel
QUOTED_LINE = re.compile(r'"((?:[^"\r]|"")*)"(\r?)')
ESCAPED_QUOTE = re.compile(r'[^,;\t|\n"\\]\\"[^",;\t|\r\n]')  # not the end of a field that ends in a backslash
NUMBER = re.compile(r"[-+]?[\d.,\s]*\d[\d.,]*(?:[eE][-+]?\d+)?%?")
TOTALS = frozenset(
    {"total", "totals", "grand total", "sum", "summe", "gesamt", "gesamtsumme", "total general", "totale", "somme"}
)


MAX_FOOTER = 10  # lines below the table
ABOUT_TABLE = "source|note|footnote|remark|quelle|anmerkung|hinweis|stand|last updated"
FOOTER = re.compile(rf"({ABOUT_TABLE})s?\b|©|\(c\)|\*", re.IGNORECASE)


class Cleaning(NamedTuple):
    """What is not plain about a text file."""

    carriage_returns: bool = False  # lines end in a carriage return only
    quoted_lines: bool = False  # every line as a whole is in quotes
    formulas: bool = False  # fields such as ="12"
    skip: int = 0  # lines before the header
    repeated_header: bool = False  # the header is also between the rows
    two_headers: str = ""  # separator, if two lines have names: of groups of columns, and of columns
    units: bool = False  # the line after the header has the units of the columns
    comments: bool = False  # whether lines that start with # are comments
    words: bool = False  # fields are separated by blanks
    trailing: str = ""  # separator at the end of all rows, but not of the header
    quote: str = '"'
    escapes: bool = False  # quotes are escaped by a backslash
    stray_quotes: bool = False  # quotes within fields that are not in quotes
    footer: int = 0  # lines below the table, such as its source
    total: str = ""  # first field of the last line of the table, if it is a total of the others

    @property
    def is_needed(self) -> bool:
        return self != Cleaning()


class CleanText(NamedTuple):
    """Plain text, the line of the file of each of its lines, and notes about what was left out."""

    text: str
    line_numbers: list[int]
    notes: tuple[str, ...]


def detect_cleaning(
    head: str, tail: str, is_whole: bool, header_row: int | None = None, marks: Sequence[str] = DELIMITERS
) -> Cleaning:
    """What is not plain about a file that begins with `head` and ends with `tail`; `is_whole`: `head` is all of it.

    `marks` are the delimiters that the file may have.
    """
    carriage_returns = "\n" not in head and "\r" in head.rstrip("\r")
    if carriage_returns:
        head, tail = head.replace("\r", "\n"), tail.replace("\r", "\n")
    if _has_quoted_lines(head):
        inner = detect_cleaning(_without_quotes(head), _without_quotes(tail), is_whole, header_row, marks)
        return inner._replace(quoted_lines=True, carriage_returns=carriage_returns)
    formulas = FORMULA.search(head) is not None
    if formulas:
        head, tail = (FORMULA.sub(r'\1"\2"', text) for text in (head, tail))
    quote = "'" if '"' not in head and _has_single_quotes(head) else '"'
    escapes = ESCAPED_QUOTE.search(head) is not None and re.search(r'[^\\,;\t|\n]""', head) is None
    lines = QUOTED.sub(_quoted_text, head).replace("\r\n", "\n").split("\n")
    lines = lines if is_whole else lines[: max(1, len(lines) - 1)]
    skip, comments = _preamble(lines, marks) if header_row is None else (header_row - 1, False)
    body = [line for line in lines[skip:] if line.strip() and not (comments and line.startswith("#"))]
    separator = delimiter(body, marks)
    raw = [line.rstrip("\r") for line in head.split("\n")[skip:]]
    has_delimiter = any(mark in line for mark in marks for line in body)
    are_whole = all(line.count('"') % 2 == 0 for line in raw[:2])  # no line breaks in quotes
    has_units = are_whole and _has_units(body, separator)
    ending = tail.replace("\r", " ").rstrip(f"{BLANK}\n").split("\n")
    footer = _footer(ending, separator) if has_delimiter else 0
    return Cleaning(
        carriage_returns=carriage_returns,
        formulas=formulas,
        skip=skip,
        repeated_header=_is_repeated(raw if is_whole else [*raw, *tail.split("\n")], separator),
        two_headers=separator if are_whole and not has_units and _has_two_headers(body, separator) else "",
        units=has_units,
        comments=comments,
        words=not has_delimiter and '"' not in head and _is_words(body),
        trailing=_trailing(body, separator),
        quote=quote,
        escapes=escapes,
        stray_quotes=not escapes and any('"' in line for line in lines),
        footer=footer,
        total="" if len(body) < 4 else _total(ending[: len(ending) - footer], separator),
    )


def clean(text: str, cleaning: Cleaning, marks: Sequence[str] = DELIMITERS, noun: str = "line") -> CleanText:
    """The text with one line for each row and fields in double quotes; `noun` is what notes call a line."""
    if cleaning.carriage_returns:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if cleaning.quoted_lines:
        text = _without_quotes(text)
    if cleaning.formulas:
        text = FORMULA.sub(r'\1"\2"', text)
    notes = []
    lines = list(enumerate(text.split("\n"), start=1))
    if lines and not lines[-1][1]:
        lines.pop()
    if cleaning.skip and not SEPARATOR_LINE.fullmatch(lines[0][1].strip()):
        skipped = [" ".join(line.strip(BLANK + '"').split()) for _, line in lines[: cleaning.skip]]
        first = next((line[:40] for line in skipped if line), "")
        count = f"first {cleaning.skip} {noun}s are" if cleaning.skip > 1 else f"first {noun} is"
        title = f'the {count} not part of the table ("{first}"): the header is {noun} {cleaning.skip + 1}.'
        notes += [title] if first else []
    lines = lines[cleaning.skip :]
    if cleaning.comments:
        n_lines = len(lines)
        lines = [each for each, is_inside in _with_state(lines) if is_inside or not each[1].startswith("#")]
        if len(lines) < n_lines:
            notes.append(f"{n_lines - len(lines)} {noun}s that start with # are comments: they were skipped.")
    if cleaning.two_headers:
        del lines[1 : next(i for i, (_, line) in enumerate(lines) if i and line.strip())]
        (upper, _), (number, _) = lines[:2]
        names = _joined_names([line for _, line in lines[:2]], cleaning)
        lines[:2] = [(number, _as_line(names, cleaning.two_headers, cleaning.quote))]
        example = first_names(names, 4)
        notes.append(f'{noun}s {upper} and {number} both have names of columns: they were joined ("{example}").')
    if cleaning.units:
        units = ", ".join(filter(None, re.split(f"[{re.escape(''.join(marks))}]", lines[1][1].strip("\r"))))
        notes.append(f'{noun} {lines[1][0]:,} has units ("{units[:40]}"), not a row: it was left out.')
        del lines[1]
    if cleaning.repeated_header:
        lines, repeated = _without_repeats(lines, lines[0][1].rstrip("\r"))
        others = f", and so do {len(repeated) - 1:,} more {noun}s" if len(repeated) > 1 else ""
        notes.append(f"{noun} {repeated[0]:,} repeats the header{others}: left out.")
    if cleaning.words:
        lines = [(number, "\t".join(line.split())) for number, line in lines]
    if cleaning.trailing:
        lines = [(number, line.rstrip("\r").removesuffix(cleaning.trailing)) for number, line in lines]
    if cleaning.footer:
        below = max(i for i, (_, line) in enumerate(lines) if line.strip(BLANK)) + 1 - cleaning.footer
        texts = [line.strip(BLANK)[:40] for _, line in lines[below:] if line.strip(BLANK)]
        count = f"last {len(texts)} {noun}s are" if len(texts) > 1 else f"last {noun} is"
        notes.append(f'the {count} not part of the table ("{texts[0]}"): left out.')
        del lines[below:]
    if cleaning.total:
        last = max(i for i, (_, line) in enumerate(lines) if line.strip(BLANK))
        notes.append(f'{noun} {lines[last][0]:,} is a total ("{cleaning.total}"), not a row: it was left out.')
        del lines[last:]
    if cleaning.quote != '"' or cleaning.escapes or cleaning.stray_quotes:
        lines = _requoted(lines, cleaning, marks)
    return CleanText("".join(f"{line}\n" for _, line in lines), [number for number, _ in lines], tuple(notes))


def delimiter(lines: list[str], marks: Sequence[str] = DELIMITERS) -> str:
    """The most frequent of `marks` that occurs in each of the first lines; the first of them if there is none."""
    counts = {mark: min((line.count(mark) for line in lines[:SNIFFED_LINES]), default=0) for mark in marks}
    return max(marks, key=lambda mark: counts[mark])


def _quoted_text(field: re.Match[str]) -> str:
    """The text of a quoted field, with blanks in place of what means something outside of quotes."""
    return UNQUOTED.sub(" ", field.group().strip('"'))


def _with_state(lines: list[tuple[int, str]]) -> Iterator[tuple[tuple[int, str], bool]]:
    """The lines, each with whether it begins inside of a quoted field."""
    is_inside = False
    for number, line in lines:
        yield (number, line), is_inside
        is_inside ^= line.count('"') % 2 == 1


def _without_repeats(lines: list[tuple[int, str]], header: str) -> tuple[list[tuple[int, str]], list[int]]:
    """The lines without those that are equal to the header, and the numbers of these."""
    rows, repeated = lines[:1], []
    for (number, line), is_inside in _with_state(lines[1:]):
        if line.rstrip("\r") == header and not is_inside:
            repeated.append(number)
        else:
            rows.append((number, line))
    return rows, repeated


def _joined_names(lines: list[str], cleaning: Cleaning) -> list[str]:
    """Names of columns from two lines: names of groups, each of one or more columns, and names within them."""
    rows = csv.reader(lines, delimiter=cleaning.two_headers, quotechar=cleaning.quote)
    upper, lower = ([" ".join(name.split()) for name in row] for row in rows)
    groups: Iterator[str] = accumulate(upper, lambda last, group: group or last)
    return [" ".join(dict.fromkeys(filter(None, each))) for each in zip(groups, lower, strict=True)]


def _as_line(fields: list[str], separator: str, quote: str = '"') -> str:
    line = io.StringIO()
    csv.writer(line, delimiter=separator, quotechar=quote, lineterminator="").writerow(fields)
    return line.getvalue()


def _has_quoted_lines(head: str) -> bool:
    """Whether each of the first lines is one quoted field with the same number of separators."""
    lines = [line for line in head.split("\n")[: SNIFFED_LINES + 1] if line.strip()][:SNIFFED_LINES]
    matches = [QUOTED_LINE.fullmatch(line) for line in lines]
    inner = [QUOTED.sub("", match[1].replace('""', '"')) for match in matches if match]
    if len(inner) < max(2, len(lines)):
        return False
    counts = {inner_line.count(delimiter(inner)) for inner_line in inner}
    return len(counts) == 1 and 0 not in counts


def _without_quotes(text: str) -> str:
    """Lines that are one quoted field, without these quotes."""
    return "\n".join(
        match[1].replace('""', '"') + match[2] if (match := QUOTED_LINE.fullmatch(line)) else line
        for line in text.split("\n")
    )


def _is_repeated(lines: list[str], separator: str) -> bool:
    """Whether a later line is equal to the first, which has several names and no number."""
    header = lines[0] if lines else ""
    names = header.split(separator)
    is_header = len(names) > 1 and header.count('"') % 2 == 0 and not any(NUMBER.fullmatch(name) for name in names)
    return is_header and all(name.strip() for name in names) and header in (line.rstrip("\r") for line in lines[1:])


def _has_units(body: list[str], separator: str) -> bool:
    """Whether the second line has units of most columns, and the third has numbers in these columns."""
    if len(body) < 3 or separator not in body[0]:
        return False
    _, units, row = ([field.strip() for field in line.split(separator)] for line in body[:3])
    are_units = [field.strip("[]()").lower() in UNITS or CURRENCY.fullmatch(field.strip("[]()")) for field in units]
    has_unit = [field not in ("", "-", "%") for field in units]
    is_plausible = all(unit or not has for unit, has in zip(are_units, has_unit, strict=True)) and any(has_unit)
    return (
        is_plausible
        and 2 * sum(has_unit) > len(units) == len(row)
        and all(NUMBER.fullmatch(value) or not has for value, has in zip(row, has_unit, strict=True))
    )


def _has_single_quotes(head: str) -> bool:
    lines = [line for line in head.split("\n")[:SNIFFED_LINES] if line.strip()]
    return len(lines) > 1 and all(SINGLE_QUOTED.search(line) for line in lines)


def _has_two_headers(body: list[str], separator: str) -> bool:
    """Whether the first two lines are names, for columns that have only numbers in the next lines.

    Names of groups are followed by empty fields, or repeated. Without such names, the second line has questions: names
    of several words, and there are several columns of many numbers.
    """
    upper, lower, *rows = (
        [field.strip() for field in line.split(separator)] for line in [*body[:SNIFFED_LINES], "", ""]
    )
    rows = [row for row in rows if len(row) == len(lower)]
    if len(rows) < 2 or not len(upper) == len(lower) > 1 or upper == lower or any(map(NUMBER.fullmatch, lower)):
        return False
    columns = [[field for field in column if field.lower() not in MISSING_MARKS] for column in zip(*rows, strict=True)]
    is_number = [bool(column) and all(map(NUMBER.fullmatch, column)) for column in columns]
    names = [name for name, is_numeric in zip(lower, is_number, strict=True) if is_numeric]
    if not names or any(name.lower() in MISSING_MARKS for name in names):
        return False
    last = max((j for j, group in enumerate(upper) if group), default=0)
    has_groups = any(group == "" and lower[j] for j, group in enumerate(upper[:last])) or any(
        group == following != "" for group, following in pairwise(upper)
    )
    has_questions = len(set(names)) == len(names) > 1 and all(upper) and any(" " in name for name in names)
    return has_groups or (has_questions and len(rows) >= MIN_ROWS)


def _preamble(lines: list[str], marks: Sequence[str]) -> tuple[int, bool]:
    """The number of lines before the header, and whether lines that start with # are comments."""
    if lines and SEPARATOR_LINE.fullmatch(lines[0].strip()):
        return 1, False
    first = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")), 0)
    body = [line for line in lines[first:] if line.strip()]
    plain = [line for line in body if not line.startswith("#")]
    mark = _most_frequent(plain, marks)
    counts = Counter(line.count(mark) for line in plain)
    usual = counts.most_common(1)[0][0] if counts else 0
    if usual == 0:
        return 0, False
    has_comments = any(line.startswith("#") and _width(line, mark) < usual for line in lines if line.strip())
    if first and lines[first - 1].startswith("#") and _width(lines[first - 1], mark) == usual:
        first -= 1  # a header that starts with #
        return first, False
    start = next((i for i in range(first, len(lines)) if _is_full(lines[i], mark, usual)), first)
    preamble = [line for line in lines[first:start] if line.strip() and not line.startswith("#")]
    rest = [line for line in lines[start:] if line.strip() and not (has_comments and line.startswith("#"))]
    if preamble and not _is_table(rest[_has_two_headers(rest, mark) :], mark, usual, preamble):
        start = first
    elif start > first and _has_two_headers([lines[start - 1], *rest], mark):
        start -= 1
    return (start if start <= MAX_PREAMBLE else first), has_comments


def _width(line: str, mark: str) -> int:
    """Number of delimiters before the last field with a value."""
    return line.rstrip(BLANK).count(mark)


def _is_full(line: str, mark: str, usual: int) -> bool:
    """Whether the line has the usual number of fields, and values in the last and most others, unlike titles have."""
    filled = sum(bool(field.strip()) for field in line.split(mark))
    return line.count(mark) == usual == _width(line, mark) and 2 * filled > usual + 1


def _most_frequent(lines: list[str], marks: Sequence[str]) -> str:
    """The delimiter of most lines, although some may have none."""
    last = lines[-SNIFFED_LINES:]
    return max(marks, key=lambda mark: (sum(mark in line for line in last), sum(line.count(mark) for line in last)))


def _is_table(rest: list[str], mark: str, usual: int, preamble: list[str]) -> bool:
    """Whether `rest` is a header and rows of numbers, most with as many fields, and the lines before have no more."""
    if len(rest) < 3 or any(line.count(mark) > usual for line in preamble):
        return False
    header, *rows = ([field.strip() for field in line.split(mark)] for line in rest[:SNIFFED_LINES])
    are_names = not any(NUMBER.fullmatch(field) for field in header)
    same = sum(len(row) == usual + 1 for row in rows)
    return are_names and 2 * same > len(rows) and any(NUMBER.fullmatch(field) for row in rows[:2] for field in row)


def _is_words(body: list[str]) -> bool:
    """Whether lines are fields separated by blanks, at least half of them numbers after the first line."""
    rows = [line.split() for line in body[:SNIFFED_LINES]]
    if len(rows) < 2 or len(rows[0]) < 2 or any(len(row) != len(rows[0]) for row in rows):
        return False
    fields = [field for row in rows[1:] for field in row]
    return 2 * sum(NUMBER.fullmatch(field) is not None for field in fields) >= len(fields)


def _trailing(body: list[str], separator: str) -> str:
    """The separator, if every row ends in one more than the header has."""
    if len(body) < 2:
        return ""
    header, *rows = (line.rstrip("\r") for line in body)
    expected = header.count(separator) + 1
    is_trailing = all(row.endswith(separator) and row.count(separator) == expected for row in rows)
    return separator if is_trailing and not header.endswith(separator) else ""


def _footer(lines: list[str], separator: str) -> int:
    """The number of lines below the table: of text in the first field only, after a blank line or about the table."""
    first = next((i for i in range(len(lines) - 1, 0, -1) if not _is_text_alone(lines[i], separator)), 0) + 1
    if not 1 < first < len(lines) <= first + MAX_FOOTER:
        return 0
    top = lines[first].strip(BLANK + '"')
    return len(lines) - first if not top or FOOTER.match(top) else 0


def _is_text_alone(line: str, separator: str) -> bool:
    """Whether at most the first field has a value, which is not a number and no end of a field of several lines."""
    first, *rest = next(csv.reader([line], delimiter=separator), []) or [""]
    return line.count('"') % 2 == 0 and not NUMBER.fullmatch(first.strip()) and not "".join(rest).strip()


def _total(lines: list[str], separator: str) -> str:
    """The first word of the last line, if it says that the line is a total, and no other line begins so.

    It is the name of a row if each number is in the range of its column, and none is the sum of its column.
    """
    lines = [line for line in lines if line.strip(BLANK)]
    rows = [row for row in csv.reader(lines, delimiter=separator) if row]
    first = [next((field.strip() for field in row if field.strip()), "") for row in rows[-SNIFFED_LINES:]]
    words = [field.strip("\"'* :").lower() for field in first]
    is_total = len(words) > 1 and separator in lines[-1] and words[-1] in TOTALS and words[-1] not in words[:-1]
    return first[-1].strip("\"'* :") if is_total and not _is_usual(rows) else ""


def _is_usual(rows: list[list[str]]) -> bool:
    """Whether each number of the last row is in the range of those above it, and none is their sum."""
    columns = [_numbers([row[j] for row in rows if j < len(row)]) for j in range(len(rows[-1]))]
    pairs = [(last, [value for value in above if value is not None]) for *above, last in columns if last is not None]
    pairs = [(last, above) for last, above in pairs if above]
    are_within = all(min(above) <= last <= max(above) for last, above in pairs)
    is_sum = any(math.isclose(last, sum(above), rel_tol=0.01) for last, above in pairs)
    return bool(pairs) and are_within and not is_sum


def _numbers(fields: list[str]) -> list[float | None]:
    """Fields of a column as numbers, with the decimal separator that fits more of them; None for other text."""
    numbers = split_numbers(pl.Series([field.strip().strip("'") for field in fields]))
    decimals: tuple[Decimal, ...] = (".", ",")
    return numbers.values(max(decimals, key=lambda decimal: numbers.fits(decimal).sum())).to_list()


def _requoted(lines: list[tuple[int, str]], cleaning: Cleaning, marks: Sequence[str]) -> list[tuple[int, str]]:
    """Lines with fields in double quotes; a field may extend over several lines."""
    separator = delimiter([line for _, line in lines[:SNIFFED_LINES]], marks)
    escape = "\\" if cleaning.escapes else None
    reader = csv.reader(
        (f"{line}\n" for _, line in lines), delimiter=separator, quotechar=cleaning.quote, escapechar=escape,
        doublequote=not cleaning.escapes,
    )  # fmt: skip
    result: list[tuple[int, str]] = []
    start = 0
    for fields in reader:
        parts = _as_line(fields, separator).split("\n")
        result += [(lines[min(start, len(lines) - 1)][0], part) for part in parts]
        start = reader.line_num
    return result
