"""What a user of the app waits for, in Chromium: the page, the first picture, frames, and the answer to a brush.

Run `python -m benchmarks.bench_app [--rows 100000 1000000]` on a quiet machine. It needs Playwright and Chromium. The
app runs in a process of its own, with a warm compile cache; drawing is in software, without a GPU. Beside times on the
clock, which other work on the machine lengthens, it shows the processor time of the page's main thread.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import data

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
COLUMNS, CLUSTERS = 6, 8
WIDTH, HEIGHT = 1280, 800
LONGEST = 300_000  # milliseconds for one step
IDLE = 5.0  # seconds after which the server has returned the memory that it does not need
FRAMES = """async () => {
    let count = 0;
    const start = performance.now();
    const stage = document.querySelector(".stage");
    const { left, top } = stage.getBoundingClientRect();
    const send = (type, x, y) => stage.dispatchEvent(new PointerEvent(type, {
        pointerId: 1, clientX: left + x, clientY: top + y, button: 0, buttons: 1, bubbles: true }));
    stage.setPointerCapture = () => {};
    if (PANS) send("pointerdown", 300, 250);
    while (performance.now() - start < 3000) {
        const play = document.querySelector(".transport [aria-label=Play]");
        if (play) play.click();
        if (PANS) send("pointermove", 300 + 90 * Math.sin(count / 9), 250 + 60 * Math.cos(count / 7));
        await new Promise(requestAnimationFrame);
        count++;
    }
    if (PANS) send("pointerup", 300, 250);
    return [count, performance.now() - start];
}"""
BRUSH = """async () => {
    const edge = document.querySelectorAll(".histogram .edges input")[2];
    const times = [];
    for (let bin = 1; bin <= 30; bin++) {
        edge.value = bin;
        const start = performance.now();
        edge.dispatchEvent(new Event("input", { bubbles: true }));
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        times.push(performance.now() - start);
    }
    return times;
}"""


def write_table(rows: int, folder: Path) -> Path:
    """A Parquet file of `rows` rows in round clusters."""
    import polars as pl

    X = data.blobs(rows, COLUMNS, CLUSTERS, data.OVERLAPPING).astype(np.float32)
    path = folder / f"rows{rows}.parquet"
    pl.DataFrame({f"x{j}": X[:, j] for j in range(COLUMNS)}).write_parquet(path)
    return path


def serve(folder: Path) -> tuple[subprocess.Popen[str], str, float]:
    """Start the app; return the process, its address, and when it was started."""
    env = {**os.environ, "COTERIE_STATE_DIR": str(folder / "state")}
    command = [sys.executable, "-m", "coterie", "app", "--no-browser"]
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=folder, env=env
    )
    assert process.stdout is not None
    for line in process.stdout:
        if address := re.search(r"http://\S+", line):
            return process, address[0], start
    raise RuntimeError("the app did not start")


def memory(process: subprocess.Popen[str]) -> str:
    """Resident memory of a process when it is idle, and the part that is not code of libraries, which others share."""
    time.sleep(IDLE)
    text = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    all_of_it, private = (int(kilobytes) / 1000 for kilobytes in re.findall(r"(?:VmRSS|RssAnon):\s+(\d+)", text))
    return f"{all_of_it:.0f}, of it private: {private:.0f}"


def seconds_until(page: Any, selector: str) -> float:
    start = time.perf_counter()
    page.locator(selector).first.wait_for(timeout=LONGEST)
    return time.perf_counter() - start


@contextmanager
def processor_time(page: Any) -> Iterator[list[float]]:
    """Seconds of processor time that the main thread of the page spends meanwhile, as the only item of a list."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def now() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")

    spent = [now()]
    yield spent
    spent[0] = now() - spent[0]
    session.detach()


def frames(page: Any, name: str, *, pans: bool) -> dict[str, float]:
    """Frames per second, and what one of them costs, while the page plays, and while the pointer drags the map."""
    with processor_time(page) as spent:
        count, milliseconds = page.evaluate(FRAMES.replace("PANS", str(pans).lower()))
    return {f"{name}, frames/s": 1000 * count / milliseconds, f"{name}, processor ms a frame": 1000 * spent[0] / count}


def visit(page: Any, table: Path, process: subprocess.Popen[str]) -> dict[str, float]:
    """Open a table in the page, fit, play, pan and brush."""
    found: dict[str, float] = {}
    page.get_by_role("link", name="Data", exact=True).click()
    if page.locator(".another:not([open])").count():
        page.locator(".another > summary").click()
    start = time.perf_counter()
    page.get_by_role("button", name=table.name).click()
    page.locator(f"h1:has-text('{table.name}')").wait_for(timeout=LONGEST)
    found["open, s"] = time.perf_counter() - start
    page.get_by_role("link", name="Fit", exact=True).click()
    found["first picture, s"] = seconds_until(page, ".map-host canvas")
    print(f"  memory of the server with the table, MB: {memory(process)}")
    found |= frames(page, "pan", pans=True)
    page.get_by_text("set K", exact=True).click()
    page.get_by_label("Clusters K").fill(str(CLUSTERS))
    page.get_by_role("button", name="Fit", exact=True).click()
    found["fit and film, s"] = seconds_until(page, ".player canvas")
    page.get_by_label("Steps a second").select_option("30")
    found |= frames(page, "play", pans=False) | frames(page, "play and pan", pans=True)
    page.get_by_role("link", name="Clusters", exact=True).click()
    seconds_until(page, ".histogram .selected")
    page.wait_for_timeout(2500)
    with processor_time(page) as spent:
        times = page.evaluate(BRUSH)
    found |= {"brush, median ms": median(times), "brush, slowest ms": max(times)}
    return found | {"brush, processor ms": 1000 * spent[0] / len(times)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    rows = parser.parse_args().rows
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, CHROMIUM)))
    with TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        tables = [write_table(count, folder) for count in rows]
        browser = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        process, address, start = serve(folder)
        try:
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            page.goto(address)
            page.locator(".drop, .column").first.wait_for(timeout=LONGEST)
            print(f"page ready after the command, s: {time.perf_counter() - start:.2f}")
            page.locator(".demo").first.wait_for(timeout=LONGEST)  # libraries load in the background
            print(f"memory of the server without a table, MB: {memory(process)}")
            for table, count in zip(tables, rows, strict=True):
                print(f"{count:,} rows x {COLUMNS}")
                for key, value in visit(page, table, process).items():
                    print(f"  {key}: {value:.3g}", flush=True)
                print(f"  memory of the server after that, MB: {memory(process)}", flush=True)
        finally:
            process.terminate()
            browser.close()


if __name__ == "__main__":
    main()
