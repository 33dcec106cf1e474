"""Plain words: no phrases that have a clearer form, no table cells that are paragraphs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLAIN = {
    r"keyboard is heard": "Ctrl-C works",
    r"sees no keyboard": "cannot be interrupted by Ctrl-C",
    r"come up for air": "return to Python, so that Ctrl-C works",
    r"left to chance": "determined by random_state",
    r"make chance of": "convert random_state to a Generator",
    r"drawn anew": "resampled",
    r"made anew": "computed again",
    r"start(?:s|ed)? anew": "restart, initialisation",
    r"(?:searched|computed|done) anew": "again",
    r"next to no rows": "hardly any rows",
    r"drawn to start on": "random sample of rows",
    r"torn between": "with responsibilities in both components",
    r"explains? worst": "has the lowest density",
    r"left to gain": "still to be gained",
    r"two become one": "merge",
    r"one becomes two": "split",
    r"(?:had|has|have) to put right": "repair",
    r"can be off\b": "rounding error",
    r"rows? with holes": "rows with missing values",
    r"holes (?:and|or|in)\b": "missing values",
    r"(?:columns|tables?) with holes": "columns with missing values",
    r"ahead by": "margin, confidence",
    r"comes? back when": "stable under resampling",
    r"let that page have": "write the page without",
    r"speaks? for (?:these|those|the) clusters": "these clusters could not be checked independently",
    r"(?:is|are) not yours to": "no write permission",
    r"by whose doing": "exceptions and warnings",
    r"its kin\b": "related functions",
    r"that are there may go": "overwrite existing files",
    r"whose clusters are judged": "algorithm to evaluate",
    r"they say nothing": "all their values are missing",
    r"had a say": "was used in the choice",
    r"would rather cut": "tends to split",
    r"rather cut the large": "tends to split large clusters",
    r"stop to pay": "no longer reduce the objective much",
    r"weigh what they do not know": "Bayesian mixtures",
    r"refused before it is begun": "stops at once, with a suggestion",
    r"straight-line distances?": "Euclidean distances",
    r"all there are are listed": "list the available ones",
    r"is told of with": "is reported with",
    r"so many rows drawn": "N random rows",
    r"asks? for nothing outside": "self-contained HTML file",
    r"how much each row counts": "sample weights",
    r"came to rest": "converged",
    r"(?:lies|lie) on disk meanwhile": "temporary file",
    r"bound of the evidence": "evidence lower bound (ELBO)",
    r"evidence's bound": "evidence lower bound (ELBO)",
    r"belongs? to whom": "assigned to",
    r"what it is told": "its parameters",
    r"a detour can be shorter": "violates the triangle inequality",
    r"is none of (?:them|these)": "is not supported",
    r"to the eye\b": "visually",
    r"keeps its peace": "gives no warning",
}
PHRASES = {re.compile(pattern): plain for pattern, plain in PLAIN.items()}  # one by one: much faster than together
GENERATED = {"_build", "auto"}
PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if not GENERATED & set(path.relative_to(ROOT).parts)),
]
SOURCES = [
    path
    for folder in ("src", "docs")
    for suffix in ("py", "rst", "txt", "html")
    for path in sorted((ROOT / folder).rglob(f"*.{suffix}"))
    if not GENERATED & set(path.relative_to(ROOT).parts)
]
LONGEST_CELL = 200


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_phrase_has_a_plainer_form():
    matches = []
    for path in PAGES + SOURCES:
        text = path.read_text(encoding="utf-8").lower()
        text = re.sub(r"\s+(?:# )?", " ", text)  # a phrase may continue on the next line
        for phrase, plain in PHRASES.items():
            matches += [f'{name_of(path)}: "{match[0]}": write "{plain}"' for match in phrase.finditer(text)]
    assert not matches, "\n".join(matches)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_table_cell_is_a_phrase(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    rows = [line.strip().strip("|") for line in text.splitlines() if line.startswith("|")]
    cells = [cell.strip() for row in rows for cell in re.split(r"(?<!\\)\|", row)]
    long = [cell for cell in cells if len(cell) > LONGEST_CELL]
    assert not long, f"{name_of(page)}: more than {LONGEST_CELL} characters, move the text below the table: {long}"
