"""Pages of reports in a browser: nothing is asked for, nothing overlaps, all can be reached and printed."""

import re
from functools import cache

import pytest

from coterie.jobs import ChooseJob, CompareJob, Job, ReportJob
from coterie.report.html import as_html
from report.pages import HOSTILE, blobs, keep, mixed, run

# Texts of a chart that lie on each other: [one, other], by the boxes that the browser gives them.
OVERLAPS = """() => {
    const found = [];
    for (const chart of document.querySelectorAll("svg.chart:not(.still)")) {
        if (chart.getBoundingClientRect().width === 0) continue;
        const texts = [...chart.querySelectorAll("text")].filter(each => !each.closest(".number"));
        const boxes = texts.map(each => each.getBBox());
        for (let i = 0; i < texts.length; i++) {
            if (texts[i].hasAttribute("transform")) continue;
            for (let j = 0; j < i; j++) {
                if (texts[j].hasAttribute("transform")) continue;
                const a = boxes[i], b = boxes[j];
                const wide = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
                const high = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
                if (wide > 1.5 && high > 3.5) found.push([texts[i].textContent, texts[j].textContent]);
            }
        }
    }
    return found;
}"""
# Texts that stick out of their chart, and are cut off.
CUT = """() => {
    const found = [];
    for (const chart of document.querySelectorAll("svg.chart:not(.still)")) {
        const whole = chart.getBoundingClientRect();
        if (whole.width === 0) continue;
        for (const text of chart.querySelectorAll("text")) {
            const box = text.getBoundingClientRect();
            if (box.left < whole.left - 1 || box.right > whole.right + 1) found.push(text.textContent);
        }
    }
    return found;
}"""
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages by name, made when they are first asked for."""
    folder = tmp_path_factory.mktemp("reports")

    def made(name):
        place = folder / name.replace(" ", "_")
        place.mkdir()
        return {
            "three clusters": lambda: Job(
                blobs(place), k=(1, 5), budget="quick", report=place / "r.html", animate=place / "p.html"
            ),
            "a choice": lambda: ChooseJob(
                blobs(place), k=(1, 5), criteria=("gap", "bic", "prediction_strength", "dunn"), report=place / "r.html"
            ),
            "forty clusters": lambda: Job(
                blobs(place, 400, 4, 40, 0.1), k=40, options={"n_init": 1}, report=place / "r.html"
            ),
            "one column": lambda: Job(blobs(place, d=1), k=3, report=place / "r.html"),
            "several kinds": lambda: Job(mixed(place), method="mixture", k=3, report=place / "r.html"),
            "a tree": lambda: Job(blobs(place), method="ward", k=4, report=place / "r.html"),
            "hostile text": lambda: ReportJob(
                blobs(place, label=[HOSTILE[i % 5] for i in range(300)]), labels="label", output=place / "r.html"
            ),
            "a comparison": lambda: CompareJob(
                blobs(place), methods=("kmeans", "ward", "gmm"), k=3, report=place / "r.html"
            ),
        }[name]()

    @cache
    def report(name):
        with pytest.MonkeyPatch.context() as patch:
            keep(patch)
            return run(made(name))[1]

    return cache(lambda name, static=False: as_html(report(name), static=static))


NAMES = (
    "three clusters", "a choice", "forty clusters", "one column", "several kinds", "a tree", "hostile text",
    "a comparison",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_no_text_lies_on_another_or_is_cut_off(visit, pages, name):
    seen = visit(pages(name))
    assert seen.page.evaluate(OVERLAPS) == []
    assert seen.page.evaluate(CUT) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_page_fits_a_phone(visit, pages, name):
    seen = visit(pages(name), width=400, height=800)
    assert seen.page.evaluate(WIDER) <= 0


def test_the_map_and_the_player_are_drawn(visit, pages):
    seen = visit(pages("three clusters"), calm=True)
    seen.settle()
    assert seen.page.locator("canvas").count() == 2
    assert seen.colours(".map canvas") > 3
    assert seen.colours(".player canvas") > 3


def test_without_scripts_pictures_stand_in_for_them(visit, pages):
    for static, scripts in ((False, False), (True, True)):
        seen = visit(pages("three clusters", static), scripts=scripts)
        assert seen.page.locator("canvas").count() == 0
        assert seen.page.locator(".map svg.still image").is_visible()
        assert seen.page.locator(".player svg.still image").is_visible()


def test_all_that_moves_can_be_reached_by_keys(visit, pages):
    seen = visit(pages("three clusters"), calm=True)
    reached = set()
    for _ in range(120):
        seen.page.keyboard.press("Tab")
        where = seen.page.evaluate(
            "() => { const at = document.activeElement; const own = at.closest('section,nav,header');"
            " return (own && (own.id || own.tagName)) + ' ' + at.tagName.toLowerCase(); }"
        )
        reached.add(where)
    for wanted in ("NAV a", "clusters button", "place select", "place button", "number summary", "reproduce pre"):
        assert wanted in reached, (wanted, sorted(reached))


def test_the_page_prints_on_a_few_sheets(visit, pages):
    seen = visit(pages("three clusters"))
    printed = seen.page.pdf(prefer_css_page_size=True)
    sheets = len(re.findall(rb"/Type\s*/Page\b", printed))
    assert 3 <= sheets <= 12


def test_a_dark_page_has_readable_cells(visit, pages):
    """Text on cells has a contrast of 4.5 at least, light and dark."""
    contrast = """() => {
        const light = rgb => { const [r, g, b] = rgb.match(/\\d+/g).map(v => { v /= 255;
            return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        let least = 99;
        for (const cell of document.querySelectorAll(".cell")) {
            const text = cell.querySelector("text"), box = cell.querySelector("rect");
            if (!text || !text.textContent) continue;
            const a = light(getComputedStyle(text).fill), b = light(getComputedStyle(box).fill);
            least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
        }
        return least;
    }"""
    for dark in (False, True):
        seen = visit(pages("three clusters"), dark=dark)
        assert 4.5 <= seen.page.evaluate(contrast) < 99
