"""Import public names of a package when they are first used, so that `import coterie` stays fast."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def attach(package: str, homes: dict[str, str], modules: tuple[str, ...] = ()) -> Callable[[str], Any]:
    """A ``__getattr__`` for `package`; `homes` maps names to the modules that define them, `modules` are submodules."""

    def __getattr__(name: str) -> Any:
        if name in homes:
            return getattr(import_module(homes[name]), name)
        if name in modules:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return __getattr__
