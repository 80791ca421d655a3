"""`cublame.blocking()`: waits for the device after every operation, so that a CUDA failure is raised at the line that made it.

CUDA_LAUNCH_BLOCKING does the same for a whole process, but CUDA reads it once, when its context is created: from then on
only this works. Two things are watched in the thread that enters the block:

- every operation of torch, by a dispatch mode, in backward too;
- every call out of the program's own files that comes back: of a function in C, or of a library's Python function, so that
  CuPy, Numba, Triton and extensions are waited for as well (`calls.py`).

JAX computes in threads of its own, where nothing that waits in this one reaches it: use `jax.block_until_ready`.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any, Callable, TypeVar, overload

from .calls import watch_calls
from .device import may_have_work, wait

F = TypeVar("F", bound=Callable[..., Any])


@overload
def blocking(function: F) -> F: ...
@overload
def blocking(*, calls: bool = ...) -> Blocking: ...


def blocking(function: F | None = None, *, calls: bool = True) -> Blocking | F:
    """Waits for the device after every operation of the block, or of each call of the decorated function.

        with cublame.blocking():
            loss = model(batch)

        @cublame.blocking
        def step(batch): ...

    A failure is then raised at its own line; in backward, where torch's threads have no line, at `loss.backward()`.
    Entering waits for what was launched before, so that its failures are not taken for the block's.
    The cost: about twice the time of small operations, as with CUDA_LAUNCH_BLOCKING, and with `calls`, about one to two
    microseconds for each call in the block: see the package's README.
    Functions that torch.compile has compiled run operation by operation in the block, and the block cannot be inside one.
    During the capture of a CUDA graph nothing runs, so nothing is waited for: failures come at its replay.

    `calls=False` watches the operations of torch alone.
    """
    block = Blocking(calls)
    return block if function is None else block(function)


# torch.compile calls this function instead of reading into it, and says why where it must not.
blocking._torchdynamo_disable = True  # type: ignore[attr-defined]
blocking._torchdynamo_disable_msg = (  # type: ignore[attr-defined]
    "cublame.blocking cannot wait inside a compiled function: its operations are one kernel. "
    "Put the block round the call of the compiled function, which then runs operation by operation."
)


class Blocking:
    """What `cublame.blocking()` gives: a context manager that can be entered again and again, and a decorator."""

    def __init__(self, calls: bool = True) -> None:
        self.calls = calls
        self._entered: list[list[Any]] = []

    def __enter__(self) -> Blocking:
        uncompiled(self._enter)()
        return self

    def __exit__(self, *failure: Any) -> None:
        uncompiled(self._leave)(failure)

    def _enter(self) -> None:
        if may_have_work():
            wait()
        entered: list[Any] = []
        try:
            for part in self._parts():
                part.__enter__()
                entered.append(part)
        except BaseException:
            leave(entered, (None, None, None))
            raise
        self._entered.append(entered)

    def _leave(self, failure: Any) -> None:
        leave(self._entered.pop(), failure)
        if failure[0] is None and may_have_work():
            # What was launched out of sight of both watches fails at the block, not after it.
            wait()

    def __call__(self, function: F) -> F:
        if is_suspended_and_resumed(function):
            raise TypeError(
                "cublame.blocking cannot decorate {}: it gives up its thread in the middle. "
                "Write `with cublame.blocking():` in it, round lines that do not await or yield.".format(
                    getattr(function, "__qualname__", function)
                )
            )

        @functools.wraps(function)
        def waiting(*args: Any, **kwargs: Any) -> Any:
            with Blocking(self.calls):
                return function(*args, **kwargs)

        waiting._torchdynamo_disable = True  # type: ignore[attr-defined]
        waiting._torchdynamo_disable_msg = blocking._torchdynamo_disable_msg  # type: ignore[attr-defined]
        return waiting  # type: ignore[return-value]

    def _parts(self) -> list[Any]:
        parts = []
        torch = sys.modules.get("torch")
        if torch is not None and hasattr(torch, "utils"):
            from .operations import wait_after_operations

            parts += wait_after_operations()
        if self.calls:
            parts.append(watch_calls())
        return parts


def uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """So that torch.compile, where it gave up on the function with the block in it, does not go on with ours."""
    dynamo = sys.modules.get("torch._dynamo")
    return function if dynamo is None else dynamo.disable(function)


def leave(entered: list[Any], failure: Any) -> None:
    for part in reversed(entered):
        part.__exit__(*failure)


def is_suspended_and_resumed(function: Any) -> bool:
    return (
        inspect.iscoroutinefunction(function)
        or inspect.isgeneratorfunction(function)
        or inspect.isasyncgenfunction(function)
    )
