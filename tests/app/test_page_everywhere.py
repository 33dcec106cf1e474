"""The page on phones, in the dark, by keys alone, with hostile names, in two browsers, and without its server."""

import io

import numpy as np
import polars as pl
import pytest

from .page_visits import OVERFLOW, PHONE, WIDE

HOSTILE = (
    "<img src=x onerror=window.broken=1>",
    "</script><script>window.broken=1</script>",
    "\"quoted' & <b>bold</b>",
)
STEPS = {
    "Data": ".column", "Fit": ".player canvas", "Choose K": "[type=submit]", "Clusters": ".data-rows",
    "Compare": ".matched", "Export": ".downloads",
}  # fmt: skip
UNNAMED = """() => [...document.querySelectorAll('button, select, input, textarea, [role]')]
    .filter((e) => e.matches('button, select, input, textarea, [role=slider], [role=application]'))
    .filter((e) => e.offsetParent !== null || e.closest('svg'))
    .filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length || e.title))
    .map((e) => e.outerHTML.slice(0, 120))"""


@pytest.fixture
def runs(client):
    """Penguins with two runs."""
    workspace = client.workspace()
    if workspace["table"] is None or workspace["table"]["name"] != "penguins.csv" or len(workspace["runs"]) < 2:
        client.post("/api/open", {"demo": "penguins"})
        for k in (2, 3):
            client.fit(algorithm="kmeans", k=k)


@pytest.mark.parametrize(("size", "dark"), [(WIDE, True), (PHONE, False)])
def test_every_step_fits_into_the_window_and_its_controls_have_names(runs, open_page, size, dark):
    seen = open_page("data", size, dark)
    for step, part in STEPS.items():
        seen.go(step)
        seen.wait(part)
        seen.settle()
        assert seen.page.evaluate(OVERFLOW) <= 0, step
        assert seen.page.evaluate(UNNAMED) == [], step


def test_all_of_it_is_done_by_keys(client, open_page):
    client.post("/api/open", {"demo": "moons"})
    seen = open_page("data")

    def reach(selector, limit=60):
        for _ in range(limit):
            if seen.page.evaluate("(s) => document.activeElement.matches(s)", selector):
                return
            seen.page.keyboard.press("Tab")
        raise AssertionError(f"{selector} is not reached by the tab key")

    seen.page.locator("body").press("Tab")
    reach("nav a[href='#/fit']")
    seen.page.keyboard.press("Enter")
    seen.wait("nav a[aria-current][href='#/fit']")
    reach("[name=k-mode]")
    seen.page.keyboard.press("ArrowRight")
    reach(".slider input")
    seen.page.keyboard.press("ArrowRight")
    chosen = seen.text(".slider output")
    reach("button[type=submit]")
    seen.page.keyboard.press("Enter")
    seen.wait(f".outcome:has-text('K = {chosen}')")
    reach(".outcome .button", 200)
    seen.page.keyboard.press("Enter")
    seen.wait(".cluster-list button")
    reach(".cluster-list button")
    seen.page.keyboard.press("ArrowDown")
    seen.page.keyboard.press("Enter")
    seen.wait(".selection-bar")
    reach(".map-host .stage", 200)
    before = seen.pixels(".map-host canvas")
    seen.page.keyboard.press("+")
    assert seen.pixels(".map-host canvas") != before
    seen.page.keyboard.press("Enter")  # selects the rows in view
    seen.settle()
    reach("[role=tab][aria-selected=true]", 200)
    seen.page.keyboard.press("ArrowRight")
    seen.page.keyboard.press("Enter")
    seen.wait("[role=tab][aria-selected=true]:has-text('Profiles')")


def test_hostile_names_and_values_stay_text(client, open_page):
    lines = [",".join(f'"{name.replace(chr(34), chr(34) * 2)}"' for name in (*HOSTILE, "kind"))]
    lines += [f'{i % 7},{i * i % 11},{i % 3},"{HOSTILE[i % 2]}"' for i in range(60)]
    client.post("/api/paste", {"text": "\n".join(lines), "name": f"{HOSTILE[0]}.csv"})
    client.fit(algorithm="kmeans", k=2)
    run = client.fit(algorithm="kmeans", k=3)["id"]
    client.post(f"/api/runs/{run}/edit", {"rename": {"0": HOSTILE[1]}})
    seen = open_page("clusters?map=columns&cluster=0")
    for tab in ("Cluster", "Profiles", "Silhouettes", "Rows"):
        seen.page.get_by_role("tab", name=tab).first.click()
        seen.wait("#below-panel :is(.rule, .fragment figure, .data-rows)")
    for step, part in {**STEPS, "Clusters": ".data-rows"}.items():
        seen.go(step)
        seen.wait(part)
        assert seen.page.evaluate("window.broken") is None, step
        assert seen.page.locator("main img, main b, #app script").count() == 0, step
    seen.go("Clusters")
    assert HOSTILE[1] in seen.texts(".cluster-list .name")


def test_two_browsers_see_the_same_workspace(client, open_page):
    client.post("/api/open", {"demo": "moons"})
    left, right = open_page("fit"), open_page("fit")
    left.page.get_by_text("set K", exact=True).click()
    left.button("Fit").click()
    for seen in (left, right):
        seen.wait(".outcome")
    right.go("Clusters")
    right.wait(".cluster-list button")
    right.page.locator(".cluster-list button").first.click()
    right.page.get_by_label("Name", exact=True).fill("upper moon")
    right.button("Rename").click()
    left.go("Clusters")
    left.wait(".cluster-list .name:has-text('upper moon')")


def test_a_banner_says_that_the_server_has_stopped_and_what_to_do(open_page, runs, server):
    seen = open_page("data")
    seen.forgiven = True
    seen.page.route("**/api/**", lambda route: route.abort())
    seen.page.evaluate("document.querySelector('.tools')")
    seen.page.reload()
    assert "coterie app" in seen.wait(".banner").inner_text()
    seen.page.unroute("**/api/**")
    seen.button("Try again").click()
    seen.until("!document.querySelector('.banner')")
    seen.wait(".page > :not(.empty)")


def test_many_rows_are_one_pixel_each_and_denser_pixels_are_more_opaque(client, open_page):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120_000, 2)) @ np.array([[3.0, 1.0], [0.0, 1.0]])
    file = io.BytesIO()
    pl.DataFrame({"x": X[:, 0], "y": X[:, 1]}).write_parquet(file)
    client.post("/api/upload?name=many.parquet", file.getvalue())
    seen = open_page("fit", size=PHONE)
    seen.wait(".map-host canvas")
    seen.wait(".map-note")
    seen.settle()
    width, height, opacity = seen.page.locator(".map-host canvas").evaluate(
        "c => { const { data } = c.getContext('2d').getImageData(0, 0, c.width, c.height);"
        " return [c.width, c.height, [...new Uint32Array(data.buffer)].map((pixel) => pixel >>> 24)]; }"
    )
    _, places = client.get("/api/map?kind=axes").blob
    x, y = (places[name].astype(np.float64) for name in "xy")
    inside = (x > 0) & (x < 65535) & (y > 0) & (y < 65535)
    column, line = np.floor(width / 65535 * x[inside]), np.floor(height - height / 65535 * y[inside])
    counts = np.bincount((line * width + column).astype(np.int64), minlength=width * height)
    opacity = np.array(opacity)
    assert ((opacity > 0) == (counts > 0)).all()
    assert (np.diff(opacity[np.argsort(counts)][np.sort(counts) > 0]) >= 0).all()
