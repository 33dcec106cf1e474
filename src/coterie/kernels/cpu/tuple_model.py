"""Namedtuples of arrays as one LLVM type with a name, which functions receive by address.

Numba passes a tuple as all of the numbers in it, of which each array has at least seven, and spells out the type of the
tuple wherever one is used. Most of the LLVM code of a kernel with such an argument would be its arguments.
"""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import default_manager, models
from numba.core.datamodel.manager import DataModelManager

CONTEXT = ir.Context()  # of all modules with kernels: it has the names of the types


class NamedTupleModel(models.TupleModel):
    """How a namedtuple is represented."""

    def __init__(self, manager: DataModelManager, kind: types.NamedTuple) -> None:
        super().__init__(manager, kind)
        values = [model.get_value_type() for model in self._models]
        self._value_type = CONTEXT.get_identified_type(f"tuple.{len(CONTEXT.identified_types)}")
        self._value_type.set_body(*values)
        if [model.get_data_type() for model in self._models] == values:
            self._data_type = self._value_type

    def as_data(self, builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
        return value if self._data_type is self._value_type else super().as_data(builder, value)

    def from_data(self, builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
        return value if self._data_type is self._value_type else super().from_data(builder, value)

    as_return, from_return = as_data, from_data


def data_models() -> Any:
    """Numba's data models, and that of namedtuples."""
    manager = DataModelManager().chain(default_manager)
    manager.register(types.NamedTuple, NamedTupleModel)
    return manager
