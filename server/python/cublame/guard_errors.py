"""The exceptions of guard mode, and the sentence that each of them says."""

from __future__ import annotations

from typing import Any


class GuardError(Exception):
    """An argument that would have ended the kernel, and with it the CUDA context.

    The call was not made, or it was made with an allowed value in the place of the offending one: the context lives.
    Each field is also in the message.
    """

    op: str = ""
    argument: str = ""
    value: Any = None
    #: The index of the first offender in the argument; None where the argument as a whole is at fault.
    position: list[int] | None = None
    #: What is allowed, both ends included; `high` is None where there is no upper end.
    low: Any = None
    high: Any = None
    #: How many elements are outside, of how many.
    count: int = 0
    total: int = 0


class GuardIndexError(GuardError, IndexError):
    """An index or a label outside its range, where torch on the CPU raises IndexError or says "out of bounds"."""


class GuardValueError(GuardError, ValueError):
    """A probability, a count or a length that cannot be."""


# A traceback shows them by the names under which the package exports them.
for _type in (GuardError, GuardIndexError, GuardValueError):
    _type.__module__ = "cublame"


def error_of(op, requirement, value, first, count, frames=None):
    """The exception for `count` offenders, the first of them `value` at the flat position `first`.

    `frames` are those of the call, where it was made earlier than it was found out.
    """
    error = requirement.error(_sentence(op, requirement, value, first, count) + _call(frames))
    error.op, error.argument, error.value = op, requirement.argument, value
    error.position = position_of(first, requirement.shape)
    error.low = requirement.low
    error.high = None if requirement.last is None else requirement.last
    error.count, error.total = count, requirement.total
    return error


def position_of(flat, shape):
    if not shape:
        return None
    position = []
    for size in reversed(shape):
        flat, along = divmod(flat, size)
        position.append(along)
    return position[::-1]


def _sentence(op, requirement, value, first, count):
    argument = requirement.argument
    # "index for dimension 1" of the op "index" needs no op before it.
    name = argument if argument.startswith(op) else f"{op} {argument}"
    if requirement.text is not None:
        return f"{name}: {requirement.text(value, position_of(first, requirement.shape))}"
    position = position_of(first, requirement.shape)
    at = f" at {position}" if position is not None else ""
    ending = " (%d of %d)" % (count, requirement.total)
    return f"{name}: value {value}{at} is outside {requirement.allowed()}{ending}"


def _call(frames):
    if not frames:
        return ""
    # In the words in which torch tells of another process's exception, so that whoever reads one reads the other.
    told = "That call was checked without waiting for the GPU, and a later line told of it (CUBLAME_GUARD=deferred)."
    return "\n".join(["", "Original Traceback (most recent call last):", *frames, "", told])
