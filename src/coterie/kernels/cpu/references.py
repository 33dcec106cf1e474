"""Functions that only read and write arrays of their caller do not count references to them.

Numba counts references to an array wherever a variable is assigned. The caller of a kernel keeps all of its arrays
alive, so that this matters only where a function creates an array, or returns one. In all other functions it would be
most of the code: a namedtuple of arrays is counted array by array, in each call and for each field that is used.
"""

from typing import Any

from numba.core import ir, types
from numba.core.compiler_machinery import AnalysisPass, register_pass


@register_pass(mutates_CFG=False, analysis_only=True)
class OmitReferences(AnalysisPass):
    """Turns the counting of references off in functions that create and return no arrays."""

    _name = "omit_references"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        if only_uses_arguments(state):
            state.targetctx = state.targetctx.subtarget(enable_nrt=False)
        return False


def only_uses_arguments(state: Any) -> bool:
    """Whether all arrays of a function are its arguments, or views of them, and none is returned."""
    models, typemap = state.targetctx.data_model_manager, state.typemap

    def is_counted(kind: types.Type) -> bool:
        return bool(models[kind].contains_nrt_meminfo())

    if is_counted(state.return_type) or state.func_ir.is_generator:
        return False
    for block in state.func_ir.blocks.values():
        for statement in block.body:
            if isinstance(statement, ir.Assign):
                if is_counted(typemap[statement.target.name]) and not _is_borrowed(statement.value, typemap):
                    return False
            elif isinstance(statement, ir.SetItem | ir.StaticSetItem):
                if is_counted(typemap[statement.value.name]):
                    return False
            elif not isinstance(statement, ir.Jump | ir.Branch | ir.Del | ir.Return | ir.PopBlock):
                return False
    return True


def _is_borrowed(value: Any, typemap: dict[str, types.Type]) -> bool:
    """Whether a value that is assigned is an argument, a variable, a field of a tuple, or a view."""
    if isinstance(value, ir.Arg | ir.Var):
        return True
    if not isinstance(value, ir.Expr):
        return False
    if value.op in ("cast", "build_tuple", "phi", "exhaust_iter"):
        return True
    if value.op in ("getattr", "static_getitem", "getitem"):
        container = typemap[value.value.name]
        return isinstance(container, types.BaseTuple) or (
            isinstance(container, types.Array) and value.op != "getattr" and not _selects(value, typemap)
        )
    return False


def _selects(item: ir.Expr, typemap: dict[str, types.Type]) -> bool:
    """Whether elements are selected by an array of indices, which copies them."""
    variable = item.index if item.op == "getitem" else item.index_var
    index = typemap[variable.name]
    return any(
        isinstance(kind, types.Array) for kind in (index.types if isinstance(index, types.BaseTuple) else [index])
    )
