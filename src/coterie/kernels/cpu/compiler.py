"""Compile each kernel once, together with the functions that it calls.

Numba optimises each inner function by itself, translates it to machine code, and optimises it again within every
caller. Here the functions that a kernel calls, its own and those of Numba, are only linked into it, as LLVM code, and
the whole is optimised once. `references` and `tuple_model` make this code shorter. Numba's passes over single
functions still run: without them some loops are not vectorised.
"""

from numba.core import compiler, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.decorators import jit
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature
from numba.core.target_extension import dispatcher_registry, jit_registry
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import IRLegalization

from coterie.garbage import no_collection
from coterie.kernels import compile_notice
from coterie.kernels.cpu.level import Kernels, target_context
from coterie.kernels.cpu.references import OmitReferences

# Numba finds the constants of a function through a global variable of its LLVM code. Those of inner functions are set
# when the kernel around them is loaded.
_environments: dict[str, object] = {}


class _Library(JITCodeLibrary):
    def _optimize_functions(self, ll_module):
        """As Numba does it, without passes over the functions that are only declared, which are most of them."""
        ll_module.data_layout = self._codegen._data_layout
        for function in ll_module.functions:
            if not function.is_declaration:
                passes, builder = self._codegen._function_pass_manager()
                passes.run(function, builder)


class KernelLibrary(_Library):
    """The code of a kernel that Python calls. Other kernels do not call it, so object code is all that is stored."""

    def serialize_using_object_code(self):
        module = self._final_module
        symbols = [s.name for s in (*module.functions, *module.global_variables) if not s.is_declaration]
        return self.name, "object", (bytes(self._get_compiled_object()), symbols)

    @classmethod
    def load(cls, codegen, data):
        """The library from the result of `serialize_using_object_code`."""
        name, _, (code, symbols) = data
        library = cls(codegen, name)
        library.enable_object_caching()
        library._set_compiled_object(code)
        library._finalize_final_module()
        codegen._engine._defined_symbols.update(symbols)
        return library

    def _finalize_specific(self):
        super()._finalize_specific()
        for variable in self._final_module.global_variables:
            if not variable.is_declaration and variable.name in _environments:
                self._codegen.set_env(variable.name, _environments[variable.name])


class InnerLibrary(_Library):
    """The code of a function that kernels call: linked into theirs, never translated to machine code by itself."""

    def finalize(self):
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name):
        return 0

    @property
    def codegen(self):
        return self

    def set_env(self, name, environment):
        _environments[name] = environment


class KernelFlags(compiler.Flags):
    """Options of the compiler. Numba compares them for each function that is called, thousands of times."""

    __slots__ = ()

    def copy(self):
        """Options of the functions that are called, whether by a kernel or by a function that it calls."""
        flags = super().copy()
        flags.no_cpython_wrapper = True
        flags.discard("release_gil")
        return flags

    def values(self):
        return _DEFAULTS | self._values

    def __eq__(self, other):
        return isinstance(other, KernelFlags) and super().__eq__(other)

    def __hash__(self):
        return _HASH


_DEFAULTS = compiler.Flags().values()
_HASH = hash(compiler.Flags())  # the same for all options


class KernelCompiler(compiler.Compiler):
    """Compiles kernels that Python calls."""

    library_class = KernelLibrary

    def __init__(self, typingctx, targetctx, library, args, return_type, flags, locals):
        targetctx, flags = target_context(targetctx), KernelFlags(flags)
        library = self.library_class(targetctx.codegen(), "kernel")
        library.enable_object_caching()
        super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)

    def define_pipelines(self):
        pipelines = super().define_pipelines()
        if _is_own(self.state.func_id.func):
            for pipeline in pipelines:
                pipeline.add_pass_after(OmitReferences, IRLegalization)
                pipeline.finalize()
        return pipelines

    def compile_extra(self, func):
        compile_notice.send()
        with no_collection():
            return super().compile_extra(func)


class InnerCompiler(KernelCompiler):
    """Compiles functions that kernels call."""

    library_class = InnerLibrary


def _is_own(function):
    """Whether this is a function of the package, neither of Numba nor of a user."""
    return (function.__module__ or "").startswith("coterie.")


class InnerFunction(CPUDispatcher):
    """A function that kernels call: one of theirs, or one of Numba."""

    def __init__(self, function, options):
        inner = {**options, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        super().__init__(function, targetoptions=inner, pipeline_class=InnerCompiler)

    def get_call_template(self, args, kws):
        """The types of a call. Constants have types of their own, for which functions of kernels are not compiled."""
        if _is_own(self.py_func):
            args = [types.unliteral(kind) for kind in args]
            kws = {name: types.unliteral(kind) for name, kind in kws.items()}
        return super().get_call_template(args, kws)

    def compile(self, signature):
        """As Numba does it, but without a timer, which would be called for all functions within."""
        with global_compiler_lock, self._compiling_counter:
            args, return_type = normalize_signature(signature)
            result = self.overloads.get(tuple(args))
            if result is None:
                result = self._compiler.compile(args, return_type)
                self.add_overload(result)
            return result.entry_point


def _inner_function(**options):
    """Decorator of the functions of Numba that kernels call. Those of a user's function in a kernel are as usual."""
    if isinstance(ConfigStack.top_or_none(), KernelFlags):
        return lambda function: InnerFunction(function, options)
    return jit(**options)


dispatcher_registry[Kernels], jit_registry[Kernels] = CPUDispatcher, _inner_function


def load_result(context, data, description, environment, signature, objectmode, lifted, annotation, reload, others):
    """The compiled kernel from the result of Numba's ``CompileResult._reduce``."""
    for initialize in reload:
        initialize()
    library = KernelLibrary.load(context.codegen(), data)
    result = compiler.CompileResult(
        target_context=context,
        typing_context=context.typing_context,
        library=library,
        environment=environment,
        entry_point=context.get_executable(library, description, environment),
        fndesc=description,
        type_annotation=annotation,
        signature=signature,
        objectmode=objectmode,
        lifted=lifted,
        typing_error=None,
        call_helper=None,
        metadata=None,
        reload_init=reload,
        referenced_envs=others,
    )
    for other in others:
        library.codegen.set_env(other.env_name, other)
    return result
