"""``python -m fuzz``: run the fuzzer, or repeat one case."""

from __future__ import annotations

import argparse
import contextlib
import re
import secrets
import sys
import tempfile

from fuzz.registry import load, pairs
from fuzz.report import Report
from fuzz.run import Settings, run
from fuzz.worker import run_case


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 if there is a finding, else 0."""
    parser = _parser()
    options = parser.parse_args(arguments)
    load(options.laws)
    if not any(re.search(options.only, f"{subject}: {law.name}") for law, subject in pairs()):
        parser.error(f'--only {options.only!r} matches no "subject: law"; names of laws are written with spaces')
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    if options.case is not None:
        return repeat(seed, options.case, options.engine, options.laws)
    print(f"fuzz: seed {seed}, {options.minutes:g} minutes, {options.workers} workers", flush=True)
    names = ("engine", "only", "workers", "timeout", "cases", "laws")
    settings = Settings(seed, 60 * options.minutes, **{name: getattr(options, name) for name in names})
    report = run(settings, lambda text: print(text, flush=True))
    print(report.summary())
    return 1 if report.findings else 0


def repeat(seed: int, number: int, engine: str, laws: str) -> int:
    """Run one case in this process; Hypothesis makes the example of a finding as small as it can."""
    report = Report(seed, engine, laws)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        result = run_case(seed, number, engine, shrink=True)
    report.add(result, print)
    if result["finding"] is None:
        print(f"case {number}, {result['subject']}: {result['law']}: no finding")
    return 1 if report.findings else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Random cases against the laws of coterie.")
    parser.add_argument("--minutes", type=float, default=1.0, help="time to run, in minutes (default 1)")
    parser.add_argument("--seed", type=int, help="seed of the run (default: random)")
    parser.add_argument("--case", type=int, help="repeat this case of the run with that seed")
    parser.add_argument(
        "--cases", type=int, help="run the first cases only, this many (default: until the time is over)"
    )
    parser.add_argument("--engine", choices=["serial", "threads", "both"], default="both", help="engine of estimators")
    parser.add_argument("--only", default="", help='regular expression, searched for in "subject: law"')
    parser.add_argument("--workers", type=int, default=2, help="processes that run cases (default 2)")
    parser.add_argument("--laws", default="fuzz.laws", help="module with the laws to check (default fuzz.laws)")
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds before a case counts as a hang")
    return parser


if __name__ == "__main__":
    sys.exit(main())
