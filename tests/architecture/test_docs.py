"""The pages: every public name is in the API, every page in the site, and links and paths lead somewhere."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PACKAGES = (
    "coterie",
    "coterie.datasets",
    "coterie.diagnosis",
    "coterie.distances",
    "coterie.explanation",
    "coterie.families",
    "coterie.persistence",
    "coterie.hierarchy",
    "coterie.kmeans",
    "coterie.medoids",
    "coterie.metrics",
    "coterie.mixture",
    "coterie.plots",
    "coterie.selection",
    "coterie.traces",
)
PAGES = [path for path in DOCS.rglob("*.md") if not {"_build", "auto"} & set(path.relative_to(DOCS).parts)]
TEXTS = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")


def entries() -> set[str]:
    """Names that API pages list, each with its module."""
    found = set()
    for page in (DOCS / "api").glob("*.rst"):
        module, listing = "", False
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.removeprefix(".. currentmodule:: ")
            listing = line.startswith(".. autosummary::") or (listing and (not line or line.startswith("   ")))
            if listing and re.fullmatch(r"   \w+", line):
                found.add(f"{module}.{line.strip()}")
    return found


def looked_up(name: str):
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


def test_every_entry_of_the_api_is_there():
    assert all(looked_up(name) is not None for name in entries())


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_api(package):
    listed = entries()
    shown = {id(looked_up(name)) for name in listed}
    public = [name for name in import_module(package).__all__ if not name.startswith("__")]
    missing = [n for n in public if f"{package}.{n}" not in listed and id(looked_up(f"{package}.{n}")) not in shown]
    assert not missing, f"add to docs/api: {', '.join(missing)} of {package}"


def in_toctrees(page: Path) -> list[Path]:
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line and not line.startswith(":")]
    return [(page.parent / f"{line}.md").resolve() for line in lines]


def test_every_page_is_in_the_site():
    reached = {path for page in PAGES for path in in_toctrees(page)} | {DOCS / "index.md"}
    assert {path.relative_to(DOCS) for path in PAGES if path not in reached} == set()


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "changelog.md"], ids=lambda path: path.stem)
def test_a_page_opens_with_what_it_is_for(page):
    title, empty, opening = page.read_text(encoding="utf-8").splitlines()[:3]
    assert title.startswith("# ")
    assert not empty
    assert re.match(r"[A-Z`]", opening), "the first line below the title is a sentence"


def method_pages() -> list[Path]:
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    lines = re.search(r"^:caption: Cluster\n:hidden:\n\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1].split()
    return [DOCS / f"{line}.md" for line in lines]


@pytest.mark.parametrize("page", method_pages(), ids=lambda path: path.stem)
def test_a_method_page_shows_a_picture_and_an_example_first(page):
    text = page.read_text(encoding="utf-8")
    opening = text.partition("\n## ")[0]
    picture, example = (re.search(pattern, opening) for pattern in (r"```{(?:figure|picture)}", "```python\n>>> "))
    assert picture.start() < example.start()
    assert "$$" not in opening, "formulas come last"
    assert "When to use" in text
    assert "When not" in text


@pytest.mark.parametrize("page", TEXTS + PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target for target, _ in LINK.findall(text) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_files_and_names_in_the_text_exist(name):
    """`core/loop.py` and `fuzz/` are paths, `core.loop.fit` and `Lloyd.init` are names of the library."""
    package = ROOT / "src" / "coterie"
    folders = {path.name for path in package.iterdir() if path.is_dir()}
    literals = set(re.findall(r"`([\w./<>-]+?)(?:\([^`]*\))?`", (ROOT / name).read_text(encoding="utf-8")))
    paths = [each for each in literals if "/" in each and "<" not in each]
    assert len(paths) > 5
    assert [path for path in paths if not (ROOT / path).exists() and not (package / path).exists()] == []
    dotted = [each for each in literals if re.fullmatch(r"\w+(\.\w+)+", each) and each.split(".")[0] in folders]
    assert [each for each in dotted if not defines(package, *each.rpartition(".")[::2])] == []


def defines(package: Path, module: str, name: str) -> bool:
    """Whether the module or package, or a module in it, defines or imports the name."""
    home = package / module.replace(".", "/")
    files = [home.with_suffix(".py")] if home.with_suffix(".py").exists() else [*home.glob("*.py")]
    return any(re.search(rf"\b(?:def|class|import|as) .*\b{name}\b", path.read_text("utf-8")) for path in files)
