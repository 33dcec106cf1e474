"""Save fitted models to files, and load them."""

import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coterie.core.writing import write_whole
from coterie.errors import ModelFileError
from coterie.persistence import classes, container
from coterie.persistence.decode import Decoder
from coterie.persistence.encode import Encoder
from coterie.persistence.trial_predictions import as_model_file_errors, check_predictions


def save(model: Any, path: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Save a fitted model to a file.

    The file format is safetensors. Arrays have the names of their attributes, and any safetensors reader can read
    them; the rest is JSON. The file is written atomically, and equal models give equal bytes.

    Parameters
    ----------
    model : estimator of coterie, or a Pipeline of scikit-learn that ends in one
        The fitted model. Other steps of a Pipeline can be SimpleImputer, StandardScaler, MinMaxScaler and RobustScaler.
    path : str or path
        Path of the file; it must end in ``.safetensors``.
    overwrite : bool, default=False
        Replace an existing file. The new file has the same mode and owner. If `path` is a symbolic link, the file that
        it points to is replaced.

    Raises
    ------
    FileExistsError
        If the file exists and `overwrite` is False.
    ModelFileError
        If the model contains something that cannot be saved: user-defined functions, families or distances, or values
        that are not finite, such as the covariances of columns in the order of 1e180.

    Warns
    -----
    DroppedOptionWarning
        If the model has a `callback`, which is not saved.

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
    file = Path(path)
    container.check_path(file, overwrite)
    name = classes.model_name(model)
    if name == classes.PIPELINE:
        classes.check_steps(model.steps)
    if name is not None:
        check_is_fitted(model.steps[-1][1] if name == classes.PIPELINE else model)
    encoder = Encoder()
    content = encoder.model(model)
    try:
        _decode(container.parse(json.dumps(content)), encoder.tensors)
    except ModelFileError as error:
        raise ModelFileError(f"the model cannot be saved, because it could not be loaded: {error}") from None
    write_whole(file, container.to_bytes(content, encoder.tensors), overwrite)


def load(path: str | PathLike[str]) -> Any:
    """Load a model that `save` wrote.

    A file contains no executable code: it names classes from a fixed list, whose fields are numbers, texts and arrays.
    Types and shapes are checked, and the model must be able to predict a few rows. A file that is damaged, edited, of
    another format, or with unknown content is rejected.

    Parameters
    ----------
    path : str or path
        Path of the file.

    Returns
    -------
    estimator
        The model with the same options; its predictions are identical to the last bit.

    Raises
    ------
    ModelFileError
        If the file was not written by `save`, or was changed; the message states the reason.

    Examples
    --------
    >>> import tempfile
    >>> import coterie
    >>> model = coterie.KMeans(2, random_state=0).fit([[1.0], [2.0], [8.0], [9.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     coterie.save(model, f"{folder}/model.safetensors")
    ...     loaded = coterie.load(f"{folder}/model.safetensors")
    >>> loaded.n_clusters
    2
    """
    file = Path(path)
    try:
        return _decode(*container.read(file))
    except RecursionError:
        raise ModelFileError(f'cannot load "{file}": it is nested too deeply') from None
    except ModelFileError as error:
        raise ModelFileError(f'cannot load "{file}": {error}') from None


def _decode(content: Any, tensors: dict[str, np.ndarray]) -> Any:
    """The model with this content, after a check that it can predict."""
    with as_model_file_errors("it is malformed"):
        model = Decoder(tensors).whole(content)
    check_predictions(model)
    return model
