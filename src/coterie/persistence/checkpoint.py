"""The file of a fit that is not done yet."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from coterie.core.errors import CheckpointError, CheckpointWarning, ModelFileError, ParameterError
from coterie.core.protocols import Engine, Source
from coterie.core.writing import check_regular, place_of, remove_left_over, write_whole
from coterie.persistence import container
from coterie.persistence.decode import Decoder
from coterie.persistence.encode import Encoder
from coterie.persistence.fingerprint import differences, fingerprint
from coterie.persistence.rules import Lengths
from coterie.persistence.states import check_state, count_of

INTERVAL = 1.0  # seconds between two states that are written, at least
PATIENCE = 40.0  # times as long as writing one takes, at least


class CheckpointFile:
    """Keeps the states of one fit in a file: `coterie.core.checkpoint.Store`.

    The file is safetensors with JSON, like that of a model: nothing in it can run. It is replaced as a whole, about
    once a second and seldom enough to cost next to nothing, so that a fit that is killed at any moment leaves a whole
    file. A file of other rows, options or another version is refused, and so is one that is damaged.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        estimator: Any,
        source: Source,
        engine: Engine,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path, self.clock = as_place(path), clock
        self.source, self.fingerprint = source, fingerprint(estimator, source, engine)
        self.states: dict[str, Any] = {}
        self.began_with: np.random.Generator | None = None
        self.failed = self.left = False
        self.unread: tuple[Decoder, dict[str, Any]] | None = None  # states of a fit that was cut short
        if self.path.exists():
            self._open()
        self.due = self.clock() + INTERVAL

    # what a fit asks

    def read(self, name: str, model: Any) -> Any:
        if self.unread is not None:
            with self._refusing():
                self.states = self._decoded(*self.unread, model)
            self.unread = None
        return self.states.get(name)

    def write(self, name: str, make: Callable[[], Any], at_once: bool = False) -> None:
        began = self.clock()
        if self.left or (began < self.due and not at_once):
            return
        self.states[name] = make()
        self._save()
        ended = self.clock()
        self.due = ended + max(INTERVAL, PATIENCE * (ended - began))

    def chance(self, rng: np.random.Generator) -> np.random.Generator:
        if self.began_with is None:
            self.began_with = copy.deepcopy(rng)
            return rng
        return copy.deepcopy(self.began_with)

    def leave(self) -> None:
        self.left = True

    def remove(self) -> None:
        if self.left:
            return
        place = place_of(self.path)
        place.unlink(missing_ok=True)
        remove_left_over(place.parent)

    # the file

    def _save(self) -> None:
        encoder = Encoder(for_checkpoint=True)
        content = {
            "fingerprint": self.fingerprint,
            "chance": encoder.value(self.began_with, "chance"),
            "states": {name: encoder.value(self.states[name], name) for name in sorted(self.states)},
        }
        data = container.to_bytes(content, encoder.tensors, "checkpoint")
        try:
            write_whole(self.path, data, overwrite=True)
        except OSError as error:
            if not self.failed:
                warnings.warn(f"the checkpoint cannot be written: {error}", CheckpointWarning, stacklevel=2)
            self.failed = True

    def _open(self) -> None:
        with self._refusing():
            content, tensors = container.read(self.path, "checkpoint")
            told, chance, states = _parts(content)
            self._check_same(told)
            decoder = Decoder(tensors, for_checkpoint=True)
            self.began_with = decoder.value(chance, Lengths())
            if not isinstance(self.began_with, np.random.Generator):
                raise ModelFileError("it lacks the chance that the fit began with")
        self.unread = decoder, states

    def _decoded(self, decoder: Decoder, states: dict[str, Any], model: Any) -> dict[str, Any]:
        lengths = Lengths()
        lengths.known.update(K=count_of(model), D=int(self.source.shape[1]))  # arrays are as long as this fit's
        decoded = {name: decoder.value(state, lengths) for name, state in states.items()}
        decoder.check_all_used()
        for name, state in decoded.items():
            check_state(name, state, self.fingerprint["estimator"], model, self.source)
        return decoded

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except (ModelFileError, RecursionError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else error
            raise CheckpointError(
                f'cannot go on from the checkpoint "{self.path}": {why}. Delete the file to start anew'
            ) from None

    def _check_same(self, told: dict[str, str]) -> None:
        changed = differences(told, self.fingerprint)
        if changed:
            raise CheckpointError(
                f'the checkpoint "{self.path}" is of another fit: {"; ".join(changed)}. '
                "Use the same data and options to go on from it, or delete the file to start anew"
            )


def as_place(path: Any) -> Path:
    """Where the file goes; `ParameterError` where there cannot be one."""
    if not isinstance(path, str | PathLike):
        raise ParameterError(f"checkpoint must be None or the path of a file; got {path!r}")
    place = Path(path)
    if place.is_dir():
        raise ParameterError(f'checkpoint must be a file; "{place}" is a folder: add a name')
    check_regular(place)
    folder = place_of(place).parent if place.is_symlink() else place.parent
    if not folder.is_dir():
        raise ParameterError(f'checkpoint: there is no folder "{folder}"; create it first')
    return place


def _parts(content: Any) -> tuple[dict[str, str], Any, dict[str, Any]]:
    if not isinstance(content, dict) or set(content) != {"fingerprint", "chance", "states"}:
        raise ModelFileError("its content is no state of a fit")
    told, states = content["fingerprint"], content["states"]
    if not isinstance(told, dict) or not all(isinstance(value, str) for value in told.values()):
        raise ModelFileError("its fingerprint must be of texts")
    if not isinstance(states, dict):
        raise ModelFileError("its states must be an object")
    return told, content["chance"], states
