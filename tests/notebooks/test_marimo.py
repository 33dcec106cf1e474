"""Results and figures in a marimo notebook: each cell shows its last value once."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow
CELLS = {  # last line of a cell, and the output that it shows
    "model": "text/html",
    "plots.clusters(model, X)": "image/png",
    "choose_k(X, range(2, 4), budget='quick', random_state=0)": "text/html",
    "diagnose(X, model=model)": "text/html",
    "make_report(X, model, random_state=0)": "text/html",
    "explain(model, X)": "text/html",
}
FIRST = """    from coterie import KMeans, choose_k, diagnose, explain, make_report, plots
    from coterie.datasets import make_blobs
    X, _ = make_blobs(80, 3, centers=3, cluster_std=0.5, random_state=0)
    model = KMeans(3, random_state=0).fit(X)
    return X, choose_k, diagnose, explain, make_report, model, plots
"""
NAMES = "X, choose_k, diagnose, explain, make_report, model, plots"


def session(page):
    """The cells of an exported page, with their outputs."""
    start = page.index("{", page.index('"session":'))
    return json.JSONDecoder().raw_decode(page[start:])[0]["cells"]


def test_every_cell_shows_its_result_once(tmp_path):
    pytest.importorskip("marimo", reason="marimo is not installed: pip install marimo")
    cells = "".join(f"@app.cell\ndef _({NAMES}):\n    {line}\n    return\n\n" for line in CELLS)
    notebook = tmp_path / "notebook.py"
    notebook.write_text(f"import marimo\napp = marimo.App()\n\n@app.cell\ndef _():\n{FIRST}\n{cells}")
    command = [sys.executable, "-m", "marimo", "export", "html", notebook.name, "-o", "page.html"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    _, *shown = session((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert len(shown) == len(CELLS)
    for cell, (line, mime) in zip(shown, CELLS.items(), strict=True):
        (output,) = cell["outputs"]
        assert output["type"] == "data", (line, output)
        assert list(output["data"]) == [mime], line
        assert cell["console"] == [], line
