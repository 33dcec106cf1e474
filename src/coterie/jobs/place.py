"""Where a fit runs: in this process, or by Dask."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from coterie.algorithms import METHODS, method_of
from coterie.core.errors import ParameterError

LOCAL, DASK = "local", "dask"


def check_engine(engine: str, method: str) -> None:
    """Refuse an engine that is none, or that the method cannot run on."""
    name, colon, address = engine.partition(":")
    if name not in (LOCAL, DASK) or (colon and (name == LOCAL or not address)):
        raise ParameterError(f'--engine takes local, dask or dask:tcp://host:8786, not "{engine}".')
    if name == DASK and not method_of(method).anywhere:
        owners = ", ".join(other for other, its in METHODS.items() if its.anywhere)
        raise ParameterError(f"--engine dask is for {owners}; {method} needs all rows in one memory.")


@contextmanager
def rows_for(engine: str, X: Any) -> Iterator[Any]:
    """The rows as the engine takes them, while what they lie on is there."""
    if engine == LOCAL:
        yield X
        return
    try:
        from coterie.data.dask import in_blocks
        from coterie.engines.dask import connected
    except ModuleNotFoundError as error:
        raise ParameterError('--engine dask needs one more package. Run: pip install "coterie[dask]"') from error
    with connected(engine.partition(":")[2]):
        yield in_blocks(X)
