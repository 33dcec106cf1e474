"""A page in which another table is opened shows that table everywhere: nothing of the first one stays."""

import re

from .customers import as_csv, customers

TABS = ("Rows", "Cluster", "Profiles", "Silhouettes", "Dendrogram", "Reliability")
MAPS = ("columns", "neighbours", "axes")
# What a view shows: its elements without the names that Preact makes up, and the pixels of its canvases.
SHOWN = """() => {
    const page = document.querySelector(".page");
    const canvases = [...page.querySelectorAll("canvas")].map((canvas) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        let hash = 17;
        for (const shade of new Int32Array(data.buffer)) hash = (Math.imul(hash, 31) + shade) | 0;
        return `canvas ${hash}`;
    });
    const values = [...page.querySelectorAll("input, select")].map((field) => `${field.type} ${field.value}`);
    return [page.innerHTML.replace(/ (id|for|name|aria-\\\\w+)="[^"]*"/g, ""), ...values, ...canvases].join("\\\\n");
}""".replace("\\\\", "\\")


def shown(seen):
    """What the page shows when it waits for nothing and no longer changes."""
    last = None
    for _ in range(200):
        seen.page.wait_for_timeout(60)
        seen.settle()
        is_waiting = [url for url in seen.waiting if not url.endswith("/api/events")]
        now = seen.page.evaluate(SHOWN)
        if not is_waiting and now == last and "Computing…" not in now and "Loading" not in now:
            return now
        last = now
    raise AssertionError(f"the page does not come to rest; it waits for {seen.waiting}")


def views(seen):
    """Every view of the page, by its name."""
    result = {}

    def look(name):
        result[name] = shown(seen)

    seen.go("Data")
    look("Data")
    seen.go("Fit")
    seen.wait(".player canvas, .map-host canvas")
    look("Fit")
    seen.go("Choose K")
    seen.wait(".verdict")
    look("Choose K")
    seen.go("Clusters")
    seen.wait(".cluster-list button")
    shown(seen)
    if seen.button("Select all rows").count():
        seen.button("Select all rows").click()
    seen.page.locator(".cluster-list button").first.click()
    for tab in TABS:
        seen.page.get_by_role("tab", name=tab).click()
        look(tab)
    for kind in MAPS:
        seen.page.get_by_label("Map", exact=True).select_option(kind)
        look(f"map of {kind}")
    seen.page.locator(".category").first.click()  # a filter, which another table must not inherit
    look("selected")
    seen.go("Compare")
    seen.wait(".matched")
    look("Compare")
    seen.go("Export")
    seen.wait(".code-block pre")
    look("Export")
    with seen.page.expect_download() as download:
        seen.button("Table as CSV").click()
    result["table.csv"] = download.value.path().read_text()
    return result


def open_and_fit(client, frame):
    """Open a table, with a comparison of K, K-means and a tree; the tree is the current run."""
    client.post("/api/paste", {"text": as_csv(frame), "name": "table.csv"})
    for name in ("member", "city", "joined"):
        client.post("/api/columns", {name: {"role": "feature"}})
    client.fit(kind="choose", algorithm="kmeans", k=[2, 3], budget="quick")
    for algorithm in ("kmeans", "ward"):
        client.fit(algorithm=algorithm, k=2)


def test_every_view_is_that_of_the_second_table_after_a_switch(client, open_page):
    open_and_fit(client, customers(1))
    seen = open_page("data")
    before = views(seen)
    open_and_fit(client, customers(2))
    seen.until("document.querySelector('.tools .status').textContent.includes('Ward')")
    after, new = views(seen), views(open_page("data"))
    assert [name for name, content in new.items() if after[name] != content] == []
    assert [name for name, content in new.items() if before[name] == content] == []


def test_answers_about_the_first_table_that_come_after_the_switch_are_not_shown(client, open_page):
    open_and_fit(client, customers(1))
    seen, held, is_first = open_page("data"), [], True
    seen.forgiven = True  # Chromium logs the status of requests that named the first table

    def hold(route):
        if is_first:
            held.append((route, route.fetch()))
        else:
            route.continue_()

    seen.page.route(re.compile("/api/(map|rows|values|runs)"), hold)
    with seen.page.expect_request(re.compile("/labels")):
        seen.go("Clusters")
    seen.page.wait_for_timeout(500)
    is_first = False
    assert len(held) > 1
    open_and_fit(client, customers(2))
    seen.wait(".cluster-list button")
    for route, answer in held:
        route.fulfill(response=answer)
    assert shown(seen) == shown(open_page("clusters"))


def test_the_page_follows_changes_of_the_preparation_and_undo(client, open_page):
    open_and_fit(client, customers(1))
    client.post("/api/preparation", {"scale": "robust"})
    seen = open_page("fit")
    kmeans = next(run["id"] for run in client.workspace()["runs"] if run["title"] == "K-means, K = 2")
    client.post("/api/current", {"run": kmeans})
    seen.wait(".player canvas")  # the iterations of a run on the map of its own preparation
    shown(seen)
    client.post("/api/undo")
    seen.go("Clusters")
    assert shown(seen) == shown(open_page("clusters"))


def test_an_open_view_follows_names_and_colours_of_clusters(client, open_page):
    open_and_fit(client, customers(1))
    run, seen = client.workspace()["current"], open_page("clusters")
    for tab in ("Rows", "Profiles", "Silhouettes"):
        seen.page.get_by_role("tab", name=tab).click()
        shown(seen)
        client.post(f"/api/runs/{run}/edit", {"rename": {"0": f"{tab} 0", "1": f"{tab} 1"}})
        seen.wait(f"#below-panel :text-matches('{tab} [01]')")
    seen.go("Export")
    shown(seen)
    client.post(f"/api/runs/{run}/edit", {"rename": {"0": "last name"}})
    seen.wait("[aria-label=Command] pre:has-text('last name')")
