"""Import scikit-learn without libraries that it imports for functions which no command uses."""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from typing import Any


class _Lazy:
    """Finder of `scipy.stats` in `sys.meta_path`: the module is loaded when one of its names is first used."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name == "scipy.stats" else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def import_sklearn() -> None:
    """Import `sklearn.base` in half of the time: without pandas, which it needs for frames only, and `scipy.stats`."""
    if "sklearn" in sys.modules:
        return
    is_hidden = "pandas" not in sys.modules
    if is_hidden:
        sys.modules["pandas"] = None  # type: ignore[assignment]  # importing it raises ImportError
    sys.meta_path.insert(0, _Lazy)
    try:
        import_module("sklearn.base")
    finally:
        sys.meta_path.remove(_Lazy)
        if is_hidden:
            del sys.modules["pandas"]
