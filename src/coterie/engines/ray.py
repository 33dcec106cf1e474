"""The Ray engine: actors hold the parts, and a pass is one call of each actor."""

import itertools
import os
import pickle
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from coterie import interrupts
from coterie.core.in_memory import is_in_memory
from coterie.core.packages import required
from coterie.core.placement import choose_workers
from coterie.core.protocols import Chunk, Source
from coterie.engines.passes import ClusterEngine, HeldParts, Ledger, Order, Reply, values_in_order
from coterie.errors import ClusterError, ParameterError

POLL = 0.2  # seconds between two checks for Ctrl-C


@dataclass(frozen=True)
class Ray(ClusterEngine):
    """The Ray cluster that this process is connected to, with one actor for each of its `n_actors` shares of the rows.

    `n_actors` is by default the number of nodes. An actor uses `n_threads` threads, by default its share of the cores.
    """

    n_actors: int | None = None
    n_threads: int | None = None

    def _new_placement(self, source: Source) -> Any:
        import ray

        n_actors = self.n_actors or _node_count()
        cores = int(ray.cluster_resources().get("CPU", 1))
        return RayPlacement(source, n_actors, self.n_threads or max(1, cores // n_actors))


class RayPlacement:
    """The parts of one source in actors."""

    def __init__(self, source: Source, n_actors: int, n_threads: int) -> None:
        import ray

        self.ray, self.ledger, self.n_threads = ray, Ledger(), n_threads
        self.source, self.is_local = weakref.ref(source), is_in_memory(source)
        parts = source.parts()
        self.n_parts = len(parts)
        self.actor_class = ray.remote(num_cpus=n_threads, max_concurrency=1)(Actor)
        self.actors: dict[str, Any] = {}
        self.held: dict[str, list[int]] = {}
        names = [self._start() for _ in range(min(n_actors, self.n_parts))]
        sizes = [getattr(part, "rows", 1) for part in parts]
        self._load(range(self.n_parts), choose_workers(sizes, dict.fromkeys(names, n_threads), [None] * self.n_parts))

    def holders(self) -> dict[str, list[int]]:
        return dict(self.held)

    def ask(self, order: Order, parts: dict[str, list[int]]) -> dict[str, Reply | None]:
        shared = self.ray.put(self.ray.cloudpickle.dumps(order))
        calls = {name: self.actors[name].run.remote(shared, parts[name]) for name in parts}
        return {name: self._result(name, call) for name, call in calls.items()}

    def recover(self, parts: list[int]) -> dict[str, list[int]]:
        """Load the parts of actors that have ended into the others, or into a new one if none is left."""
        names = list(self.actors) or [self._start()]
        return self._load(parts, [name for name, _ in zip(itertools.cycle(names), parts)])

    def values(self, replies: Iterator[tuple[str, Reply]]) -> list[Any]:
        return values_in_order(replies, self.n_parts)

    def _start(self) -> str:
        actor = self.actor_class.remote(self.n_threads)
        name = str(actor._actor_id.hex())
        self.actors[name] = actor
        return name

    def _load(self, parts: Any, names: list[str]) -> dict[str, list[int]]:
        loaded: dict[str, list[int]] = {}
        for part, name in zip(parts, names, strict=True):
            loaded.setdefault(name, []).append(part)
        source = self.source()
        assert source is not None
        loaders = source.parts()
        calls = {
            name: [self.actors[name].load.remote(part, self._pickled(loaders[part])) for part in mine]
            for name, mine in loaded.items()
        }
        for name, mine in loaded.items():
            for call in calls[name]:
                self._result(name, call)
            self.held[name] = sorted({*self.held.get(name, []), *mine})
        return loaded

    def _pickled(self, loader: Any) -> Any:
        """What the actor calls to get the chunk of a part, as bytes; rows of this process are sent."""
        return self.ray.cloudpickle.dumps(partial(_same, loader()) if self.is_local else loader)

    def _result(self, name: str, call: Any) -> Any:
        """The result of a call; None if its actor has ended."""
        try:
            while not self.ray.wait([call], timeout=POLL)[0]:
                interrupts.check()
            return self.ray.get(call)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except self.ray.exceptions.RayActorError:
            self.actors.pop(name, None)
            self.held.pop(name, None)
            return None
        except (ConnectionError, self.ray.exceptions.RaySystemError) as error:
            raise ClusterError(f"the Ray cluster does not answer ({error}): start it, and fit again") from error


class Actor:
    """The parts that one actor holds. Arguments are bytes: arrays of Ray are read-only, which kernels are not for."""

    def __init__(self, n_threads: int) -> None:
        self.held, self.n_threads = HeldParts({}), n_threads

    def process(self) -> int:
        """The number of the process of this actor."""
        return os.getpid()

    def load(self, part: int, loader: bytes) -> None:
        self.held.places[part] = pickle.loads(loader)()

    def run(self, order: bytes, parts: list[int]) -> Reply:
        return self.held.run(pickle.loads(order), parts, _same, self.n_threads)


def _same(chunk: Chunk) -> Chunk:
    return chunk


@contextmanager
def connection(name: str) -> Iterator[tuple[Ray, int]]:
    """Context in which this process is connected to a cluster: the engine, and its number of actors."""
    ray = _ray()
    was_connected = ray.is_initialized()
    engine = connected(name)
    try:
        yield engine, _node_count()
    finally:
        if not was_connected:
            ray.shutdown()


def connected(name: str) -> Ray:
    """The engine 'ray', connected to the cluster at the address in its name, or to one that is started here."""
    ray = _ray()
    if not ray.is_initialized():
        try:
            ray.init(address=name if ":" in name else None, log_to_driver=False)
        except (ConnectionError, ImportError, RuntimeError, ValueError) as error:
            raise ParameterError(
                f"could not connect to a Ray cluster at {name}: {error}. Check the address, that the cluster is "
                "running, and RAY_AUTH_TOKEN if it requires a token"
            ) from error
    return Ray()


def _ray() -> Any:
    with required('engine="ray" requires the package ray: pip install "coterie[ray]"'):
        import ray
    return ray


def _node_count() -> int:
    """The number of nodes of the cluster; those that have ended stay in the list of Ray."""
    return sum(node["Alive"] for node in _ray().nodes())
