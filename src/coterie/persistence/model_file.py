"""Save a fitted model, and load it."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from coterie.core.errors import ModelFileError
from coterie.core.writing import write_whole
from coterie.persistence import classes, container
from coterie.persistence.decode import Decoder
from coterie.persistence.encode import Encoder
from coterie.persistence.trial import check_answers, raising


def save(model: Any, path: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Write a fitted model to a file.

    The file is safetensors: arrays under the names of their attributes, which any program can read, and the rest as
    JSON. It appears whole or not at all, and the same model gives the same bytes.

    Parameters
    ----------
    model : estimator of coterie, or a Pipeline of scikit-learn that ends in one
        Fitted. Before it in the Pipeline there may be SimpleImputer, StandardScaler, MinMaxScaler and RobustScaler.
    path : str or path
        Ends in ``.safetensors``.
    overwrite : bool, default=False
        Whether a file that is there already may be replaced. The new one has its mode and owner; if `path` is a
        symbolic link, the file it points to is replaced.

    Raises
    ------
    FileExistsError
        If there is a file and `overwrite` is false.
    ModelFileError
        If the model holds what a file cannot: functions, families or distances of your own.

    Warns
    -----
    DroppedOptionWarning
        Of a `callback`, which is not written.

    Examples
    --------
    >>> import tempfile
    >>> import coterie
    >>> model = coterie.KMeans(2, random_state=0).fit([[1.0], [2.0], [8.0], [9.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     coterie.save(model, f"{folder}/model.safetensors")
    ...     again = coterie.load(f"{folder}/model.safetensors")
    >>> again.predict([[3.0]]) == model.predict([[3.0]])
    array([ True])
    """
    place = Path(path)
    container.check_place(place, overwrite)
    _check_fitted(model)
    encoder = Encoder()
    content = encoder.model(model)
    write_whole(place, container.to_bytes(content, encoder.tensors), overwrite)


def load(path: str | PathLike[str]) -> Any:
    """The model in a file that `save` wrote.

    Nothing in a file can run: it names classes out of a fixed list, and what they hold is numbers, texts and arrays,
    checked before use: types, shapes, and whether the model can answer a few rows. What is damaged, edited, of a newer
    format, or not known is refused.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator
        As it was saved: the same options, and the same answers to the last bit.

    Raises
    ------
    ModelFileError
        If the file is not as `save` writes them; the message says what was found.
    """
    place = Path(path)
    try:
        content, tensors = container.read(place)
        with raising("it is malformed"):
            model = Decoder(tensors).whole(content)
        check_answers(model)
        return model
    except RecursionError:
        raise ModelFileError(f'cannot load "{place}": it is nested too deeply') from None
    except ModelFileError as error:
        raise ModelFileError(f'cannot load "{place}": {error}') from None


def _check_fitted(model: Any) -> None:
    name = classes.model_name(model)
    if name == classes.PIPELINE:
        classes.check_steps(model.steps)
    if name is not None:
        check_is_fitted(model.steps[-1][1] if name == classes.PIPELINE else model)
