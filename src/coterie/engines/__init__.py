"""Engines run computations on the parts of a source: serially, in threads, on a GPU, or on a Dask cluster."""

from __future__ import annotations

from typing import Any

from coterie.core.protocols import Engine, Source
from coterie.errors import ParameterError
from coterie.machine import thread_count

__all__ = ["as_engine"]


def as_engine(engine: Any, source: Source, n_jobs: int | None = None) -> Engine:
    """Return the engine with the name `engine`; "auto" is the default engine of `source`.

    Parameters
    ----------
    engine : {'auto', 'serial', 'threads', 'dask'} or Engine
        Name of an engine, or an object with the methods `sum`, `scan` and `map`, which is returned.
    source : Source
        The rows to compute on.
    n_jobs : int or None, default=None
        Number of threads of 'threads'. None uses all cores.

    Returns
    -------
    Engine

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.data import as_source
    >>> from coterie.engines import as_engine
    >>> as_engine("threads", as_source(np.zeros((5, 2))), n_jobs=2)
    Threads(n_jobs=2)
    """
    if not isinstance(engine, str):
        if isinstance(engine, Engine):
            return engine
        raise ParameterError(f"engine must be a name or an object with the methods sum, scan and map; got {engine!r}")
    thread_count(n_jobs)  # an invalid n_jobs is an error on every engine, although only 'threads' uses it
    name = source.engine if engine == "auto" else engine
    if source.engine == "cuda":
        if name != "cuda":
            raise ParameterError(f"engine={name!r} cannot compute on a GPU: leave engine='auto', or use device='cpu'")
        from coterie.engines.cuda import Cuda

        return Cuda()
    if name in ("serial", "threads"):
        from coterie.engines.local import Serial, Threads

        if source.engine == "dask":
            raise ParameterError(f"engine={name!r} cannot read a Dask array: use engine='dask', or pass X.compute()")
        return Serial() if name == "serial" else Threads(n_jobs)
    if name == "dask":
        if source.engine != "dask":
            raise ParameterError(
                "engine must be 'auto', 'serial' or 'threads' for data in memory; got 'dask', which requires a Dask "
                "array: convert X with dask.array.from_array"
            )
        from coterie.engines.dask import Dask

        return Dask()
    raise ParameterError(f"engine must be 'auto', 'serial', 'threads', 'dask' or an Engine; got {engine!r}")
