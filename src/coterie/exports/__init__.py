"""Export fitted models as SQL, ONNX or Python code that predicts the same clusters without coterie.

`model_rule` reads a model into a `PredictionRule`, plain data; one file per format writes the rule. Importing this
package is cheap.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from coterie.exports.prediction_rule import PredictionRule

__all__ = ["Dialect", "ExportFormat", "export"]

ExportFormat: TypeAlias = Literal["sql", "onnx", "python"]
Dialect: TypeAlias = Literal["duckdb", "sqlite", "postgresql"]


def export(
    model: Any,
    to: str,
    path: str | PathLike[str] | None = None,
    *,
    table: str = "data",
    dialect: str = "duckdb",
    overwrite: bool = False,
) -> str | bytes:
    """Export a fitted model as SQL, ONNX or Python code, which predicts the same clusters without coterie.

    The export contains the preparation of the columns (categories, missing values, scaling) and `predict`. The page
    "Export to SQL, ONNX and Python" lists the models that can be exported, and when a label can differ by rounding.

    Parameters
    ----------
    model : estimator, Pipeline, str or path
        The fitted model, a scikit-learn Pipeline that ends in one, or a model file.
    to : {'sql', 'onnx', 'python'}
        'sql' is one SELECT statement that adds a column `cluster` to the rows of a table. 'onnx' is an ONNX model in
        double precision; it needs ``pip install "coterie[onnx]"``. 'python' is a module with a function `predict` for
        one row; it imports only `math`.
    path : str, path or None, default=None
        File to write.
    table : str, default='data'
        Name of the table in SQL; a dot separates a schema from a table.
    dialect : {'duckdb', 'sqlite', 'postgresql'}, default='duckdb'
        Dialect of SQL.
    overwrite : bool, default=False
        Replace an existing file.

    Returns
    -------
    str or bytes
        The text of SQL or Python, or the bytes of an ONNX model; also if it is written to a file.

    Raises
    ------
    ParameterError
        If the model cannot be exported; the message names what can be done instead.

    Examples
    --------
    >>> import coterie
    >>> model = coterie.KMeans(2, random_state=0).fit([[1.0], [2.0], [8.0], [9.0]])
    >>> scope = {}
    >>> exec(coterie.export(model, to="python"), scope)
    >>> scope["predict"]({"x0": 3.0}) == model.predict([[3.0]])[0]
    np.True_
    """
    from coterie.core.arguments import one_of
    from coterie.core.writing import check_path, write_whole
    from coterie.exports.model_rule import rule_of
    from coterie.persistence import load

    one_of("to", to, get_args(ExportFormat))
    one_of("dialect", dialect, get_args(Dialect))
    if path is not None:
        check_path(Path(path), overwrite)
    rule = rule_of(load(model) if isinstance(model, str | PathLike) else model)
    content = written(rule, to, table, dialect)
    if path is not None:
        write_whole(Path(path), content.encode() if isinstance(content, str) else content, overwrite)
    return content


def written(rule: PredictionRule, to: str, table: str, dialect: str) -> str | bytes:
    """A prediction rule in one of the formats."""
    if to == "sql":
        from coterie.exports.sql import as_sql

        return as_sql(rule, table, dialect)
    if to == "onnx":
        from coterie.exports.onnx_model import as_onnx

        return as_onnx(rule)
    from coterie.exports.python_module import as_python

    return as_python(rule)
