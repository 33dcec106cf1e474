"""``python -m peers``: run the tests of other libraries, and compare the failures with the lists in `differences/`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SUITES = (
    "hdbscan.tests.test_hdbscan",
    "scipy.cluster.tests.test_hierarchy",
    "scipy.spatial.tests.test_distance",
    "sklearn.cluster.tests.test_bisect_k_means",
    "sklearn.cluster.tests.test_dbscan",
    "sklearn.cluster.tests.test_hdbscan",
    "sklearn.cluster.tests.test_hierarchical",
    "sklearn.cluster.tests.test_k_means",
    "sklearn.metrics.cluster.tests.test_common",
    "sklearn.metrics.cluster.tests.test_supervised",
    "sklearn.metrics.cluster.tests.test_unsupervised",
    "sklearn.mixture.tests.test_bayesian_mixture",
    "sklearn.mixture.tests.test_gaussian_mixture",
    "sklearn.mixture.tests.test_mixture",
)


def main(arguments: list[str]) -> int:
    """Exit code 1 if a test fails that is not listed, or a listed one passes."""
    unexpected: list[str] = []
    obsolete: list[str] = []
    passed = as_listed = 0
    for suite in [suite for suite in SUITES if not arguments or any(part in suite for part in arguments)]:
        outcomes = run(suite)
        failed = {name for name, results in outcomes.items() if "failed" in results}
        listed = set(differences(suite))
        passed, as_listed = passed + len(outcomes) - len(failed), as_listed + len(failed & listed)
        unexpected += sorted(failed - listed)
        obsolete += sorted(listed - failed)
        print(
            f"{suite}: {len(outcomes)} tests, {len(failed)} differ, {len(failed & listed)} of them as listed",
            flush=True,
        )
    for name in unexpected:
        print(f"unexpected: {name}")
    for name in obsolete:
        print(f"passes, or does not exist any more: {name} (remove it from peers/differences)")
    print(f"{passed} pass, {as_listed} differ as listed in peers/differences, {len(unexpected)} differ unexpectedly")
    return 1 if unexpected or obsolete else 0


def differences(suite: str) -> list[str]:
    """Tests of the suite that fail on purpose; comments in the file state the reasons."""
    lines = (HERE / "differences" / f"{suite}.txt").read_text(encoding="utf-8").splitlines()
    return [f"{suite}::{line}" for line in lines if line and not line.startswith("#")]


def run(suite: str) -> dict[str, list[str]]:
    """Outcomes of all cases of each test."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "outcomes.json"
        command = [
            sys.executable, "-m", "pytest", "-p", "peers.plugin", "-p", "no:cacheprovider", "-c", os.devnull,
            "--rootdir", folder, "-q", "--tb=short", "--pyargs", suite,
        ]  # fmt: skip
        environment = os.environ | {
            "PEERS_OUTCOMES": str(path),
            "PEERS_LIBRARY": suite.partition(".")[0],
            "PYTHONPATH": os.pathsep.join([str(HERE.parent), *sys.path]),
        }
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
        (HERE / "log").mkdir(exist_ok=True)
        (HERE / "log" / f"{suite}.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
        if not path.is_file():
            raise SystemExit(f"{suite} could not be run:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        outcomes: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
    return {
        f"{suite}::{name.rpartition('::')[2] if name.count('::') == 1 else name.split('::', 1)[1]}": results
        for name, results in outcomes.items()
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
