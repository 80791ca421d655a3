"""Waits after every operation of torch. Imports torch: only for a program that has done so."""

from __future__ import annotations

import sys
import threading
from typing import Any, Iterator

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .device import is_capturing


def wait_after_operations() -> list[Any]:
    """The context managers that do it."""
    parts: list[Any] = [WaitAfterOperations()]
    set_stance = getattr(torch.compiler, "set_stance", None) if hasattr(torch, "compiler") else None
    if set_stance is not None and "torch._dynamo" in sys.modules:
        # Under a dispatch mode torch.compile runs a function as it is anyway, but would not compile it later either.
        parts.insert(0, set_stance("force_eager"))
    return parts


class WaitAfterOperations(TorchDispatchMode):
    """After each operation the devices of its tensors are waited for; what failed there is raised in the caller's line."""

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = operation(*args, **kwargs)
        if not torch.cuda.is_initialized() or is_capturing(torch):
            return result
        for device in devices_of((args, kwargs, result)):
            try:
                torch.cuda.synchronize(device)
            except Exception as error:
                tell(error, operation, args)
                raise
        return result


def devices_of(value: Any) -> set[int]:
    found: set[int] = set()
    for tensor in tensors_in(value):
        device = tensor.device
        if device.type == "cuda":
            found.add(device.index)
    return found


def tensors_in(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)


def tell(error: BaseException, operation: Any, args: Any) -> None:
    """Adds what is known now and lost later: which operation it was. After a fault no tensor's values are touched."""
    note = "cublame: raised as soon as it failed, by {}({})".format(operation, ", ".join(shown(arg) for arg in args))
    if threading.active_count() > 1:
        note += "; or by what another thread launched meanwhile"
    else:
        # What `cublame.explain` goes by.
        error.raised_where_it_failed = True  # type: ignore[attr-defined]
    if hasattr(error, "add_note"):
        error.add_note(note)


def shown(argument: Any) -> str:
    if isinstance(argument, torch.Tensor):
        dtype = str(argument.dtype).replace("torch.", "")
        return f"{dtype}{list(argument.shape)} on {argument.device}"
    if isinstance(argument, (tuple, list)):
        return "[" + ", ".join(shown(item) for item in argument[:8]) + (", ..." if len(argument) > 8 else "") + "]"
    text = repr(argument)
    return text if len(text) <= 40 else text[:37] + "..."
