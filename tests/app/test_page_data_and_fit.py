"""The page opens tables, shows their columns, fits clusters and plays the fit, in a browser."""

from itertools import pairwise

from .page_visits import both_sizes

DROPPED = """(text) => {
    const files = new DataTransfer();
    files.items.add(new File([text], "dropped.csv", { type: "text/csv" }));
    return files;
}"""
CSV = "name;age;income\nAnna;34;51,5\nBen;28;38,2\nCarl;61;70,9\nDora;45;44,0\nEmil;33;\nFred;52;66,6\n"


def roles(seen):
    return dict(zip(seen.texts(".column strong"), seen.texts(".column .segments .on"), strict=True))


@both_sizes
def test_a_demo_table_shows_its_columns_with_types_missing_values_histograms_and_reasons(client, open_page, size):
    seen = open_page("data", size)
    seen.other_sources()
    seen.page.locator(".demo", has_text="penguins").click()
    seen.wait(".column")
    assert seen.text("h1") == "penguins.csv"
    assert "344 rows" in seen.text(".title")
    assert roles(seen)["bill_length_mm"] == "use"
    assert roles(seen)["species"] == "leave out"
    assert "0.6% missing" in seen.page.locator(".column", has_text="bill_length_mm").inner_text()
    assert seen.page.locator(".column .bars path").count() == 8


@both_sizes
def test_a_table_is_chosen_dropped_pasted_or_opened_from_the_folder_and_from_the_recent_ones(
    client, folder, open_page, size
):
    (folder / "here.csv").write_text(CSV + "Gina;30;40\n")
    seen = open_page("data", size)

    def opened(name, rows):
        seen.wait(f"h1:has-text('{name}')")
        seen.wait(f".title:has-text('{rows} rows')")
        seen.other_sources()

    seen.other_sources()
    seen.page.locator("input[type=file]").set_input_files(
        {"name": "chosen.csv", "mimeType": "text/csv", "buffer": CSV.encode()}
    )
    opened("chosen.csv", 6)
    files = seen.page.evaluate_handle(DROPPED, CSV + "Hans;20;30\nIda;61;50\n")
    seen.page.dispatch_event(".drop", "dragover", {"dataTransfer": files})
    assert seen.page.locator(".drop.over").count() == 1
    seen.page.dispatch_event(".drop", "drop", {"dataTransfer": files})
    opened("dropped.csv", 8)
    seen.page.locator(".paste > summary").click()
    seen.page.locator("textarea").fill("x\ty\n1\t2\n3\t5\n8\t1\n4\t4")
    seen.button("Open these rows").click()
    opened("pasted", 4)
    seen.page.locator(".sources .group", has_text="In this folder").get_by_role("button", name="here.csv").click()
    opened("here.csv", 7)
    recent = seen.page.locator(".sources .group", has_text="Recent")
    assert "8 rows, 0 runs" in recent.locator("li", has_text="dropped.csv").first.inner_text()
    recent.get_by_role("button", name="dropped.csv").first.click()
    opened("dropped.csv", 8)
    seen.forgiven = True  # Chromium logs the status of the answer to a file that cannot be read
    seen.page.locator("input[type=file]").set_input_files(
        {"name": "broken.parquet", "mimeType": "application/octet-stream", "buffer": b"no table"}
    )
    fault = seen.wait(".drop + .fault, .drop ~ .fault")
    assert "broken.parquet" in fault.inner_text()
    assert "8 rows" in seen.text(".title")  # what was open is still open
    assert all("status of 4" in error for error in seen.errors)


@both_sizes
def test_a_click_changes_the_use_of_a_column_and_undo_and_reload_keep_what_was_done(penguins, open_page, size):
    seen = open_page("data", size)
    year = seen.page.locator(".column", has_text="year")
    year.get_by_text("leave out").click()
    seen.wait(".column.ignored:has-text('year')")
    bill = seen.page.locator(".column", has_text="bill_length_mm")
    with seen.page.expect_response("**/api/columns"):
        bill.get_by_label("Transformation of bill_length_mm").select_option("log")
    seen.page.reload()
    seen.wait(".column.ignored:has-text('year')")
    assert bill.get_by_label("Transformation of bill_length_mm").input_value() == "log"
    for _ in range(2):
        seen.button("Undo", exact=False).click()
        seen.settle()
    seen.wait(".column.feature:has-text('year')")
    seen.button("Redo", exact=False).click()
    seen.wait(".column.ignored:has-text('year')")


@both_sizes
def test_a_fit_is_played_step_by_step_and_the_objective_never_rises(penguins, open_page, size):
    seen = open_page("fit", size)
    seen.wait(".map-host canvas")
    assert seen.colours(".map-host canvas") > 1  # grey points, before any fit
    seen.page.get_by_label("Algorithm").select_option("kmeans")
    seen.page.get_by_text("set K", exact=True).click()
    seen.page.get_by_label("Clusters K").fill("4")
    seen.button("Fit").click()
    seen.wait(".outcome:has-text('K = 4')")
    seen.wait(".player canvas")
    assert len(seen.texts(".sizes tr")) == 4
    seen.page.locator(".player").click(position={"x": 5, "y": 5})
    last = int(seen.text(".where").split(" / ")[1])
    if seen.page.locator(".transport .main").get_attribute("aria-label") == "Pause":
        seen.page.keyboard.press(" ")
    seen.page.keyboard.press("Home")
    first, values = seen.pixels(".player canvas"), []
    for _ in range(last - 1):
        text = seen.text(".side .value")
        values += [float(text.replace(",", ""))] if text != "–" else []
        seen.page.keyboard.press("ArrowRight")
    assert len(values) > 3
    assert all(after <= before + 1e-6 for before, after in pairwise(values))
    assert seen.pixels(".player canvas") != first
    seen.page.keyboard.press(" ")
    assert seen.page.locator(".transport .main").get_attribute("aria-label") == "Pause"


@both_sizes
def test_an_option_that_is_not_valid_is_reported_beside_it(penguins, open_page, size):
    seen = open_page("fit", size)
    seen.forgiven = True  # Chromium logs the status of the answer
    seen.page.get_by_label("Algorithm").select_option("kmeans")
    seen.page.get_by_text("set K", exact=True).click()
    seen.page.locator(".options > summary").click()
    seen.page.get_by_label("Initialisations").fill("-3")
    seen.button("Fit").click()
    field = seen.page.locator(".options .field", has_text="Initialisations")
    field.locator(".fault").wait_for(timeout=20_000)
    assert "-3" in field.locator(".fault").inner_text()
    field.get_by_label("Initialisations").fill("2")
    seen.button("Fit").click()
    seen.wait(".outcome")
    assert field.locator(".fault").count() == 0


@both_sizes
def test_cancel_ends_a_run_and_nothing_is_lost(client, open_page, size):
    client.post("/api/open", {"demo": "customers"})
    client.fit(algorithm="kmeans", k=2)
    seen = open_page("fit", size)
    seen.page.get_by_text("automatic", exact=True).click()
    seen.page.get_by_label("Effort").select_option("thorough")  # takes seconds, so that there is time to cancel
    seen.button("Fit").click()
    seen.wait(".running-card")
    seen.button("Cancel and keep the best so far").click()
    seen.wait(".work:not(:has(.running-card))")
    assert client.workspace()["runs"][0]["title"] == "K-means, K = 2"
    assert client.workspace()["runs"][-1]["status"] in ("done", "cancelled")
