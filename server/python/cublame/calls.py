"""Waits after every call and operator in the program's own files, whoever launched from there: CuPy, Numba, Triton, an extension.

Since Python 3.12 `sys.monitoring` tells of single instructions: we ask for it in the program's own code objects alone, and
of these only the instruction after a call or an operator stays switched on, so libraries run at full speed.
Before, `sys.setprofile` tells of every call, the libraries' own included, which costs more, and of no operator: what
`a + b` launches is then waited for at the next call.
"""

from __future__ import annotations

import dis
import os
import site
import sys
import sysconfig
import threading
import warnings
from types import CodeType, FrameType, ModuleType
from typing import Any

from .device import wait


def watch_calls() -> Any:
    """A context manager; what it watches is the thread that enters it."""
    return _monitoring if hasattr(sys, "monitoring") else ProfileWatch()


# Since Python 3.12.

monitoring: Any = getattr(sys, "monitoring", None)

# The instructions that can call into a library. Their names are those of 3.12 to 3.14.
OPERATIONS = {
    "BEFORE_WITH",
    "BINARY_OP",
    "BINARY_SLICE",
    "BINARY_SUBSCR",
    "CALL",
    "CALL_FUNCTION_EX",
    "CALL_KW",
    "COMPARE_OP",
    "CONTAINS_OP",
    "DELETE_SUBSCR",
    "FOR_ITER",
    "SEND",
    "STORE_SLICE",
    "STORE_SUBSCR",
    "UNARY_INVERT",
    "UNARY_NEGATIVE",
}


class MonitoringWatch:
    """One for the process, since the events are the interpreter's; it counts the blocks that each thread is in."""

    def __init__(self) -> None:
        self.blocks: dict[int, int] = {}
        self.lock = threading.Lock()
        self.tool: int | None = None
        # Of each code object that is watched: where an operation has just been done.
        self.watched: dict[CodeType, frozenset[int]] = {}

    def __enter__(self) -> None:
        with self.lock:
            if not self.blocks:
                self.start()
            ident = threading.get_ident()
            self.blocks[ident] = self.blocks.get(ident, 0) + 1
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            self.on_start(frame.f_code, 0)
            frame = frame.f_back

    def __exit__(self, *failure: Any) -> None:
        with self.lock:
            ident = threading.get_ident()
            self.blocks[ident] -= 1
            if not self.blocks[ident]:
                del self.blocks[ident]
            if not self.blocks:
                self.stop()

    def start(self) -> None:
        # 0, 1, 2 and 5 are for debuggers, coverage, profilers and optimisers.
        self.tool = next((tool for tool in (3, 4) if monitoring.get_tool(tool) is None), None)
        if self.tool is None:
            warn_of_less("both free places of sys.monitoring are taken")
            return
        events = monitoring.events
        monitoring.use_tool_id(self.tool, "cublame.blocking")
        monitoring.register_callback(self.tool, events.PY_START, self.on_start)
        monitoring.register_callback(self.tool, events.PY_RESUME, self.on_start)
        monitoring.register_callback(self.tool, events.INSTRUCTION, self.on_instruction)
        # A block before this one may have switched these off, where they are of interest again.
        monitoring.restart_events()
        monitoring.set_events(self.tool, events.PY_START | events.PY_RESUME)

    def stop(self) -> None:
        if self.tool is None:
            return
        events = monitoring.events
        monitoring.set_events(self.tool, 0)
        for code in self.watched:
            monitoring.set_local_events(self.tool, code, 0)
        self.watched.clear()
        for event in (events.PY_START, events.PY_RESUME, events.INSTRUCTION):
            monitoring.register_callback(self.tool, event, None)
        monitoring.free_tool_id(self.tool)
        self.tool = None

    def on_start(self, code: CodeType, offset: int) -> Any:
        tool = self.tool
        if tool is not None and code not in self.watched and is_programs_own(code):
            self.watched[code] = offsets_after_operations(code)
            monitoring.set_local_events(tool, code, monitoring.events.INSTRUCTION)
        return monitoring.DISABLE

    def on_instruction(self, code: CodeType, offset: int) -> Any:
        if offset not in self.watched.get(code, ()):
            return monitoring.DISABLE
        if threading.get_ident() in self.blocks:
            wait()
        return None


def offsets_after_operations(code: CodeType) -> frozenset[int]:
    instructions = list(dis.get_instructions(code))
    pairs = zip(instructions, instructions[1:])
    return frozenset(after.offset for before, after in pairs if before.opname in OPERATIONS)


_monitoring = MonitoringWatch()


# Before Python 3.12.


class ProfileWatch:
    """The thread's profile function, where it has none."""

    def __init__(self) -> None:
        self.is_set = False

    def __enter__(self) -> None:
        found = sys.getprofile()
        if isinstance(getattr(found, "__self__", None), ProfileWatch):
            return
        if found is not None:
            warn_of_less("a profiler is on")
            return
        self.is_set = True
        sys.setprofile(self.on_event)

    def __exit__(self, *failure: Any) -> None:
        if self.is_set:
            self.is_set = False
            sys.setprofile(None)

    def on_event(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_return":
            if is_programs_own(frame.f_code) and not is_interpreters_own(argument):
                wait()
        elif event == "return" and not is_programs_own(frame.f_code):
            caller = frame.f_back
            if caller is not None and is_programs_own(caller.f_code):
                wait()


def is_interpreters_own(function: Any) -> bool:
    """A function of a builtin module or a method of a builtin type, such as `len` and `list.append`: they launch nothing."""
    owner = getattr(function, "__objclass__", None) or getattr(function, "__self__", None)
    if isinstance(owner, ModuleType):
        return owner.__name__ in sys.builtin_module_names
    return (owner if isinstance(owner, type) else type(owner)).__module__ == "builtins"


def warn_of_less(why: str) -> None:
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and not is_programs_own(frame.f_code):
        level, frame = level + 1, frame.f_back
    warnings.warn("cublame.blocking waits for the operations of torch only: " + why, RuntimeWarning, stacklevel=level)


# Whose code it is.


def is_programs_own(code: CodeType) -> bool:
    """Neither a library's, nor the interpreter's, nor ours: a script, a notebook's cell, text given to `exec`."""
    name = code.co_filename
    known = _own.get(name)
    if known is None:
        known = _own[name] = not name.startswith(("<frozen ", "<cublame>") + library_folders())
    return known


_own: dict[str, bool] = {}
_folders: tuple[str, ...] = ()


def library_folders() -> tuple[str, ...]:
    global _folders
    if not _folders:
        folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
        folders.add(os.path.dirname(os.path.abspath(__file__)))
        folders.update(getattr(site, "getsitepackages", list)())
        folders.add(getattr(site, "getusersitepackages", str)())
        _folders = tuple(os.path.join(folder, "") for folder in folders if folder)
    return _folders
