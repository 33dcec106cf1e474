"""The player, in a browser."""

import pytest

from coterie.web import embedded, page, player, player_page, tag


@pytest.fixture
def still_at(visit, trace):
    """The page with reduced motion preferred: it stays at the first frame."""
    return visit(player_page(trace), calm=True)


def where(seen):
    return seen.page.locator(".where").inner_text()


def caption(seen):
    return seen.page.locator(".caption").inner_text()


def test_points_are_drawn_and_text_of_names_stays_text(still_at, trace):
    assert still_at.colours() > 3
    assert still_at.page.evaluate("window.broken") is None
    assert still_at.page.locator(".sizes td.name").first.inner_text() == trace["names"][0]
    assert caption(still_at) == trace["frames"][0]["caption"]


def test_the_player_waits_if_reduced_motion_is_preferred(still_at):
    still_at.page.wait_for_timeout(700)
    assert where(still_at) == "1 / 8"


def test_it_plays_to_the_end_and_stops(visit, trace):
    seen = visit(player_page(trace))
    seen.page.get_by_label("Steps a second").select_option("30")
    seen.until("document.querySelector('.where').textContent === '8 / 8'")
    seen.page.get_by_role("button", name="Play", exact=True).wait_for()
    seen.page.get_by_role("button", name="Play", exact=True).click()
    assert seen.page.get_by_role("button", name="Pause").count() == 1


def test_keys_step_play_and_go_to_the_ends(still_at, trace):
    press = still_at.page.keyboard.press
    first = still_at.pixels()
    for key, place in (
        ("ArrowRight", 2),
        ("ArrowRight", 3),
        ("ArrowLeft", 2),
        ("End", 8),
        ("ArrowRight", 8),
        ("Home", 1),
    ):
        press(key)
        assert where(still_at) == f"{place} / 8"
        assert caption(still_at) == trace["frames"][place - 1]["caption"]
    assert still_at.pixels() == first
    press(" ")
    assert still_at.page.get_by_role("button", name="Pause").count() == 1
    press(" ")
    assert still_at.page.get_by_role("button", name="Play", exact=True).count() == 1


def test_a_frame_without_labels_has_those_of_the_frame_before(still_at):
    press, shades = still_at.page.keyboard.press, []
    for _ in range(3):
        shades.append(still_at.pixels())
        press("ArrowRight")
    assert shades[0] != shades[1] == shades[2]


def test_scrubber_objective_and_sizes_follow(still_at, trace):
    scrub, last = still_at.page.get_by_label("Step", exact=True), trace["frames"][-1]
    scrub.focus()
    still_at.page.keyboard.press("End")
    assert where(still_at) == "8 / 8"
    shown = still_at.page.locator(".side .value").inner_text()
    assert float(shown.replace(",", "")) == pytest.approx(last["objective"], rel=1e-5)
    counts = still_at.page.locator(".sizes td.num").all_inner_texts()
    assert [int(count) for count in counts] == last["sizes"]
    assert still_at.page.locator(".overlay .trail").count() == 3
    assert "showing 400 of 1,000 rows" in still_at.page.locator(".side").inner_text()


def test_every_button_has_a_name_and_can_be_reached(still_at):
    for button in still_at.page.locator(".transport button").all():
        assert button.get_attribute("aria-label")
    reached = set()
    for _ in range(12):
        still_at.page.keyboard.press("Tab")
        reached.add(still_at.page.evaluate("document.activeElement.getAttribute('aria-label')"))
    assert {"First step", "Step back", "Play", "Step on", "Last step", "Step", "Steps a second"} <= reached


def test_soft_clusters_have_mixed_colours_ellipses_and_a_bound(visit, soft_trace):
    seen = visit(player_page(soft_trace), calm=True, dark=True, width=400)
    grey = seen.colours()
    seen.page.keyboard.press("ArrowRight")
    assert seen.colours() > grey
    assert seen.page.locator(".overlay .ellipse").count() == 2
    assert seen.page.locator(".curve .bound").get_attribute("d").count("L") == 7
    wide = seen.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 400


def test_one_column_has_one_axis(visit, trace):
    seen = visit(player_page({**trace, "axes": ["age"]}), calm=True)
    assert seen.page.locator(".overlay .axis-text").all_text_contents() == ["age"]
    assert seen.page.locator(".overlay .axis").count() == 1


def test_within_a_notebook_it_plays_in_a_sandbox(visit, trace):
    seen = visit(f"<!doctype html><link rel=icon href=data:,>{embedded(player_page(trace))}")
    frame = seen.page.frame_locator("iframe")
    frame.locator(".where").wait_for()
    frame.get_by_role("button", name="Last step").click()
    assert frame.locator(".where").inner_text() == "8 / 8"


def test_beside_other_figures_it_waits_and_leaves_keys_to_them(visit, trace):
    html = page("Two", tag("figure", "another"), player(trace, "it"), scripts=("player",), data={"it": trace})
    seen = visit(html)
    seen.page.wait_for_timeout(700)
    seen.page.keyboard.press("ArrowRight")
    assert where(seen) == "1 / 8"
    seen.page.get_by_role("button", name="Step on").focus()
    seen.page.keyboard.press("ArrowRight")
    assert where(seen) == "2 / 8"


def test_without_scripts_there_is_the_last_picture_and_all_steps(visit, trace):
    seen = visit(player_page(trace), scripts=False)
    assert seen.page.locator("svg.still").is_visible()
    seen.page.locator("summary").click()
    assert seen.page.locator(".steps tbody tr").count() == 8
    assert seen.page.locator(".steps tbody tr").last.is_visible()


def test_a_player_is_drawn_when_its_section_is_opened(visit, trace):
    folded = tag("details", tag("summary", "Fit"), player(trace, "it"))
    seen = visit(page("Folded", folded, scripts=("player",), data={"it": trace}), calm=True)
    seen.page.locator("summary").first.click()
    seen.settle()
    assert seen.colours() > 1


def test_in_print_the_picture_takes_the_place_of_the_player(still_at):
    assert not still_at.page.locator("svg.still").is_visible()
    still_at.page.emulate_media(media="print")
    assert still_at.page.locator("svg.still").is_visible()
    assert not still_at.page.locator("canvas").is_visible()
