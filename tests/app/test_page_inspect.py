"""The page chooses K, inspects clusters, compares runs and exports them, in a browser."""

import csv
import io
import json

import numpy as np
import pytest

from .page_visits import PHONE, WIDE, both_sizes


@pytest.fixture(scope="module")
def fitted(client):
    """Penguins with runs of K-means and of Ward's linkage; the current one is K-means with K = 3."""
    client.post("/api/open", {"demo": "penguins"})
    client.post("/api/columns", {"year": {"role": "ignored"}})
    client.fit(algorithm="ward", k=3)
    return client.fit(algorithm="kmeans", k=3)["id"]


@pytest.fixture(params=[WIDE, PHONE], ids=["wide", "phone"])
def clusters(client, fitted, open_page, request):
    client.post("/api/current", {"run": fitted})
    seen = open_page("clusters", request.param)
    for part in (".side-panel .heading", ".histogram svg path", ".data-rows tbody tr"):  # nothing moves under a click
        seen.wait(part)
    return seen


def selected(seen):
    text = seen.text(".selection-bar strong")
    return int(text.split()[0].replace(",", ""))


def test_the_map_shows_principal_axes_two_columns_and_neighbours(clusters):
    assert clusters.colours(".map-host canvas") > 3
    assert clusters.page.locator(".map-host .number").count() == 3
    choice = clusters.page.get_by_label("Map", exact=True)
    choice.select_option("columns")
    clusters.until("document.querySelector('.map-host .axis-text')?.textContent === 'bill_length_mm'")
    clusters.page.get_by_label("Horizontal axis").select_option("body_mass_g")
    clusters.until("document.querySelector('.map-host .axis-text')?.textContent === 'body_mass_g'")
    assert "map=columns" in clusters.page.url
    choice.select_option("neighbours")
    clusters.wait(".map-note")
    clusters.until("document.querySelector('.map-host .rim')")
    assert clusters.colours(".map-host canvas") > 3
    clusters.page.reload()
    clusters.until("document.querySelector('.map-host .rim')")


def test_a_lasso_selects_in_map_table_histograms_and_cluster_list(clusters):
    before = clusters.page.locator(".histogram .selected").nth(1).get_attribute("d")
    picture = clusters.pixels(".map-host canvas")
    clusters.button("Select rows with a lasso").click()
    clusters.drag(".map-host .stage", (0.1, 0.05), (0.55, 0.05), (0.55, 0.85), (0.1, 0.85), (0.1, 0.3))
    count = selected(clusters)
    assert 0 < count < 344
    clusters.until(f"document.querySelector('.pager').textContent.includes('{count} rows')")
    assert clusters.page.locator(".histogram .selected").nth(1).get_attribute("d") != before
    assert clusters.pixels(".map-host canvas") != picture
    widths = [float(rect.get_attribute("width")) for rect in clusters.page.locator(".size rect").all()]
    assert any(part < whole for whole, part in zip(widths[::2], widths[1::2], strict=True))
    clusters.button("Select all rows").click()
    clusters.until("document.querySelector('.pager').textContent.includes('344 rows')")


def test_ranges_of_columns_and_categories_select_the_rows_that_meet_all_of_them(clusters, client):
    low = clusters.page.get_by_label("Lowest body_mass_g")
    low.focus()
    for _ in range(20):
        clusters.page.keyboard.press("ArrowRight")
    clusters.settle()
    header, codes = client.get("/api/values?columns=body_mass_g&columns=species").blob
    is_heavy = (codes["c0"] >= 20) & (codes["c0"] < 64)
    is_gentoo = codes["c1"] == header["columns"][1]["labels"].index("Gentoo")
    assert selected(clusters) == is_heavy.sum()
    clusters.page.locator(".category", has_text="Gentoo").click()
    both = int((is_heavy & is_gentoo).sum())
    assert 0 < both < is_heavy.sum()
    assert selected(clusters) == both
    clusters.until(f"document.querySelector('.pager').textContent.includes('{both} rows')")
    columns = client.get("/api/rows").json["columns"]
    cells = clusters.page.locator(f".data-rows tbody tr td:nth-child({5 + columns.index('species')})")
    assert set(cells.all_inner_texts()) == {"Gentoo"}


def test_enter_on_the_map_selects_all_rows_in_view_and_escape_none(clusters, client):
    _, places = client.get("/api/map?kind=axes").blob
    inside = (places["x"] > 0) & (places["x"] < 65535) & (places["y"] > 0) & (places["y"] < 65535)
    clusters.page.locator(".map-host .stage").focus()
    clusters.page.keyboard.press("Enter")
    assert selected(clusters) == inside.sum() == 342
    clusters.page.keyboard.press("Escape")
    assert clusters.page.locator(".selection-bar").count() == 0


def test_a_cluster_is_inspected_renamed_and_recoloured_and_undo_restores_it(clusters):
    clusters.page.locator(".cluster-list button").first.click()
    size = int(clusters.page.locator(".cluster-list .num").first.inner_text())
    assert selected(clusters) == size
    clusters.wait(".cluster-card .rule")
    assert clusters.page.locator(".shape").count() >= 5
    assert clusters.texts(".cluster-card h3") == ["Typical rows", "Untypical rows"]
    clusters.page.get_by_label("Name", exact=True).fill("large <b>birds</b>")
    clusters.button("Rename").click()
    clusters.wait(".cluster-list .name:has-text('large <b>birds</b>')")
    colour = clusters.page.get_by_label("Colour", exact=True)
    colour.evaluate("(e) => { e.value = '#ff0000'; e.dispatchEvent(new Event('change', { bubbles: true })); }")
    clusters.wait(".cluster-list rect[fill='#ff0000']")
    for _ in range(2):
        clusters.button("Undo", exact=False).click()
        clusters.settle()
    clusters.until("document.querySelector('.cluster-list .name').textContent === '0'")


def test_two_clusters_are_merged_into_a_new_run(clusters, client, fitted):
    for j in (0, 2):
        clusters.page.get_by_label(f"Mark cluster {j} to merge it").check()
    clusters.button("Merge 2").click()
    clusters.until("document.querySelectorAll('.cluster-list li').length === 2")
    assert client.workspace()["current"] != fitted
    assert client.workspace()["runs"][-1]["parent"] == fitted


def test_hover_shows_the_row_and_a_click_selects_its_cluster(clusters):
    box = clusters.box(".map-host .number rect")
    clusters.page.mouse.move(box["x"] + box["width"] / 2 + 14, box["y"] + box["height"] / 2)
    clusters.until("document.querySelector('.row-tip')")
    clusters.wait(".row-tip dd")
    assert "cluster" in clusters.text(".row-tip .head")
    if clusters.page.viewport_size["width"] == PHONE[0]:
        clusters.page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    else:
        clusters.page.mouse.down()
        clusters.page.mouse.up()
    clusters.wait(".selection-bar")


def test_the_table_is_sorted_and_searched_by_the_server(clusters):
    clusters.page.get_by_label("Search in all columns").fill("Dream")
    clusters.until("/^1–50 of 124 rows/.test(document.querySelector('.pager').textContent)")
    clusters.page.locator("th", has_text="body_mass_g").get_by_role("button").click()
    clusters.wait("th[aria-sort=ascending]:has-text('body_mass_g')")
    clusters.until("document.querySelector('.data-rows tbody').textContent.includes('2700')")
    clusters.button("Next").click()
    clusters.until("/^51–100/.test(document.querySelector('.pager').textContent)")


def test_profiles_silhouettes_and_reliability_are_those_of_the_report(clusters):
    for name, expected in (("Profiles", "Distributions"), ("Silhouettes", "mean"), ("Reliability", "silhouette")):
        clusters.page.get_by_role("tab", name=name).click()
        clusters.wait(f"#below-panel .fragment:has-text('{expected}')", 60)
    assert clusters.page.locator(".fragment script, .fragment [style], .fragment [onclick]").count() == 0


def test_the_cut_of_a_dendrogram_is_moved_by_keys_and_by_the_pointer(clusters, client):
    tree = next(run["id"] for run in client.workspace()["runs"] if run["tree"])
    client.post("/api/current", {"run": tree})
    clusters.page.get_by_role("tab", name="Dendrogram").click()
    cut = clusters.page.locator("[role=slider]")
    cut.wait_for(state="attached")
    assert cut.get_attribute("aria-valuetext") == "3 clusters"
    cut.focus()
    clusters.page.keyboard.press("ArrowDown")
    clusters.page.keyboard.press("ArrowDown")
    clusters.page.keyboard.press("Enter")
    clusters.until("document.querySelectorAll('.cluster-list li').length === 5")
    clusters.until("document.querySelector('[role=slider]')?.getAttribute('aria-valuetext') === '5 clusters'")
    clusters.drag("svg.tree", (0.5, 0.5), (0.5, 0.2))
    clusters.until("document.querySelectorAll('.cluster-list li').length === 2")


@both_sizes
def test_criteria_and_votes_appear_and_a_click_opens_the_clusters_of_a_k(client, fitted, open_page, size):
    client.post("/api/current", {"run": fitted})
    seen = open_page("choose", size)
    seen.page.get_by_label("to", exact=True).fill("5")
    seen.page.get_by_label("Effort").select_option("quick")
    with seen.page.expect_response(lambda answer: answer.url.split("?")[0].endswith("/api/runs")) as started:
        seen.button("Compare").click()
    client.wait(started.value.json()["id"])  # until then, the page may show an earlier comparison
    seen.until("!document.querySelector('.running-card')")
    seen.wait(".verdict", 60)
    assert seen.page.locator(".criterion").count() >= 4
    seen.page.locator(".vote", has_text="4").click()
    seen.wait(".preview h2:has-text('K = 4')")
    seen.until("document.querySelectorAll('.preview .number').length === 4")
    seen.page.locator(".criterion [data-k='3']").first.click()
    seen.until("document.querySelectorAll('.preview .number').length === 3")
    charts = seen.page.locator(".criterion").count()
    seen.page.reload()
    seen.wait(".verdict")
    assert seen.page.locator(".criterion").count() == charts
    seen.page.locator(".vote", has_text="4").click()
    seen.button("Use K = 4").click()
    seen.until("document.querySelectorAll('.cluster-list li').length === 4")


@both_sizes
def test_two_runs_are_compared_with_linked_maps(client, fitted, open_page, size):
    client.post("/api/current", {"run": fitted})
    other = next(run["id"] for run in client.workspace()["runs"] if run["algorithm"] == "ward")
    seen = open_page(f"compare?with={other}", size)
    seen.wait(".matched")
    seen.until("document.querySelectorAll('.maps canvas').length === 2")
    expected = client.get(f"/api/compare?a={fitted}&b={other}").json
    assert f"{expected['adjusted_rand']:.2f}" in seen.texts(".card .value")
    assert seen.page.locator(".matched").evaluate("table => table.offsetWidth <= table.parentElement.clientWidth")
    tops = [seen.page.locator(".maps canvas").nth(i).bounding_box()["y"] for i in (0, 1)]
    assert (tops[0] == tops[1]) == (size == WIDE)  # side by side, the maps are level
    right = seen.pixels(".maps section:nth-child(2) canvas")
    seen.button("Magnify").click()
    assert seen.pixels(".maps section:nth-child(2) canvas") != right  # the other map follows
    both = seen.pixels(".maps section:nth-child(2) canvas")
    seen.page.get_by_label("Show only rows that moved").check()
    seen.page.wait_for_timeout(300)
    assert seen.pixels(".maps section:nth-child(2) canvas") != both


@both_sizes
def test_every_export_is_a_file_that_says_the_same(client, fitted, open_page, size):
    client.post("/api/current", {"run": fitted})
    seen = open_page("export", size)

    def saved(press):
        with seen.page.expect_download(timeout=60_000) as download:
            press.click()
        return download.value.path().read_bytes()

    table = saved(seen.button("Table as CSV"))
    rows = list(csv.DictReader(io.StringIO(table.decode())))
    labels = client.labels(fitted)
    found = np.array([int(row["cluster"]) if row["cluster"] not in ("", "-1") else -1 for row in rows])
    assert (found == labels).all()
    assert saved(seen.button("Table as Parquet"))[:4] == b"PAR1"
    assert b"<!doctype html>" in saved(seen.button("Report"))[:200].lower()
    assert len(saved(seen.button("Model"))) > 100
    assert b"bill_length_mm" in saved(seen.button("Profiles"))
    assert len(saved(seen.button("Workspace"))) > 100
    assert saved(seen.button("Save the map as PNG"))[:8] == b"\x89PNG\r\n\x1a\n"
    picture = saved(seen.button("Save the map as SVG")).decode()
    assert picture.startswith("<svg")
    assert "data:image/png" in picture
    assert "principal axis 1" in picture
    seen.wait(".code-block pre")
    assert "coterie fit" in seen.text("[aria-label=Command] pre")
    assert "KMeans" in seen.text("[aria-label=Python] pre")


@both_sizes
def test_the_history_opens_an_earlier_run_and_removes_one(client, fitted, open_page, size):
    client.post("/api/current", {"run": fitted})
    seen = open_page("clusters", size)
    seen.button("History of runs").click()
    entries = seen.page.locator(".history li")
    count = entries.count()
    assert count >= 2
    entries.last.get_by_role("button").first.click()
    seen.until("document.querySelector('.history li:last-child').className === 'current'")
    assert json.dumps(client.workspace()["current"]) == json.dumps(client.workspace()["runs"][0]["id"])
    seen.page.keyboard.press("Escape")
    seen.until("!document.querySelector('.history')")
