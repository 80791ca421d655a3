"""Looks that nobody waits for: what was asked, by which lines, and the moment at which an offender is told of."""

from __future__ import annotations

import collections
import linecache
import sys
import threading

from .guard_errors import error_of

MOST_FRAMES = 100


class Late:
    """The looks under way, in the order in which they were begun."""

    def __init__(self):
        self.under_way = collections.deque()
        #: Looks inside captured graphs: each replay looks again.
        self.of_graphs = []
        self.lookers_of_graphs = set()
        self.lock = threading.Lock()

    def add(self, op, look, captured=False):
        look.requirement.forget_tensor()
        call = Call(op, look, stack_of_caller())
        if captured:
            self.of_graphs.append(call)
            self.lookers_of_graphs.add(look.looker)
        else:
            self.under_way.append(call)

    def tell(self):
        """Raises what has been found out by now, the first first. It waits for nothing."""
        if not self.lock.acquire(blocking=False):
            # Another thread is about to tell.
            return
        try:
            while self.under_way and self.under_way[0].look.is_done():
                call = self.under_way.popleft()
                offender = call.look.offender()
                if offender is not None:
                    self.under_way.clear()
                    raise call.error(offender)
            if any([looker.alarmed() for looker in self.lookers_of_graphs]):
                self.tell_of_graphs()
        finally:
            self.lock.release()

    def tell_of_graphs(self):
        found = [(call, call.look.take()) for call in self.of_graphs]
        for call, offender in found:
            if offender is not None:
                raise call.error(offender)

    def wait_and_tell(self):
        """As `tell`, of all looks that were begun before."""
        for call in list(self.under_way):
            if not call.look.is_done():
                call.look.wait()
        self.tell()


class Call:
    """A guarded call as it was made."""

    __slots__ = ("look", "op", "stack")

    def __init__(self, op, look, stack):
        self.op = op
        self.look = look
        self.stack = stack

    def error(self, offender):
        value, first, count = offender
        return error_of(self.op, self.look.requirement, value, first, count, lines_of(self.stack))


def stack_of_caller():
    """The code and the instruction of each frame, innermost first; no frame is kept, and with it no local variable."""
    stack = []
    frame = sys._getframe(1)
    while frame is not None and len(stack) < MOST_FRAMES:
        if not str(frame.f_globals.get("__name__")).startswith(OURS):
            stack.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return stack


#: The modules of the guard: `guarding` and those whose names begin with `guard_`.
OURS = __name__.rpartition(".")[0] + ".guard"


def lines_of(stack):
    """As a traceback prints them, outermost first."""
    lines = []
    for code, instruction in reversed(stack):
        number = line_of(code, instruction)
        if number is None:
            continue
        lines.append('  File "%s", line %d, in %s' % (code.co_filename, number, code.co_name))
        text = linecache.getline(code.co_filename, number).strip()
        if text:
            lines.append("    " + text)
    return lines


def line_of(code, instruction):
    found = code.co_firstlineno
    if hasattr(code, "co_lines"):
        for start, end, number in code.co_lines():
            if start <= instruction < end:
                return number
        return found
    import dis

    for start, number in dis.findlinestarts(code):
        if start > instruction:
            break
        found = number
    return found
