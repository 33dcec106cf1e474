"""Pages of reports for tests: jobs write them from small tables, and they are parsed to trees of elements."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from coterie import jobs
from coterie.datasets import make_blobs
from coterie.jobs import output_files

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
HOSTILE = (
    "<script>alert(1)</script>",
    "\"quoted' & <b>bold</b>",
    "]]> --> </style></script>",
    "\u202egnp.\u202cמשהו",
    "a very long name " * 20,
    "new\nline\tand\x07bell",
)


@dataclass
class Node:
    """An element with its attributes and children."""

    name: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list[Any] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, name: str | None = None, cls: str | None = None, **attributes: str) -> list[Node]:
        """All descendants that match, in document order."""
        nodes = []
        for child in self.children:
            if isinstance(child, Node):
                if child._is(name, cls, attributes):
                    nodes.append(child)
                nodes += child.all(name, cls, **attributes)
        return nodes

    def one(self, name: str | None = None, cls: str | None = None, **attributes: str) -> Node:
        (node,) = self.all(name, cls, **attributes)
        return node

    def rows(self) -> list[list[str]]:
        """Texts of the cells of a table, row by row, without its head."""
        return [[cell.text for cell in row.all("td")] for row in self.all("tr") if row.all("td")]

    def _is(self, name: str | None, cls: str | None, attributes: dict[str, str]) -> bool:
        classes = (self.attributes.get("class") or "").split()
        return (
            (name is None or self.name == name)
            and (cls is None or cls in classes)
            and all(self.attributes.get(key) == value for key, value in attributes.items())
        )


class _Reader(HTMLParser):
    """Elements must be closed in the order in which they were opened."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.top = Node("page")
        self.open = [self.top]

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        node = Node(name, dict(attributes))
        self.open[-1].children.append(node)
        if name not in VOID:
            self.open.append(node)

    def handle_endtag(self, name: str) -> None:
        last = self.open.pop()
        assert last.name == name, f"</{name}> closes <{last.name}>"

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read(html: str) -> Node:
    """The tree of a page."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == [reader.top], f"never closed: {[node.name for node in reader.open[1:]]}"
    return reader.top


WRITTEN: list[Any] = []  # the last report that a job wrote, if `keep` was called


def keep(patch: pytest.MonkeyPatch) -> None:
    """Store the report of each job in `WRITTEN`."""
    write_report = output_files.OutputFiles.write_report

    def keeping(self: Any, path: Path, report: Any, *rest: Any) -> Any:
        WRITTEN[:] = [report]
        return write_report(self, path, report, *rest)

    patch.setattr(output_files.OutputFiles, "write_report", keeping)


def blobs(folder: Path, n: int = 300, d: int = 3, k: int = 3, spread: float = 0.8, **columns: Any) -> Path:
    """A table of `k` groups, with columns of different units and one that names the rows."""
    X, _ = make_blobs(n, d, centers=k, cluster_std=spread, random_state=0)
    numbers = {f"x{j}": X[:, j] * 10.0**j for j in range(d)}
    path = folder / "blobs.parquet"
    pl.DataFrame({"id": [f"r{i}" for i in range(n)], **numbers, **columns}).write_parquet(path)
    return path


def mixed(folder: Path, n: int = 240) -> Path:
    """A table of numbers, counts and categories in three groups."""
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=n)
    frame = pl.DataFrame(
        {
            "age": rng.normal(30 + 15 * group, 4),
            "visits": rng.poisson(2 + 5 * group),
            "city": np.array(["Oslo", "Paris", "Rome"])[group],
        }
    )
    path = folder / "mixed.parquet"
    frame.write_parquet(path)
    return path


def run(job: jobs.Job) -> tuple[Any, Any]:
    """The result of a job, and the report that it wrote."""
    verbs = {
        jobs.Job: jobs.run,
        jobs.ReportJob: jobs.report,
        jobs.ChooseJob: jobs.choose,
        jobs.CompareJob: jobs.compare,
    }
    WRITTEN.clear()
    return verbs[type(job)](job), next(iter(WRITTEN), None)


def page_of(job: jobs.Job) -> tuple[Any, Any, str, Node]:
    """The result, the report, the page as text, and the page as a tree."""
    result, report = run(job)
    html = (job.output if isinstance(job, jobs.ReportJob) else job.report).read_text(encoding="utf-8")
    return result, report, html, read(html)
