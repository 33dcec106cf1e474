"""One measurement in a fresh process: ``python -m benchmarks.worker MODULE:FUNCTION COMPETITOR CASE``.

Prints one line of JSON: what the function returned, or the reason why there is nothing. It imports no
array library, so that the time of a first import can be taken here.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

from benchmarks.competitors import ALL, Competitor


def run(target: str, competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    module, function = target.split(":")
    measure = getattr(import_module(f"benchmarks.{module}"), function)
    try:
        return measure(competitor, case)
    except ModuleNotFoundError as error:
        missing = error.name == competitor.package
        return {"error": "not installed" if missing else f"ModuleNotFoundError: {error}"}
    except Exception as error:  # one broken competitor must not end the race; the reason goes into the table
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], ALL[sys.argv[2]], json.loads(sys.argv[3]))))
