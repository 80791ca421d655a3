"""Guard mode: indices, labels, offsets and probabilities are checked before the kernel that would assert on them runs.

    with cublame.guard():            # or @cublame.guard(), or `cublame run --mode guard -- python train.py`
        loss = model(tokens)

    cublame.GuardIndexError: embedding index: value 1003 at [3, 7] is outside [0, 1000) (1 of 4096)

A device-side assertion ends the CUDA context and names neither the value nor the line.
Under the guard the same mistake is a Python exception at the line, with the value, its position, the range and the number
of offenders, and the context lives: a debugger can look at the tensors.
The exceptions are `cublame.GuardIndexError`, an IndexError, and `cublame.GuardValueError`, a ValueError.

There are two ways to check.

strict
    Look, wait, raise at the line. It costs one wait for the GPU at each checked argument.
deferred
    One kernel looks, and writes a copy in which every offender is moved into its range; the op runs on the copy and
    nothing waits. What was found is told at the next guarded op, at a synchronising call (`torch.cuda.synchronize`,
    `.item()`, `.cpu()`, `.to("cpu")`, `.tolist()`), at `optimizer.step` and at `torch.save`; the message holds the stack
    of the call.

`CUBLAME_GUARD=strict` or `deferred` chooses; strict is the default, because a run under the guard is there to be stopped
at the line. For a long training, deferred.

Only the ops of `guard_rules.GUARDED` are overridden, at the CUDA dispatch key: every other op costs nothing, autograd,
autocast, vmap and fake tensors have been dealt with above that key, and a DTensor comes to it as its local shard.
torch.compile compiles as ever; what it fuses into kernels of its own is not checked, what it leaves to torch's is.
While a CUDA graph is captured nothing waits: the look becomes a part of the graph, as in the deferred way.

It needs `torch.library.get_kernel`; with a torch that does not have it the program runs unguarded, and is told so.
"""

from __future__ import annotations

import contextlib
import os
import threading

from .guard_say import say

WAYS = ("strict", "deferred")

__all__ = ["Guard", "guard", "install", "uninstall"]


def guard(function=None, *, way=None):
    """The guard for a block or a function: `with guard():`, `@guard` or `@guard(way="deferred")`."""
    scope = Guard(way)
    return scope if function is None else scope(function)


class Guard(contextlib.ContextDecorator):
    """A scope in which the whole process is guarded, its autograd threads included."""

    def __init__(self, way=None):
        self.way = chosen_way(way)

    def _recreate_cm(self):
        return Guard(self.way)

    def __enter__(self):
        install(self.way)
        return self

    def __exit__(self, kind, value, traceback):
        try:
            if kind is None and _installed is not None:
                _installed.late.wait_and_tell()
        finally:
            uninstall()
        return False


def chosen_way(way=None):
    way = way or os.environ.get("CUBLAME_GUARD") or "strict"
    if way not in WAYS:
        raise ValueError("the guard is {}, not {!r}".format(" or ".join(WAYS), way))
    return way


def install(way=None, keys=("CUDA",)):
    """Guards this process from now on. Each call takes one `uninstall` back; the first one's way is in force.

    `keys` are the dispatch keys of torch at which the ops are overridden.
    """
    global _installed, _depth
    way = chosen_way(way)
    with _lock:
        if _installed is None:
            import torch

            if not hasattr(torch.library, "get_kernel"):
                say(
                    f"torch {torch.__version__} offers no way to call the kernel that the guard replaces, so the program runs unguarded; "
                    "a newer torch does"
                )
                return
            from .guard_ops import Installed

            _installed = Installed(way, keys)
        _depth += 1


def uninstall():
    """Takes one `install` back."""
    global _installed, _depth
    with _lock:
        if _depth == 0:
            return
        _depth -= 1
        if _depth == 0:
            installed, _installed = _installed, None
            installed.remove()


_installed = None
_depth = 0
_lock = threading.Lock()
