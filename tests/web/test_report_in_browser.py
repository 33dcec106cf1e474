"""Tables and charts of the report script, and the Content-Security-Policy, in a browser."""

import pytest

from coterie.web import page, tag


def table(n, **attributes):
    sizes = [(7 * i) % n for i in range(n)]
    rows = [tag("tr", tag("td", f"c{i}"), tag("td", f"{size:,} %", data_value=size)) for i, size in enumerate(sizes)]
    head = tag("thead", tag("tr", tag("th", "name"), tag("th", "size")))
    return tag("table", head, tag("tbody", rows), cls="sortable", **attributes)


def column(seen, j):
    return [row.split("\t")[j] for row in seen.page.locator("tbody tr:visible").all_inner_texts()]


def test_a_click_on_a_head_sorts_up_and_then_down(visit):
    seen = visit(page("t", table(12), scripts=("report",)))
    head = seen.page.get_by_role("button", name="size")
    head.click()
    assert column(seen, 1) == [f"{i} %" for i in range(12)]
    assert seen.page.locator("th").nth(1).get_attribute("aria-sort") == "ascending"
    head.click()
    assert column(seen, 1) == [f"{i} %" for i in reversed(range(12))]
    seen.page.get_by_role("button", name="name").click()
    assert column(seen, 0) == [f"c{i}" for i in range(12)]  # c2 before c10
    assert seen.page.get_by_role("button", name="Next").count() == 0


def test_a_long_table_has_pages_and_a_search(visit):
    seen = visit(page("t", table(70, data_page=30), scripts=("report",)))
    assert column(seen, 0) == [f"c{i}" for i in range(30)]
    seen.page.get_by_role("button", name="Next").click()
    seen.page.get_by_role("button", name="Next").click()
    assert column(seen, 0) == [f"c{i}" for i in range(60, 70)]
    assert seen.page.get_by_role("button", name="Next").is_disabled()
    seen.page.get_by_label("Search this table").fill("C6")
    assert column(seen, 0) == ["c6", *(f"c{i}" for i in range(60, 70))]
    seen.page.emulate_media(media="print")
    assert len(column(seen, 0)) == 70


def test_without_scripts_all_rows_are_there(visit):
    seen = visit(page("t", table(70, data_page=30), scripts=("report",)), scripts=False)
    assert len(column(seen, 0)) == 70


@pytest.fixture
def chart(visit):
    marks = [tag("circle", cx=20 * i + 10, cy=20, r=5, data_tip=f"K = {i}\n<b>") for i in range(3)]
    titled = tag("circle", tag("title", "told by its title"), cx=90, cy=20, r=5, data_tip=True)
    picture = tag("svg", marks, titled, viewBox="0 0 200 40", width=400, height=80, role="img")
    return visit(page("t", tag("a", "before", href="#x"), picture, scripts=("report",)))


def test_marks_show_a_tooltip_on_hover(chart):
    tip = chart.page.locator(".tip")
    assert not tip.is_visible()
    chart.page.locator("circle").nth(1).hover()
    assert tip.inner_text() == "K = 1\n<b>"
    chart.page.locator("circle").nth(3).hover()
    assert tip.inner_text() == "told by its title"
    assert chart.page.locator("title").count() == 1  # that of the page: no second tip by the browser
    chart.page.mouse.move(5, 5)
    assert not tip.is_visible()


def test_marks_show_a_tooltip_on_focus(chart):
    press, tip = chart.page.keyboard.press, chart.page.locator(".tip")
    press("Tab")
    press("Tab")
    assert tip.inner_text() == "K = 0\n<b>"
    press("ArrowRight")
    assert tip.inner_text() == "K = 1\n<b>"
    press("Escape")
    assert not tip.is_visible()
    press("Shift+Tab")
    press("Tab")
    assert tip.inner_text() == "K = 1\n<b>"  # where it was


def with_foreign(foreign, **options):
    """A page with foreign markup in its body."""
    whole = page("t", "HERE", **options)
    assert whole.count("HERE") == 1
    return whole.replace("HERE", foreign)


@pytest.mark.parametrize(
    "foreign",
    [
        "<script>document.title = 'broken'</script>",
        "<img src=data:, onerror=\"document.title = 'broken'\">",
        "<p style='position: fixed' id=styled>text</p>",
    ],
)
def test_injected_scripts_do_not_run(visit, foreign):
    """Even if escaping failed, the Content-Security-Policy blocks scripts."""
    seen = visit(with_foreign(foreign, scripts=("report",)))
    seen.settle()
    assert seen.page.title() == "t"
    assert seen.page.locator("#styled:visible").count() == 0 or (
        seen.page.locator("#styled").evaluate("p => getComputedStyle(p).position") == "static"
    )
    assert any("Content Security Policy" in error for error in seen.errors)
    seen.forgiven = True


def test_nothing_is_loaded_from_elsewhere(visit):
    address = "https://example.invalid/x.png"
    seen = visit(with_foreign(f'<img src="{address}">'))
    assert any("Content Security Policy" in error for error in seen.errors)
    seen.forgiven = True
    assert seen.outside in ([], [address])  # what was not sent: Chromium may tell of it all the same
    seen.outside.clear()
