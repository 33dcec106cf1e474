"""Races: every competitor in a process of its own, in turns, over several rounds.

Turns, because a machine's clock and memory drift and that should hit all alike; processes, because thread
pools and BLAS libraries of one competitor disturb the next.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from platform import machine, processor, python_version
from typing import Any

from benchmarks import load
from benchmarks.competitors import OURS, Competitor
from benchmarks.report import NONE, Ratio, Result, Table, markdown

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "coterie",
    "numpy",
    "numba",
    "scikit-learn",
    "scikit-learn-intelex",
    "faiss-cpu",
    "pomegranate",
    "scikit-fuzzy",
    "tslearn",
    "dtaidistance",
    "aeon",
    "k-means-constrained",
    "fastcluster",
)
LONGEST = 1800.0  # seconds for one worker


@dataclass(frozen=True)
class Options:
    quick: bool = False
    rounds: int | None = None
    competitors: Sequence[str] = ()  # names to keep; none: all

    def turns(self, full: int, quick: int = 1) -> int:
        return self.rounds or (quick if self.quick else full)

    def admits(self, competitor: Competitor) -> bool:
        return not self.competitors or competitor.name in self.competitors


@dataclass
class Outcome:
    """What one competitor reported on one case, a report a round, or why there is none."""

    reports: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None

    def record(self, answer: dict[str, Any]) -> None:
        """A failure in any round fails the case: what went before it is not the same experiment."""
        self.error = answer.get("error")
        self.reports = [] if self.error else [*self.reports, answer]


Race = dict[str, Outcome]  # by competitor key


def race(
    target: str,
    case: Mapping[str, Any],
    competitors: Sequence[Competitor],
    rounds: int,
    *,
    options: Options,
    env: Mapping[str, str] | None = None,
) -> Race:
    """Ask every competitor once a round; ``target`` is ``module:function`` of this package."""
    entrants = [c for c in competitors if options.admits(c) and case.get("dtype", "float32") in c.dtypes]
    outcomes: Race = {c.key: Outcome() for c in entrants}
    for turn in range(rounds):
        first = turn % max(len(entrants), 1)  # nobody always runs after the same neighbour
        for competitor in entrants[first:] + entrants[:first]:
            outcome = outcomes[competitor.key]
            if outcome.error is None:
                answer = ask(target, competitor, {**case, "turn": turn}, env)
                outcome.record(answer)
    return outcomes


def ask(
    target: str, competitor: Competitor, case: Mapping[str, Any], env: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run one worker; its answer, and how many cores others used meanwhile."""
    answer: dict[str, Any] = {}
    foreign = load.foreign_cores(lambda: answer.update(_answer(target, competitor, case, env or {})))
    return answer | {"foreign_cores": foreign}


def _answer(target: str, competitor: Competitor, case: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """The last line that the worker prints."""
    command = [sys.executable, "-m", "benchmarks.worker", target, competitor.key, json.dumps(case)]
    environment = {**os.environ, **competitor.env, **env}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer after {LONGEST:.0f} s"}
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"error": f"exit status {done.returncode}: {last}"}
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def own_bytecode(folder: str) -> dict[str, str]:
    """Environment with a folder for bytecode. Installed peers have bytecode; a source tree may not."""
    return {"PYTHONPYCACHEPREFIX": str(Path(folder, "bytecode")), "PYTHONDONTWRITEBYTECODE": ""}


def best_variant(outcomes: Race, cost: Callable[[Outcome], float]) -> dict[str, Outcome]:
    """One outcome per library: its cheapest variant, or a failed one if all failed."""
    best: dict[str, Outcome] = {}
    for key, outcome in outcomes.items():
        name = key.partition(":")[0]
        if name not in best or _cost(outcome, cost) < _cost(best[name], cost):
            best[name] = outcome
    return best


def _cost(outcome: Outcome, cost: Callable[[Outcome], float]) -> float:
    return cost(outcome) if outcome.reports else float("inf")


def against_fastest(what: str, costs: Mapping[str, float], disturbed: bool = False) -> Ratio | None:
    """Ours beside the cheapest of the others; None where either is missing."""
    peers = {name: cost for name, cost in costs.items() if name != OURS}
    if OURS not in costs or not peers:
        return None
    peer = min(peers, key=peers.__getitem__)
    return Ratio(what, costs[OURS], peer, peers[peer], disturbed)


def cells(names: Sequence[str], best: Mapping[str, Outcome], show: Callable[[Outcome], str]) -> list[str]:
    """One table cell a library."""
    return [_cell(best[name], show) if name in best else NONE for name in names]


def _cell(outcome: Outcome, show: Callable[[Outcome], str]) -> str:
    if outcome.reports:
        return show(outcome)
    lacks_method = (outcome.error or "").startswith("NotImplementedError")
    return NONE if lacks_method else "not installed" if outcome.error == "not installed" else "failed"


def failures(races: Sequence[Race]) -> list[str]:
    """A note for each distinct failure, for the foot of a table."""
    outcomes = [(key, outcome) for outcomes in races for key, outcome in outcomes.items()]
    return list(dict.fromkeys(f"{key}: {outcome.error}" for key, outcome in outcomes if outcome.error))


def timing_notes(races: Sequence[Race]) -> list[str]:
    """Failures, and whether others were using the machine."""
    foreign = [cores_used for outcomes in races for cores_used in _foreign(outcomes)]
    disturbed = [cores_used for cores_used in foreign if cores_used > load.TOLERATED]
    if not disturbed:
        return failures(races)
    return [
        *failures(races),
        f"**Disturbed**: in {len(disturbed)} of {len(foreign)} measurements other processes used up to "
        f"{max(disturbed):.1f} cores. These times are not comparable; repeat on an idle machine.",
    ]


def is_disturbed(outcomes: Race) -> bool:
    return any(cores_used > load.TOLERATED for cores_used in _foreign(outcomes))


def _foreign(outcomes: Race) -> list[float]:
    reports = [report for outcome in outcomes.values() for report in outcome.reports]
    return [report["foreign_cores"] or 0.0 for report in reports]


def raw(outcomes: Race) -> dict[str, Any]:
    return {key: {"reports": o.reports, "error": o.error} for key, o in outcomes.items()}


def names_of(competitors: Sequence[Competitor]) -> list[str]:
    return list(dict.fromkeys(c.name for c in competitors))


def machine_table() -> Table:
    rows = [["processor", _processor()], ["cores", str(cores())], ["Python", python_version()]]
    rows += [[package, _version(package)] for package in PACKAGES]
    return Table("Machine", ["what", "value"], rows)


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "source tree" if find_spec(package) else "not installed"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else processor() or machine()


def parser(description: str) -> argparse.ArgumentParser:
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--quick", action="store_true", help="small sizes: does it run?")
    arguments.add_argument("--rounds", type=int, help="rounds of every race")
    arguments.add_argument("--competitor", action="append", default=[], help="only the library of this name")
    arguments.add_argument("--json", type=Path, metavar="FILE", help="write the raw numbers")
    return arguments


def options_from(arguments: argparse.Namespace) -> Options:
    return Options(arguments.quick, arguments.rounds, tuple(arguments.competitor))


def write_json(path: Path | None, results: Mapping[str, Result]) -> None:
    if path is not None:
        raw_numbers = {subject: result.raw for subject, result in results.items()}
        path.write_text(json.dumps(raw_numbers, indent=1))


def main(subject: str, run: Callable[[Options], Result]) -> None:
    """The command line of one benchmark."""
    arguments = parser(f"Benchmark: {subject}.").parse_args()
    result = run(options_from(arguments))
    for table in result.tables:
        print(markdown(table))
    write_json(arguments.json, {subject: result})
