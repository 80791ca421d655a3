"""The guarded ops, overridden while a guard is in force, and the moments at which a late look is told of."""

from __future__ import annotations

import atexit
import sys
import threading
import warnings
import weakref

import torch

from .guard_check import PlainCheck, find
from .guard_errors import error_of
from .guard_kernel import Unavailable, looker_of
from .guard_late import Late
from .guard_rules import GUARDED
from .guard_say import say

#: Arguments that a forward op was found to accept, so that its backward need not look again.
MOST_SEEN = 256


class Installed:
    def __init__(self, way, keys):
        self.deferred = way == "deferred"
        self.late = Late()
        self.inside = threading.local()
        self.lookers = {}
        self.seen = {}
        self.library = torch.library.Library("aten", "IMPL")
        for op, rule, kernels in GUARDED:
            for kernel in kernels:
                for key in keys:
                    self.override(kernel, key, guarded(self, op, rule))
        for key in keys:
            self.override("_local_scalar_dense", key, telling_after(self))
        self.undo = watch_moments(self)
        atexit.register(self.tell_at_exit)

    def override(self, kernel, key, function_of):
        """Kernels that this version of torch does not have are passed over."""
        try:
            original = torch.library.get_kernel("aten::" + kernel, key)
        except RuntimeError:
            return
        with warnings.catch_warnings():
            # torch warns that a kernel is overridden, which is the intention.
            warnings.simplefilter("ignore")
            self.library.impl(kernel, function_of(original.call_boxed), key, with_keyset=True)

    def remove(self):
        atexit.unregister(self.tell_at_exit)
        for undo in self.undo:
            undo()
        self.library._destroy()

    def tell_at_exit(self):
        """The program ends before any moment at which it would have been told."""
        try:
            self.late.wait_and_tell()
        except Exception as error:
            sys.excepthook(type(error), error, error.__traceback__)

    # What is done with a call.

    def mend(self, op, requirements):
        """Raises for an offender, or gives replacements for arguments, by their slots."""
        mended = {}
        for requirement in requirements:
            if requirement.total == 0:
                continue
            captured = requirement.tensor.is_cuda and torch.cuda.is_current_stream_capturing()
            can_be_mended = requirement.slot is not None and not requirement.allows_nothing()
            if (captured or self.deferred) and can_be_mended:
                mended[requirement.slot] = self.look_late(op, requirement, captured)
            elif not captured:
                self.look_now(op, requirement)
        return mended

    def look_now(self, op, requirement):
        tensor = requirement.tensor
        if op.endswith("backward") and self.was_seen(requirement):
            return
        look = self.begin(requirement, copy=False)
        if look is not None:
            look.wait()
            offender = look.offender()
        else:
            offender = find(requirement)
        if offender is not None:
            raise error_of(op, requirement, *offender)
        self.saw(requirement, tensor)

    def look_late(self, op, requirement, captured):
        """The argument for the kernel, in which no offender is left; None where nobody looked."""
        look = self.begin(requirement, requirement.mend is None, captured)
        if look is not None:
            mended = look.mended if requirement.mend is None else requirement.mend()
        elif captured:
            # Several launches and a copy to the host do not belong into the program's graph.
            return None
        else:
            look = PlainCheck(requirement)
            mended = look.mended
        look.mended = None
        self.late.add(op, look, captured)
        return mended

    def begin(self, requirement, copy, captured=False):
        """A look in one kernel; None where it cannot be had."""
        looker = self.looker(requirement.tensor, captured)
        if looker is None or not looker.can(requirement):
            return None
        try:
            return looker.look(requirement, copy, captured)
        except Unavailable as error:
            self.do_without(looker.device, error)
            return None

    def looker(self, tensor, captured):
        """The kernel of a tensor's GPU; None where there is none."""
        if not tensor.is_cuda or torch.version.cuda is None:
            return None
        device = tensor.get_device()
        if device not in self.lookers:
            if captured:
                # Its memory cannot be had during a capture; the warm-up before it is what makes it ready.
                return None
            try:
                self.lookers[device] = looker_of(device)
            except Unavailable as error:
                self.do_without(device, error)
        return self.lookers[device]

    def do_without(self, device, error):
        self.lookers[device] = None
        say(f"the guard's kernel cannot be had ({error}), so each check takes several launches")

    # What a forward op was found to accept. In-place changes raise a tensor's version.

    def saw(self, requirement, tensor):
        if len(self.seen) >= MOST_SEEN:
            self.seen.clear()
        try:
            self.seen[id(tensor)] = (weakref.ref(tensor), tensor._version, bounds_of(requirement))
        except RuntimeError:
            # Inference tensors have no version, and no backward.
            pass

    def was_seen(self, requirement):
        tensor = requirement.tensor
        known = self.seen.get(id(tensor))
        if known is None or known[0]() is not tensor:
            return False
        low, last, ignore = known[2]
        narrower = low >= requirement.low and (requirement.last is None or last <= requirement.last)
        return narrower and ignore in (None, requirement.ignore) and known[1] == tensor._version


def bounds_of(requirement):
    last = float("inf") if requirement.last is None else requirement.last
    return requirement.low, last, requirement.ignore


def guarded(installed, op, rule):
    inside, late, mend = installed.inside, installed.late, installed.mend

    def function_of(original):
        def kernel(keys, *arguments, **named):
            # An op that calls others was checked as a whole.
            if getattr(inside, "call", False):
                return original(keys, *arguments, **named)
            inside.call = True
            try:
                if (late.under_way or late.of_graphs) and not is_capturing():
                    late.tell()
                try:
                    requirements = rule(*arguments, **named)
                except Exception:
                    # The call is malformed in a way that torch itself tells best.
                    requirements = ()
                mended = mend(op, requirements)
                if mended:
                    arguments = replaced(arguments, mended)
                return original(keys, *arguments, **named)
            finally:
                inside.call = False

        return leave_to_the_interpreter(kernel)

    return function_of


def is_capturing():
    """A graph is being captured: an exception would break it, and so might a question to an event."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def replaced(arguments, mended):
    arguments = list(arguments)
    for slot, tensor in mended.items():
        if tensor is None:
            continue
        if isinstance(slot, tuple):
            argument, number = slot
            arguments[argument] = list(arguments[argument])
            arguments[argument][number] = tensor
        else:
            arguments[slot] = tensor
    return arguments


def telling_after(installed):
    inside, late = installed.inside, installed.late

    def function_of(original):
        def kernel(keys, *arguments, **named):
            result = original(keys, *arguments, **named)
            if not getattr(inside, "call", False):
                late.tell()
            return result

        return leave_to_the_interpreter(kernel)

    return function_of


def watch_moments(installed):
    """Calls that wait anyway, or after which a wrong value would have been kept. Gives what takes them back."""
    late = installed.late
    undo = []

    def replace(owner, name, make):
        found = getattr(owner, name)
        replacement = leave_to_the_interpreter(make(found))
        replacement.__name__ = name
        replacement.__doc__ = found.__doc__
        own = name in vars(owner)
        setattr(owner, name, replacement)
        undo.append((lambda: setattr(owner, name, found)) if own else (lambda: delattr(owner, name)))

    def after(found):
        def call(*arguments, **named):
            result = found(*arguments, **named)
            late.tell()
            return result

        return call

    def after_leaving_the_gpu(found):
        def call(self, *arguments, **named):
            result = found(self, *arguments, **named)
            if type(self) is torch.Tensor and self.is_cuda and not getattr(result, "is_cuda", False):
                # The copy has waited for what it needs; one that does not block is not made to.
                late.tell()
            return result

        return call

    def before(found):
        def call(*arguments, **named):
            late.wait_and_tell()
            return found(*arguments, **named)

        return call

    replace(torch.cuda, "synchronize", after)
    replace(torch, "save", before)
    if installed.deferred:
        for name in ("cpu", "to", "tolist"):
            replace(torch.Tensor, name, after_leaving_the_gpu)
        optimizer = sys.modules.get("torch.optim.optimizer") or __import__(
            "torch.optim.optimizer", fromlist=["optimizer"]
        )
        handle = optimizer.register_optimizer_step_pre_hook(lambda *_: late.tell())
        undo.append(handle.remove)
    return undo


def leave_to_the_interpreter(function):
    """Dynamo would compile what torch calls in the middle of a compiled function, and all that it calls itself."""
    try:
        from torch._C._dynamo import eval_frame

        skip = eval_frame._FrameAction.SKIP
        eval_frame.set_code_exec_strategy(function.__code__, eval_frame._FrameExecStrategy(skip, skip))
    except (ImportError, AttributeError):
        # It then compiles them, which takes a while and changes nothing else.
        pass
    return function
