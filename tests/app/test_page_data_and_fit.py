"""The page opens tables, shows their columns, fits clusters and plays the fit, in a browser."""

from itertools import pairwise

import pytest

CSV = "name;age;income\nAnna;34;51,5\nBen;28;38,2\nCarl;61;70,9\nDora;45;44,0\nEmil;33;\nFred;52;66,6\n"


@pytest.fixture
def empty(client, open_page, folder):
    """The page, whatever table is open: the sources of another one are unfolded."""
    seen = open_page("data")
    if seen.page.locator(".another").count():
        seen.page.locator(".another > summary").click()
    return seen


def roles(seen):
    return dict(zip(seen.texts(".column strong"), seen.texts(".column .segments .on"), strict=True))


def test_a_demo_table_shows_its_columns_with_types_missing_values_histograms_and_reasons(empty):
    empty.page.locator(".demo", has_text="penguins").click()
    empty.wait(".column")
    assert empty.text("h1") == "penguins.csv"
    assert "344 rows" in empty.text(".title")
    assert roles(empty)["bill_length_mm"] == "use"
    assert roles(empty)["species"] == "leave out"
    assert "0.6% missing" in empty.page.locator(".column", has_text="bill_length_mm").inner_text()
    assert empty.page.locator(".column .bars path").count() == 8


def test_a_file_and_pasted_rows_open_and_what_cannot_be_read_is_said_beside_the_control(empty):
    files = empty.page.locator("input[type=file]")
    files.set_input_files({"name": "people.csv", "mimeType": "text/csv", "buffer": CSV.encode()})
    empty.wait("h1:has-text('people.csv')")
    assert "6 rows" in empty.text(".title")
    empty.page.locator(".another > summary").click()
    empty.page.locator(".paste > summary").click()
    empty.page.locator("textarea").fill("x\ty\n1\t2\n3\t5\n8\t1\n4\t4")
    empty.button("Open these rows").click()
    empty.wait(".title:has-text('4 rows')")
    empty.forgiven = True  # Chromium logs the status of the answer to a file that cannot be read
    empty.page.locator(".another > summary").click()
    broken = {"name": "broken.parquet", "mimeType": "application/octet-stream", "buffer": b"no table"}
    empty.page.locator("input[type=file]").set_input_files(broken)
    fault = empty.wait(".drop + .fault, .drop ~ .fault")
    assert "broken.parquet" in fault.inner_text()
    assert "4 rows" in empty.text(".title")  # what was open is still open
    assert all("status of 4" in error for error in empty.errors)


def test_a_click_changes_the_use_of_a_column_and_undo_and_reload_keep_what_was_done(penguins, open_page):
    seen = open_page("data")
    year = seen.page.locator(".column", has_text="year")
    year.get_by_text("leave out").click()
    seen.wait(".column.ignored:has-text('year')")
    bill = seen.page.locator(".column", has_text="bill_length_mm")
    bill.get_by_label("Transformation of bill_length_mm").select_option("log")
    seen.until("document.querySelector('.tools .button.icon:not(:disabled)')")
    seen.page.reload()
    seen.wait(".column.ignored:has-text('year')")
    assert bill.get_by_label("Transformation of bill_length_mm").input_value() == "log"
    for _ in range(2):
        seen.button("Undo", exact=False).click()
        seen.settle()
    seen.wait(".column.feature:has-text('year')")
    seen.button("Redo", exact=False).click()
    seen.wait(".column.ignored:has-text('year')")


def test_a_fit_is_played_step_by_step_and_the_objective_never_rises(penguins, open_page):
    seen = open_page("fit")
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


def test_an_option_that_is_not_valid_is_reported_beside_it(penguins, open_page):
    seen = open_page("fit")
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


def test_cancel_ends_a_run_and_nothing_is_lost(client, open_page):
    client.post("/api/open", {"demo": "customers"})
    client.fit(algorithm="kmeans", k=2)
    seen = open_page("fit")
    seen.page.get_by_text("automatic", exact=True).click()
    seen.button("Fit").click()
    seen.wait(".running-card")
    seen.button("Cancel and keep the best so far").click()
    seen.wait(".work:not(:has(.running-card))")
    assert client.workspace()["runs"][0]["title"] == "K-means, K = 2"
    assert client.workspace()["runs"][-1]["status"] in ("done", "cancelled")
