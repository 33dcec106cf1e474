"""A process that runs cases: numbers in on standard input, results out as JSON lines."""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import sys
import time
from typing import Any

import hypothesis
from hypothesis import Phase
from hypothesis import strategies as st

from fuzz.draw import HypothesisDraw, RandomDraw
from fuzz.finding import Rejected, from_exception
from fuzz.law import Case, Law
from fuzz.registry import law_of, load

EXAMPLES = 8  # examples of a case that Hypothesis draws
HYPOTHESIS_SHARE = 0.2  # of the cases


def run_case(seed: int, number: int, engine: str = "both", shrink: bool = False) -> dict[str, Any]:
    """Run one case. The result says whether the input was rejected, and has the finding if there is one."""
    law, subject = law_of(seed, number)
    notes: list[str] = []
    began, finding, rejected = time.monotonic(), None, False
    try:
        if law.hypothesis and RandomDraw(seed, number, 1).happens(HYPOTHESIS_SHARE):
            _by_hypothesis(law, subject, engine, notes, seed + number, shrink)
        else:
            law.check(Case(subject, RandomDraw(seed, number), engine, notes))
    except Rejected:
        rejected = True
    except BaseException as error:
        finding = from_exception(number, law.name, subject, _first(error)).to_dict()
        finding["details"] = "".join(f"  {note}\n" for note in notes) + finding["details"]
    return {
        "case": number,
        "law": law.name,
        "subject": subject,
        "rejected": rejected,
        "seconds": time.monotonic() - began,
        "finding": finding,
    }


def _by_hypothesis(law: Law, subject: str, engine: str, notes: list[str], seed: int, shrink: bool) -> None:
    """Let Hypothesis draw some examples; with `shrink`, it looks for the smallest one that fails."""
    accepted = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        database=None,
        deadline=None,
        max_examples=EXAMPLES,
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
        suppress_health_check=list(hypothesis.HealthCheck),
        report_multiple_bugs=False,
        verbosity=hypothesis.Verbosity.quiet,
    )
    @hypothesis.given(st.data())
    def check(data: st.DataObject) -> None:
        notes[:] = ["drawn by Hypothesis"]
        try:
            law.check(Case(subject, HypothesisDraw(data), engine, notes))
            accepted.append(True)
        except Rejected:
            pass

    check()
    if not accepted:
        raise Rejected("all examples were rejected")


def _first(error: BaseException) -> BaseException:
    """The error itself, without the group in which Hypothesis reports an error that did not occur again."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def main() -> None:
    """Serve cases until standard input ends. A case over the time limit ends the process with a traceback."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--timeout", type=float, required=True)
    parser.add_argument("--laws", required=True)
    parser.add_argument("--results", type=int, required=True, help="file descriptor to write to")
    options = parser.parse_args()
    load(options.laws)
    with os.fdopen(options.results, "w") as results:
        print("ready", file=results, flush=True)
        for line in sys.stdin:
            faulthandler.dump_traceback_later(options.timeout, exit=True)
            result = run_case(options.seed, int(line), options.engine)
            faulthandler.cancel_dump_traceback_later()
            print(json.dumps(result), file=results, flush=True)


if __name__ == "__main__":
    faulthandler.enable()
    main()
