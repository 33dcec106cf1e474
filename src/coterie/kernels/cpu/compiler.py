"""Compile each kernel once, together with the functions that it calls.

Numba optimises each inner function by itself, translates it to machine code, and optimises it again within every
caller. Here the functions that a kernel calls are only linked into it, as LLVM code, and the whole is optimised once.
This takes about 40 % off the time to compile. Numba's passes over single functions still run: without them some loops
are not vectorised.
"""

from __future__ import annotations

import gc

from numba.core import compiler
from numba.core.codegen import JITCodeLibrary

from coterie.kernels import compile_notice
from coterie.kernels.cpu.level import target_context

# Numba finds the constants of a function through a global variable of its LLVM code. Those of inner functions are set
# when the kernel around them is loaded.
_environments: dict[str, object] = {}


class KernelLibrary(JITCodeLibrary):
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


class InnerLibrary(JITCodeLibrary):
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


class KernelCompiler(compiler.Compiler):
    """Compiles kernels that Python calls."""

    library_class = KernelLibrary

    def __init__(self, typingctx, targetctx, library, args, return_type, flags, locals):
        targetctx = target_context(targetctx)
        library = self.library_class(targetctx.codegen(), "kernel")
        library.enable_object_caching()
        super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)

    def compile_extra(self, func):
        compile_notice.send()
        enabled = gc.isenabled()
        gc.disable()  # the compiler creates millions of small objects, and little garbage
        try:
            return super().compile_extra(func)
        finally:
            if enabled:
                gc.enable()


class InnerCompiler(KernelCompiler):
    """Compiles functions that kernels call."""

    library_class = InnerLibrary


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
