"""A run: workers, the clock, and what they found."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TextIO

from fuzz.finding import ROOT, Finding
from fuzz.registry import law_of, load
from fuzz.report import Report


@dataclass(frozen=True)
class Settings:
    """Options of a run."""

    seed: int
    seconds: float
    engine: str = "both"
    only: str = ""  # regular expression, searched for in "subject: law"
    workers: int = 2
    timeout: float = 240.0  # seconds after which a case is taken to hang
    cases: int | None = None  # numbers of cases to run at most
    laws: str = "fuzz.laws"  # module that registers the laws


class Worker:
    """A process that runs cases; it may crash, and is then replaced by another."""

    def __init__(self, settings: Settings) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="fuzz-")  # for the files of the laws
        self.log = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115  (open as long as the process)
        receive, send = os.pipe()
        options = {name: getattr(settings, name) for name in ("seed", "engine", "timeout", "laws")} | {"results": send}
        command = [sys.executable, "-m", "fuzz.worker"]
        paths = os.pathsep.join(filter(None, [str(ROOT), *sys.path]))
        self.process = subprocess.Popen(
            command + [f"--{name}={value}" for name, value in options.items()],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self.log, text=True, pass_fds=[send],
            start_new_session=True,  # Ctrl-C is for the parent, which ends the workers itself
            env=os.environ | {"PYTHONPATH": paths}, cwd=self.folder.name,
        )  # fmt: skip
        os.close(send)
        self.results: TextIO = os.fdopen(receive)
        self.results.readline()

    def run(self, number: int) -> dict[str, Any] | None:
        """The result of a case; None if the process ended."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{number}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        line = self.results.readline()
        return json.loads(line) if line.endswith("\n") else None

    def last_words(self) -> str:
        """What the process wrote before it ended: the traceback of faulthandler."""
        code = self.process.wait()
        self.log.seek(0)
        return f"exit code {code}\n{self.log.read()[-6000:]}"

    def end(self) -> None:
        """Stop the process if it still runs, and remove its files."""
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()


def run(settings: Settings, show: Callable[[str], None]) -> Report:
    """Run cases until the time is over, and show each new finding at once."""
    load(settings.laws)
    report = Report(settings.seed, settings.engine, settings.laws)
    numbers, deadline = _numbers(settings), time.monotonic() + settings.seconds
    lock, workers = threading.Lock(), list[Worker]()

    def serve() -> None:
        worker = Worker(settings)
        workers.append(worker)
        while time.monotonic() < deadline:
            with lock:
                number = next(numbers, None)
            if number is None:
                break
            result = worker.run(number)
            if result is None:
                result = _ended(settings.seed, number, worker.last_words())
                worker.end()
                worker = Worker(settings)
                workers.append(worker)
            with lock:
                report.add(result, show)

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(settings.workers)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        show("interrupted")
    finally:
        for worker in workers:
            worker.end()
    return report


def _numbers(settings: Settings) -> Iterator[int]:
    """Numbers of the cases to run, in order. A pattern leaves cases out and renumbers none."""
    pattern = re.compile(settings.only)
    for number in itertools.count() if settings.cases is None else range(settings.cases):
        law, subject = law_of(settings.seed, number)
        if pattern.search(f"{subject}: {law.name}"):
            yield number


def _ended(seed: int, number: int, words: str) -> dict[str, Any]:
    """The result of a case that ended its process."""
    law, subject = law_of(seed, number)
    kind = "hang" if "Timeout (" in words else "crash"
    inner = re.search(r'File ".*/coterie/(.*)", line (\d+)', words)
    place = f"{inner[1]}:{inner[2]}" if inner else "unknown"
    message = "the case took longer than the time limit" if kind == "hang" else "the process ended"
    finding = Finding(number, law.name, subject, kind, place, message, words)
    return {"case": number, "law": law.name, "subject": subject, "rejected": False, "seconds": 0.0,
            "finding": finding.to_dict()}  # fmt: skip
