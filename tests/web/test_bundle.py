"""The scripts in the package are built from the sources in `web/`."""

import gzip
import re
from hashlib import sha256
from pathlib import Path

import pytest

from coterie.web.page import SCRIPTS, script

WEB = Path(__file__).parents[2] / "web"
SETTINGS = ("build.mjs", "package-lock.json", "package.json", "tsconfig.json")
LARGEST = {"report": 24_000, "player": 24_000}  # bytes of a script
LARGEST_APP = 150_000  # bytes of the script of the app, compressed


def hash_of_sources():
    files = (file for file in (WEB / "src").rglob("*") if file.is_file())
    names = sorted([*SETTINGS, *(file.relative_to(WEB).as_posix() for file in files)])
    digest = sha256()
    for name in names:
        digest.update(f"{name}\0{(WEB / name).read_text(encoding='utf-8')}\0".encode())
    return digest.hexdigest()


@pytest.mark.skipif(not WEB.exists(), reason="an installed package has no sources of its scripts")
@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_were_made_from_these_sources(name):
    marked = re.search(r"sha256 of sources: (\w+)", script(name).splitlines()[0])[1]
    assert marked == hash_of_sources(), "web/ has changed: run `make web`"


@pytest.mark.parametrize("name", LARGEST)
def test_scripts_are_small(name):
    assert len(script(name)) < LARGEST[name]


def test_the_script_of_the_app_is_small_when_compressed():
    assert len(gzip.compress(script("app").encode())) < LARGEST_APP


@pytest.mark.skipif(not WEB.exists(), reason="an installed package has no sources of its scripts")
def test_the_lock_names_no_host_to_load_from():
    lock = (WEB / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
    assert lock.count('"integrity"') > 40
