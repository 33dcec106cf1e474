"""Fixtures that open HTML pages in Chromium, by Playwright; `tests/conftest.py` makes them known to all tests.

A test fails if a page that it opened logs an error or requests anything beside itself.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
COLOURS = """canvas => {
    const shades = new Set();
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    for (const shade of new Uint32Array(data.buffer)) shades.add(shade);
    return shades.size;
}"""

HASH = """canvas => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let hash = 17;
    for (const shade of new Int32Array(data.buffer)) hash = (Math.imul(hash, 31) + shade) | 0;
    return hash;
}"""


@dataclass
class Visit:
    """An open page, the errors that it logged and the addresses that it requested beside its own.

    `page` is the object of Playwright: `page.locator(...)`, `page.keyboard.press(...)`, `page.evaluate(...)`.
    """

    page: Any
    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    forgiven: bool = False  # for tests that cause errors on purpose and check `errors` themselves

    def colours(self, selector: str = "canvas") -> int:
        """Number of colours on a canvas; 1 if it is blank."""
        return self.page.locator(selector).first.evaluate(COLOURS)

    def pixels(self, selector: str = "canvas") -> int:
        """Hash of the pixels of a canvas, after pending drawing."""
        self.settle()
        return self.page.locator(selector).first.evaluate(HASH)

    def settle(self) -> None:
        """Wait until pending changes are drawn."""
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def until(self, expression: str) -> None:
        """Wait until an expression of JavaScript is true, without `eval`, which the page forbids."""
        loop = f"async () => {{ const end = Date.now() + 9000; while (!({expression}) && Date.now() < end)"
        loop += f" await new Promise(requestAnimationFrame); return !!({expression}); }}"
        assert self.page.evaluate(loop), f"waited in vain for {expression}"


@pytest.fixture(scope="module")
def chromium():
    """Contexts of the browser with and without JavaScript; without Chromium, tests are skipped."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium here: install Debian's package chromium")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        yield {scripts: browser.new_context(java_script_enabled=scripts) for scripts in (True, False)}
        browser.close()


@pytest.fixture
def visit(chromium, tmp_path):
    """A function that writes HTML to a file, opens it and returns a `Visit`; `calm` asks for reduced motion."""
    opened = []

    def go(html, *, width=1120, height=800, dark=False, calm=False, scripts=True):
        file = tmp_path / f"page{len(opened)}.html"
        file.write_text(html, encoding="utf-8")
        page = chromium[scripts].new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(
            color_scheme="dark" if dark else "light", reduced_motion="reduce" if calm else "no-preference"
        )
        seen = Visit(page)
        opened.append(seen)
        page.on("console", lambda message: seen.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: seen.errors.append(str(error)))
        own = (file.as_uri(), "data:", "about:srcdoc")
        page.on("request", lambda asked: None if asked.url.startswith(own) else seen.outside.append(asked.url))
        page.goto(file.as_uri())
        return seen

    yield go
    for seen in opened:
        seen.page.close()
        assert not seen.outside, f"the page asked for {seen.outside}"
        assert seen.forgiven or not seen.errors, f"the page logged {seen.errors}"
