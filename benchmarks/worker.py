"""One measurement in a fresh process: ``python -m benchmarks.worker MODULE:FUNCTION COMPETITOR CASE``.

Prints one line of JSON: what the function returned, or the reason why there is nothing. It imports no
array library, so that the time of a first import can be taken here.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from benchmarks.competitors import ALL, Competitor


def run(target: str, key: str, case: dict[str, Any]) -> dict[str, Any]:
    name, function = target.split(":")
    module = import_module(f"benchmarks.{name}")
    measure, competitor = getattr(module, function), find(key, module)
    try:
        return measure(competitor, case)
    except ModuleNotFoundError as error:
        missing = error.name == competitor.package
        return {"error": "not installed" if missing else f"ModuleNotFoundError: {error}"}
    except Exception as error:  # one broken competitor must not end the race; the reason goes into the table
        return {"error": f"{type(error).__name__}: {error}"}


def find(key: str, module: ModuleType) -> Competitor:
    """One of the subject's own, or of those that several benchmarks compare."""
    own = {competitor.key: competitor for competitor in getattr(module, "COMPETITORS", ())}
    return own.get(key) or ALL[key]


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))))
