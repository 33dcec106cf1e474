import pytest

from coterie.datasets import write_demo
from coterie.jobs import Job
from report.pages import keep, read, run


@pytest.fixture(autouse=True)
def kept_reports(monkeypatch):
    """Keep the reports of jobs; searches are short, because the quality of clusters does not matter here."""
    keep(monkeypatch)


@pytest.fixture(scope="session")
def penguins(tmp_path_factory):
    """A fit of the penguins with K chosen automatically: the result, the report, the page as text and as a tree."""
    folder = tmp_path_factory.mktemp("penguins")
    with pytest.MonkeyPatch.context() as patch:
        keep(patch)
        path = write_demo("penguins", folder / "penguins.csv")
        job = Job(path, missing="drop", exclude=("year",), budget="quick", report=folder / "r.html")
        result, report = run(job)
    html = (folder / "r.html").read_text(encoding="utf-8")
    return result, report, html, read(html)
