"""Opens the page of the app in Chromium, as on a desktop or on a phone.

A test fails if the page logs an error, requests anything from elsewhere, or is wider than the window in the end.
"""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass, field
from typing import Any

import pytest

from browser import Visit

WIDE, PHONE = (1280, 800), (390, 844)
both_sizes = pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@dataclass
class PageVisit(Visit):
    """The page of the app in a browser, and the addresses that it waits for."""

    waiting: list[str] = field(default_factory=list)

    def go(self, name: str) -> None:
        """Open one of the steps by its link."""
        self.page.get_by_role("link", name=name, exact=True).click()

    def other_sources(self) -> None:
        """Show where tables can be opened from; below an open table, they are folded."""
        if self.page.locator(".another:not([open])").count():
            self.page.locator(".another > summary").click()

    def wait(self, selector: str, seconds: float = 30) -> Any:
        from playwright.sync_api import TimeoutError

        element = self.page.locator(selector).first
        try:
            element.wait_for(timeout=1000 * seconds)
        except TimeoutError as error:
            state = f"the page waits for {self.waiting}, logged {self.errors}"
            text = self.page.locator("body").inner_text()
            raise AssertionError(
                f"waited in vain for {selector}; {state}, and shows:\n{text}\nThe server:\n{_stacks()}"
            ) from error
        return element

    def button(self, name: str, exact: bool = True) -> Any:
        return self.page.get_by_role("button", name=name, exact=exact)

    def texts(self, selector: str) -> list[str]:
        return self.page.locator(selector).all_inner_texts()

    def text(self, selector: str) -> str:
        return self.page.locator(selector).first.inner_text()

    def box(self, selector: str) -> dict[str, float]:
        """The place of an element in the window, after the page has been scrolled to it."""
        found = self.page.locator(selector).first
        found.scroll_into_view_if_needed()
        return found.bounding_box()

    def drag(self, selector: str, *shares: tuple[float, float]) -> None:
        """Press the pointer at the first place of an element and release it at the last; in shares of its size."""
        box = self.box(selector)
        places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in shares]
        self.page.mouse.move(*places[0])
        self.page.mouse.down()
        for place in places[1:]:
            self.page.mouse.move(*place, steps=4)
        self.page.mouse.up()
        self.settle()


def _stacks() -> str:
    """What the other threads of this process do: the server is one of them."""
    stacks = [traceback.format_stack(frame) for frame in sys._current_frames().values()]
    return "\n".join("".join(stack) for stack in stacks if not any("_stacks" in line for line in stack))


@pytest.fixture
def open_page(chromium, server, client):
    """A function that opens the page and returns a `PageVisit`; every call is another browser window."""
    client.workspace()  # waits until the libraries are loaded
    opened: list[PageVisit] = []

    def go(step: str = "data", size: tuple[int, int] = WIDE, dark: bool = False) -> PageVisit:
        page = chromium[True].browser.new_context(
            accept_downloads=True, viewport={"width": size[0], "height": size[1]}, is_mobile=size == PHONE,
            has_touch=size == PHONE, color_scheme="dark" if dark else "light", reduced_motion="reduce",
        ).new_page()  # fmt: skip
        seen = PageVisit(page)
        opened.append(seen)
        page.on("console", lambda message: seen.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: seen.errors.append(error.stack or str(error)))
        own = (server.address, "data:", "blob:")
        page.on("request", lambda asked: None if asked.url.startswith(own) else seen.outside.append(asked.url))
        page.on("request", lambda asked: seen.waiting.append(asked.url))
        for end in ("requestfinished", "requestfailed"):
            page.on(end, lambda asked: seen.waiting.remove(asked.url))
        page.goto(server.url)
        page.wait_for_url(f"{server.address}#/data")  # the answer to the token leads there
        page.goto(f"{server.address}#/{step}")
        seen.wait(".page > :not(.empty:has-text('Loading'))")
        return seen

    yield go
    for seen in opened:
        overflow = seen.page.evaluate(OVERFLOW)
        seen.page.context.close()
        assert overflow <= 0, "the page is wider than the window"
        assert not seen.outside, f"the page asked for {seen.outside}"
        assert seen.forgiven or not seen.errors, f"the page logged {seen.errors}"
