"""`cublame.explain(error)`: what the program `cublame` says about an exception."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from typing import Any, TextIO

from . import program


class ProgramMissing(RuntimeError):
    """The program `cublame`, which knows the failures, is not installed."""


def explain(error: BaseException | None = None, *, workspace: str | None = None, file: TextIO | None = None) -> None:
    """Prints which line broke, how sure that is, why, and what to do.

        try:
            train()
        except RuntimeError as error:
            cublame.explain(error)
            raise

    Without `error` it is the exception being handled, else the last one that the interpreter printed.
    `workspace` is the folder of the program's sources, else the working directory; `file` is standard error.
    It reads the exception's text and traceback and touches no tensor, so that it is safe after a fault.
    A traceback alone never proves the line of an asynchronous failure: `cublame run` or `cublame.blocking()` does.
    """
    stream = sys.stderr if file is None else file
    try:
        ask(error, workspace, [], stream)
    except ProgramMissing as missing:
        stream.write(f"cublame: {missing}\n")


def verdicts(error: BaseException | None = None, *, workspace: str | None = None) -> list[dict[str, Any]]:
    """What `explain` prints, as data: the `verdicts` of `cublame explain --json`. The first is the root cause."""
    found = json.loads(ask(error, workspace, ["--json"], None))["verdicts"]
    return list(found)


def ask(error: BaseException | None, workspace: str | None, options: list[str], stream: TextIO | None) -> str:
    """Shows the exception to the program. Its answer goes to `stream`, in colour if that is a terminal, or is returned."""
    error = latest() if error is None else error
    path = program.find()
    if path is None:
        raise ProgramMissing("the program that explains failures is not installed. " + program.HOW_TO_GET)
    command = [path, "explain", "--workspace", os.getcwd() if workspace is None else workspace, *options]
    if getattr(error, "raised_where_it_failed", False):
        command.append("--blocking")
    command.append("-")
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    if stream is not None:
        stream.flush()
    to_terminal = stream is not None and is_terminal(stream)
    done = subprocess.run(
        command,
        input=text.encode("utf-8", "backslashreplace"),
        stdout=stream if to_terminal else subprocess.PIPE,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.decode("utf-8", "replace").strip())
    answer = "" if done.stdout is None else done.stdout.decode("utf-8")
    if stream is not None:
        stream.write(answer)
    return answer


def latest() -> BaseException:
    """The exception being handled, else the one that the interpreter printed last."""
    for error in (sys.exc_info()[1], getattr(sys, "last_exc", None), getattr(sys, "last_value", None)):
        if isinstance(error, BaseException):
            return error
    raise ValueError("no exception has been raised: call it in an `except` block, or give it the exception")


def is_terminal(stream: TextIO) -> bool:
    try:
        return os.isatty(stream.fileno())
    except (OSError, ValueError, AttributeError):
        return False
