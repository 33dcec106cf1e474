"""Where: `as_engine` turns a name, or an engine, into an engine."""

from __future__ import annotations

from typing import Any

from coterie.core.errors import ParameterError
from coterie.core.protocols import Engine, Source
from coterie.machine import thread_count

__all__ = ["as_engine"]


def as_engine(engine: Any, source: Source, n_jobs: int | None = None) -> Engine:
    """The engine called `engine`; "auto" is the one that fits `source`."""
    if not isinstance(engine, str):
        if all(hasattr(engine, verb) for verb in ("sum", "scan", "map")):
            found: Engine = engine
            return found
        raise ParameterError(f"engine must be a name or have sum, scan and map; got {engine!r}")
    thread_count(n_jobs)  # an invalid number is an error on every engine, though one alone uses it
    name = source.engine if engine == "auto" else engine
    if name in ("serial", "threads"):
        from coterie.engines.local import Serial, Threads

        if source.engine == "dask":
            raise ParameterError(f"engine={name!r} cannot read a Dask array; use engine='dask', or X.compute() first")
        return Serial() if name == "serial" else Threads(n_jobs)
    if name == "dask":
        if source.engine != "dask":
            raise ParameterError(
                "engine must be 'auto', 'serial' or 'threads' for rows in memory; 'dask' needs a Dask array "
                "(dask.array.from_array makes one)"
            )
        from coterie.engines.dask import Dask

        return Dask()
    raise ParameterError(f"engine must be 'auto', 'serial', 'threads', 'dask' or an Engine; got {engine!r}")
