"""Where an estimator computes, and the options that a GPU does not support."""

from typing import Any

from coterie.data.tensors import costs_if_faster_on_gpu
from coterie.errors import ParameterError


def chosen_device(estimator: Any, device: str, X: Any) -> str:
    """The device for these rows: 'auto' is the GPU if it is faster and supports all options. `verbose` shows that."""
    k = getattr(estimator, "n_clusters", getattr(estimator, "n_components", 1))
    is_free = device == "auto" and isinstance(k, int) and estimator.engine == "auto"
    if not is_free or _is_traced(estimator) or _rejected(estimator):
        return device
    if (costs := costs_if_faster_on_gpu(X, k)) is None:
        return device
    if getattr(estimator, "verbose", 0):
        print(f"device: cuda, because a fit takes about {costs.gpu:.2g} s there, and {costs.cpu:.2g} s on the CPU")
    return "cuda"


def check_options_on_device(estimator: Any) -> None:
    """Reject options and methods that need the rows in main memory, with what to do instead."""
    if _is_traced(estimator):
        raise ParameterError("fit_trace is not supported on a GPU: use device='cpu'")
    for name, remedy in _rejected(estimator).items():
        raise ParameterError(
            f"{name}={getattr(estimator, name)!r} is not supported on a GPU: use {remedy}, or device='cpu'"
        )


def _is_traced(estimator: Any) -> bool:
    return vars(estimator).get("_recorder") is not None


def _rejected(estimator: Any) -> dict[str, str]:
    """Options whose values are not supported on a GPU, with remedies."""
    defaults = {"missing": "error", "checkpoint": None}
    general = {name: value for name, value in defaults.items() if getattr(estimator, name, value) != value}
    return {**{name: f"{name}={value!r}" for name, value in general.items()}, **estimator._not_on_device}
