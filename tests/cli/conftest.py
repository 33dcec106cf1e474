import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cyclopts")

from coterie.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def penguins(folder, capsys) -> Path:
    assert main(["demo", "penguins"]) == 0
    capsys.readouterr()
    return folder / "penguins.csv"


@pytest.fixture
def python():
    """Runs code in a process of its own."""

    def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join(filter(None, sys.path))
        return subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=os.environ | {"PYTHONPATH": paths, "PYTHONIOENCODING": "utf-8"} | environment,
            timeout=120,
            check=False,
        )

    return run
