"""Pages of reports in a browser: no network requests, nothing overlaps, all can be reached and printed."""

import re
from functools import cache
from io import BytesIO

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
# Heights of letters of charts in pixels of the screen, the smallest first: [height, text].
LETTERS = """() => {
    const found = [];
    for (const text of document.querySelectorAll("svg.chart text")) {
        const style = getComputedStyle(text), seen = text.getScreenCTM();
        if (text.textContent && style.display !== "none" && text.getBoundingClientRect().width > 0)
            found.push([Math.hypot(seen.a, seen.b) * parseFloat(style.fontSize), text.textContent]);
    }
    return found.sort((a, b) => a[0] - b[0]);
}"""
# What is wider than its box, but has no shade that says so: the beginning of its text.
UNTOLD = """() => [...document.querySelectorAll("main *")].filter(each =>
    ["auto", "scroll"].includes(getComputedStyle(each).overflowX) && each.clientWidth > 0 && each.tagName !== "PRE"
    && each.scrollWidth > each.clientWidth + 1
    && !(each.firstElementChild.matches(".whole")
         && getComputedStyle(each.firstElementChild, "::after").position === "sticky")
).map(each => each.textContent.slice(0, 40))"""
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages by name, written at the first request."""
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
            "several kinds": lambda: Job(mixed(place), algorithm="mixture", k=3, report=place / "r.html"),
            "a tree": lambda: Job(blobs(place), algorithm="ward", k=4, report=place / "r.html"),
            "hostile text": lambda: ReportJob(
                blobs(place, label=[HOSTILE[i % 5] for i in range(300)]), labels="label", output=place / "r.html"
            ),
            "a comparison": lambda: CompareJob(
                blobs(place), algorithms=("kmeans", "ward", "gmm"), k=3, report=place / "r.html"
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
def test_pages_can_be_read_at_any_width(visit, pages, name):
    """No text lies on another or is cut off, letters are large enough, and a phone need not scroll sideways."""
    seen = visit(pages(name))

    def resize(width):
        seen.page.set_viewport_size({"width": width, "height": 800})
        seen.settle()

    assert seen.page.evaluate(OVERLAPS) == []
    assert seen.page.evaluate(CUT) == []
    for width in (768, 1280) if name in ("three clusters", "forty clusters", "a comparison") else ():
        resize(width)
        assert seen.page.evaluate(LETTERS)[0][0] > 9.0
        assert seen.page.evaluate(UNTOLD) == []
    for width in (400, 375):
        resize(width)
        assert seen.page.evaluate(WIDER) <= 0
    assert seen.page.evaluate(LETTERS)[0][0] > 9.5
    assert seen.page.evaluate(OVERLAPS) == []
    assert seen.page.evaluate(CUT) == []
    assert seen.page.evaluate(UNTOLD) == []


def test_what_sets_a_cluster_apart_is_in_sight_on_a_phone(visit, pages):
    """Below its name, and within the screen; the numbers have their names beside them."""
    seen = visit(pages("three clusters"), width=375, height=800)
    for row in seen.page.locator(".clusters tbody tr").all():
        name, apart = row.locator(".name").bounding_box(), row.locator(".apart").bounding_box()
        assert apart["x"] >= 0
        assert apart["x"] + apart["width"] <= 375
        assert 0 < apart["y"] - name["y"] < 40
    box = seen.page.locator("#clusters .scroll")
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    rows = seen.page.locator(".clusters td.rows").first
    assert rows.evaluate("cell => getComputedStyle(cell, '::after').content") == '" rows"'


def test_clusters_are_sorted_on_a_phone(visit, pages):
    seen = visit(pages("three clusters"), width=375, height=800)
    sizes = seen.page.locator(".clusters td.rows")
    seen.page.get_by_role("button", name="rows", exact=True).click()
    found = [int(text) for text in sizes.all_inner_texts()]
    assert found == sorted(found)


def test_the_shade_of_what_is_wider_vanishes_at_its_end(visit, pages):
    """It lies over the right end of what is seen, and under its cover where there is no more to scroll to."""
    images = pytest.importorskip("PIL.Image")
    seen = visit(pages("forty clusters"), width=375, height=800)
    box = seen.page.locator("#hierarchy .slim .scroll")
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    colours = []
    for end in (False, True):
        box.evaluate("(box, end) => { box.scrollLeft = end ? box.scrollWidth : 0; }", end)
        seen.settle()
        place = box.bounding_box()
        clip = {"x": place["x"] + place["width"] - 15, "y": place["y"] + 60, "width": 14, "height": 60}
        picture = images.open(BytesIO(seen.page.screenshot(clip=clip, full_page=True)))
        colours.append(len(picture.getcolors()))
    assert colours[0] > 10
    assert colours[1] == 1  # that of paper


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


def test_tables_and_their_notes_stay_together_on_paper(visit, pages):
    """The table fits a sheet of A4, and no rule keeps its note with what comes after it."""
    seen = visit(pages("three clusters"), width=695)  # of 184 mm between the margins
    seen.page.emulate_media(media="print")
    box = seen.page.locator("#clusters .boxed")
    assert box.evaluate("box => box.querySelector('table').offsetWidth <= box.clientWidth")
    note = box.locator("p").evaluate("note => [getComputedStyle(note).breakBefore, getComputedStyle(note).breakAfter]")
    assert note == ["avoid", "auto"]
    heights = seen.page.evaluate(LETTERS)
    assert heights[0][0] > 7.5


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
