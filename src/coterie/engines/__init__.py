"""Engines run computations on the parts of a source: serially, in threads, on a GPU, or on a Dask or Ray cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from coterie.core.placement import current_client
from coterie.core.protocols import ClusterEngine, Engine, Source
from coterie.errors import ParameterError
from coterie.machine import thread_count

__all__ = ["as_engine", "released_on_error"]


@contextmanager
def released_on_error(engine: Engine, source: Source) -> Iterator[None]:
    """Context that frees the memory of a cluster after an error; a traceback would keep the source until the next."""
    try:
        yield
    except BaseException:
        if isinstance(engine, ClusterEngine):
            engine.release(source)
        raise


def as_engine(engine: Any, source: Source, n_jobs: int | None = None) -> Engine:
    """Return the engine with the name `engine`; "auto" is the default engine of `source`.

    Parameters
    ----------
    engine : {'auto', 'serial', 'threads', 'dask', 'ray'} or Engine
        Name of an engine; 'ray://host:10001' includes the address of a cluster. Or an object with the methods `sum`,
        `scan` and `map`, which is returned.
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
        if source.engine != "dask" and current_client() is None:
            raise ParameterError(
                "engine must be 'auto', 'serial' or 'threads' for data in memory; got 'dask', which requires a Dask "
                "array or an open client of a cluster: convert X with dask.array.from_array, or create a "
                "distributed.Client"
            )
        from coterie.engines.dask import Dask

        return Dask()
    if name == "ray" or name.startswith("ray:"):
        from coterie.engines.ray import connected

        return connected(name)
    raise ParameterError(f"engine must be 'auto', 'serial', 'threads', 'dask', 'ray' or an Engine; got {engine!r}")
