"""Every number of the page is that of the file: it is computed again from the file by pandas and scikit-learn."""

import io
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, silhouette_samples

from .customers import as_csv, customers, kunden


@dataclass
class File:
    """A table as text, the same with types, and how its columns are used."""

    text: str
    cells: pd.DataFrame  # as they are in the file; None: missing
    frame: pd.DataFrame  # numbers, dates, and 1 and 0 for yes and no
    log: str
    date: str
    category: str
    flag: str

    @property
    def numbers(self):
        return [name for name in self.frame if name not in (self.date, self.category, self.flag)]

    @property
    def rows(self):
        """The rows as the page prepares them at first: filled with medians, standardised, categories one-hot."""
        X = self.frame.drop(columns=self.category)
        X[self.date] = (X[self.date].max() - X[self.date]).dt.days
        X = X.fillna(X.median())
        X[self.log] = np.log(X[self.log])
        X = (X - X.mean()) / X.std(ddof=0)
        return np.hstack([X, pd.get_dummies(self.frame[self.category], dtype=float)])


def english():
    text = as_csv(customers(1))
    frame = pd.read_csv(io.StringIO(text), parse_dates=["joined"])
    frame["member"] = frame["member"].map({"yes": 1.0, "no": 0.0})
    cells = pd.read_csv(io.StringIO(text), dtype=str)
    return File(text, cells, frame, "amount", "joined", "city", "member")


def german():
    frame = kunden()
    text = frame.to_csv(index=False, sep=";")
    cells = pd.read_csv(io.StringIO(text), sep=";", dtype=str)
    typed = pd.read_csv(io.StringIO(text), sep=";", decimal=",", thousands=".", dtype={"Seit": str})
    typed["Seit"] = pd.to_datetime(typed["Seit"], format="%d.%m.%Y")
    typed["Aktiv"] = typed["Aktiv"].map({"ja": 1.0, "nein": 0.0})
    return File(text, cells, typed, "Umsatz", "Seit", "Stadt", "Aktiv")


def number(text):
    return float(text.replace(",", "").replace("−", "-").rstrip("%"))


def near(value):
    return pytest.approx(value, rel=2e-5)


def two_places(value):
    return pytest.approx(value, abs=0.00501)


def percent(share):
    return pytest.approx(100 * share, abs=0.501)


def day(date):
    return date.date().isoformat()


@pytest.fixture(params=[english, german], ids=["english", "german"])
def file(request):
    return request.param()


@pytest.fixture
def seen(client, open_page, file):
    """The page of the file with two runs: Ward's linkage, and K-means as the current one."""
    client.post("/api/paste", {"text": file.text, "name": "table.csv"})
    client.post("/api/preparation", {"missing": "median"})
    for name in (file.date, file.category, file.flag):
        client.post("/api/columns", {name: {"role": "feature"}})
    client.fit(algorithm="ward", k=3)
    client.fit(algorithm="kmeans", k=2)
    return open_page("data")


@pytest.fixture
def labels(client, seen):
    return {run["algorithm"]: client.labels(run["id"]) for run in client.workspace()["runs"]}


def test_the_data_page_shows_the_columns_and_rows_of_the_file(seen, file):
    n = len(file.frame)
    assert f"{n} rows · 6 of 6 columns used" in seen.text(".title")
    for name, column in file.frame.items():
        card = seen.page.locator(".column", has=seen.page.get_by_text(name, exact=True))
        text, missing = card.inner_text(), column.isna().sum()
        assert ("missing" in text) == (missing > 0)
        if missing:
            shown = float(text.split("· ")[1].split("%")[0])
            assert shown == pytest.approx(100 * missing / n, abs=0.5 if shown >= 10 else 0.05)
        tip = card.locator(".bars").get_attribute("data-tip")
        if name == file.category:
            counts = column.value_counts()
            assert dict(line.rsplit(": ", 1) for line in tip.split("\n")) == counts.astype(str).to_dict()
            continue
        low, high = card.locator(".range").inner_text().split(" to ")
        mean = card.locator(".range").get_attribute("title").removeprefix("mean ")
        assert tip == f"{low} to {high}"
        if name == file.date:
            assert (low, high, mean) == tuple(map(day, (column.min(), column.max(), column.mean())))
        else:
            assert [number(text) for text in (low, mean, high)] == near([column.min(), column.mean(), column.max()])
    seen.wait("[aria-label='First rows'] tbody tr")
    assert_cells(seen, file, "[aria-label='First rows']", np.arange(50), 1)


def assert_cells(seen, file, place, rows, first):
    """The rows of a table on the page are these rows of the file; its cells begin at the column `first`."""
    shown = seen.page.locator(f"{place} tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    assert [int(row[0].replace(",", "")) for row in shown] == list(rows)
    for row, cells in zip(rows, shown, strict=True):
        for text, cell in zip(cells[first:], file.cells.iloc[row], strict=True):
            assert text == "missing" if pd.isna(cell) else (text == cell or number(text) == number(cell))
    return shown


def test_the_clusters_page_shows_sizes_silhouettes_distances_and_counts(seen, file, labels):
    X, label = file.rows, labels["kmeans"]
    centers = np.stack([X[label == j].mean(axis=0) for j in (0, 1)])
    distance, silhouette = np.linalg.norm(X - centers[label], axis=1), silhouette_samples(X, label)
    seen.go("Clusters")
    seen.wait(".category .num")
    seen.wait(".rows-table .data-rows")
    for j, entry in enumerate(seen.texts(".cluster-list button")):
        name, rows, mean = entry.split("\n")
        assert (name, number(rows)) == (str(j), (label == j).sum())
        assert number(mean) == two_places(silhouette[label == j].mean())
    for row, cells in enumerate(assert_cells(seen, file, ".rows-table", np.arange(50), 4)):
        assert (cells[1], number(cells[2])) == (str(label[row]), two_places(silhouette[row]))
        assert number(cells[3]) == pytest.approx(distance[row], rel=6e-3)
    for name in (*file.numbers, file.date, file.flag):
        head = seen.page.locator(".histogram", has=seen.page.get_by_text(name, exact=True)).locator(".head .num")
        ends = head.inner_text().split(" to ")
        least, most = file.frame[name].min(), file.frame[name].max()
        assert ends == [day(least), day(most)] if name == file.date else list(map(number, ends)) == near([least, most])
    counts = file.frame[file.category].value_counts()
    shown = dict(text.rsplit("\n", 1) for text in seen.texts(".category"))
    assert {name: int(text) for name, text in shown.items()} == counts.to_dict()
    seen.page.locator("th", has_text=file.date).get_by_role("button").click()
    seen.wait(f"th[aria-sort=ascending]:has-text('{file.date}')")
    seen.page.wait_for_timeout(300)
    place = 4 + list(file.frame).index(file.date)
    first = seen.page.locator(f".rows-table tbody tr td:nth-child({place + 1})").all_inner_texts()
    assert first == file.cells[file.date].iloc[file.frame[file.date].argsort(kind="stable")][:50].tolist()

    seen.page.locator(".cluster-list button").first.click()
    members = np.flatnonzero(label == 0)
    seen.wait(".cluster-card [aria-label='Typical rows']")
    text = seen.text(".cluster-card > p")
    assert number(text.split(" rows")[0]) == len(members)
    assert number(text.split("(")[1].split("%")[0]) == percent(len(members) / len(label))
    assert number(text.rsplit(" ", 1)[1]) == two_places(silhouette[members].mean())
    order = members[np.argsort(distance[members], kind="stable")]
    assert_cells(seen, file, "[aria-label='Typical rows']", order[:5], 1)
    assert_cells(seen, file, "[aria-label='Untypical rows']", order[::-1][:5], 1)
    ends = dict(zip(seen.texts(".shape figcaption"), seen.texts(".shape .ends"), strict=True))
    assert ends[file.date].split("\n") == [day(file.frame[file.date].min()), day(file.frame[file.date].max())]
    low, high = map(number, ends[file.log].split("\n"))
    assert [low, high] == near([file.frame[file.log].min(), file.frame[file.log].max()])

    seen.page.get_by_role("tab", name="Silhouettes").click()
    seen.wait(".fragment:has-text('mean')")
    for j in (0, 1):
        assert f"{j} · {silhouette[label == j].mean():.2f} · {(label == j).sum()}" in seen.text(".fragment")
    assert f"mean {silhouette.mean():.2f}" in seen.text(".fragment")


def test_means_of_selected_rows_are_those_of_the_rows_without_missing_values(seen, file):
    seen.go("Clusters")
    seen.wait(".category .num")
    seen.page.get_by_role("tab", name="Profiles").click()
    seen.page.locator(".category", has_text="Berlin").click()
    slider = seen.page.get_by_label(f"Highest {file.log}")
    slider.focus()
    seen.page.keyboard.press("ArrowLeft")  # without the largest amount, which far rows share a bin with
    seen.page.wait_for_timeout(500)
    seen.wait(".profile tbody tr")
    count = int(seen.text(".selection-bar strong").split()[0])
    berlin = file.frame[file.frame[file.category] == "Berlin"].sort_values(file.log)
    chosen = berlin[berlin[file.log].notna()].head(count)  # rows with a missing amount are in no range
    assert 5 < len(chosen) == count < len(berlin)
    lines = seen.page.locator(".profile tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.cells].map((cell) => [cell.textContent, cell.title]))"
    )
    shown = {cells[0][0]: cells[1:] for cells in lines}
    for name in (*file.numbers, file.date, file.flag):
        (mean, about), (overall, _), (missing, _) = shown[name]
        assert number(missing or "0") == chosen[name].isna().sum()
        inside, everything = chosen[name].mean(), file.frame[name].mean()
        if name == file.date:
            assert (mean, overall) == (day(inside), day(everything))
        elif name == file.flag:
            assert [number(mean), number(overall)] == [percent(inside), percent(everything)]
        else:
            assert [number(mean), number(overall)] == near([inside, everything])
        some, all_rows = (np.log(each[name]) if name == file.log else each[name] for each in (chosen, file.frame))
        z = (some.mean() - all_rows.mean()) / all_rows.std(ddof=0)
        assert number(about.split(" s.d.")[0]) == two_places(z)
    shares = file.frame[file.category].value_counts(normalize=True)
    for value, share in shares.items():
        (mean, _), (overall, _), _ = shown[f"{file.category} = {value}"]
        assert [number(mean), number(overall)] == [percent(value == "Berlin"), percent(share)]


def test_compare_and_export_show_the_same_labels(seen, file, labels):
    x, y = labels["kmeans"], labels["ward"]
    seen.go("Compare")
    seen.wait(".matched")
    table = pd.crosstab(x, y)
    shown = seen.page.locator(".matched tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    after = [int(text) for text in seen.texts(".matched thead tr:nth-child(2) th")]
    for old, *counts in shown:
        assert [int(text or 0) for text in counts] == table.loc[int(old), after].tolist()
    largest = max(table.loc[0, i] + table.loc[1, j] for i in range(3) for j in range(3) if i != j)
    rand, information, agreement, moved = seen.texts(".card .value")
    assert number(rand) == two_places(adjusted_rand_score(x, y))
    assert number(information) == two_places(adjusted_mutual_info_score(x, y))
    assert (number(agreement), number(moved)) == (percent(largest / len(x)), len(x) - largest)
    seen.go("Export")
    with seen.page.expect_download() as download:
        seen.button("Table as CSV").click()
    written = pd.read_csv(download.value.path(), sep=None, engine="python")
    assert written["cluster"].tolist() == x.tolist()
    assert list(written.columns[: len(file.frame.columns)]) == list(file.frame)
